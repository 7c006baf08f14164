"""What the benchmarks that write into docs/measuring.md share."""

import pathlib

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "measuring.md"


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "an unknown CPU")


def write_part(program, text):
    """Puts `text` between the marks of bench/`program`, in the place of what stands there."""
    begin, end = f"<!-- bench/{program} begins -->", f"<!-- bench/{program} ends -->"
    before, rest = DOCUMENT.read_text().split(begin, 1)
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")
