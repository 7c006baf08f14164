"""The source tree as the checks see it: the files that git tracks or would track, the rooms and their arrows."""

import functools
import re
import subprocess

SOURCE_ENDINGS = (".h", ".cc", ".cu", ".cuh")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


@functools.cache
def files(root):
    """Paths below the root, sorted: tracked files, and new ones that git does not ignore."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, check=True).stdout.decode()
    return sorted(path for path in set(listed.split("\0")) if path and (root / path).is_file())


def sources(root):
    return [path for path in files(root) if path.startswith("src/") and path.endswith(SOURCE_ENDINGS)]


@functools.cache
def text(root, path):
    """The file's text; empty for a binary file."""
    data = (root / path).read_bytes()
    return "" if b"\0" in data else data.decode("utf-8", "replace")


@functools.cache
def rooms(root):
    """room -> the rooms it may include, from cmake/rooms.cmake, which is also what the build links."""
    table = {}
    for call in re.findall(r"^tenon_room\(([^)]*)\)", text(root, "cmake/rooms.cmake"), re.M):
        words = call.split()
        allowed = words[words.index("ROOMS") + 1:] if "ROOMS" in words else []
        if "LIBRARIES" in allowed:
            allowed = allowed[:allowed.index("LIBRARIES")]
        table[words[0]] = allowed
    return table


def room_of(root, path):
    """The room of a path below src/ ("backend/cpu/x.h" -> "backend/cpu"), or None."""
    found = [room for room in rooms(root) if path.startswith(room + "/")]
    return max(found, key=len) if found else None


def listed(root, path):
    """The names in an .inc list of TENON_WHAT(name) lines; empty where the list is missing."""
    if not (root / path).is_file():
        return []
    return re.findall(r"^TENON_\w+\((\w+)", text(root, path), re.M)
