"""What one test came to."""

import dataclasses


@dataclasses.dataclass
class Outcome:
    name: str
    state: str  # passed, failed or skipped
    detail: str = ""  # output of a failure, reason of a skip
