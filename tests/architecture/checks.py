"""What docs/design.md promises about the tree, as checks. Each check_NAME(root) gives a list of complaints, one a
line, "path: what is wrong"; an empty list is a pass. Adding a function adds a check."""

import re

import tree
from outcome import Outcome

HARD_LINE_LIMIT = 800
HEAVY_HEADERS = ("nlohmann/json.hpp", "yaml-cpp/yaml.h", "iostream", "regex", "hwy/highway.h")
JSON_LIBRARY_USERS = ("src/base/json.cc", "src/io/safetensors.cc")


def all_checks():
    return [(name.removeprefix("check_"), value) for name, value in sorted(globals().items())
            if name.startswith("check_")]


def run(name, check, root):
    complaints = check(root)
    return Outcome(f"architecture/{name}", "failed" if complaints else "passed", "\n".join(complaints))


def check_include_arrows(root):
    """Every include goes to the same room or along an arrow of the table."""
    complaints = []
    table = tree.rooms(root)
    for path in tree.sources(root):
        inside = path.removeprefix("src/")
        room = tree.room_of(root, inside)
        if room is None:
            complaints.append(f"{path}: lies in no room of cmake/rooms.cmake")
            continue
        for included in tree.INCLUDE.findall(tree.text(root, path)):
            target = tree.room_of(root, included)
            if included.startswith("hwy/"):  # Highway asks for quotes
                continue
            if not (root / "src" / included).is_file():
                complaints.append(f"{path}: includes \"{included}\", which is not a path below src/")
            elif target != room and target not in table[room]:
                complaints.append(f"{path}: {room} may not include {target} (\"{included}\")")
    return complaints


def check_arrows_point_one_way(root):
    """A room may only name rooms that stand above it, so there is no cycle."""
    complaints, seen = [], []
    for room, allowed in tree.rooms(root).items():
        complaints += [f"cmake/rooms.cmake: {room} names {other}, which does not stand above it"
                       for other in allowed if other not in seen]
        seen.append(room)
    return complaints if seen else ["cmake/rooms.cmake: no rooms found"]


def check_design_table(root):
    """The table of rooms in docs/design.md says what cmake/rooms.cmake links."""
    design = "docs/design.md"
    if not (root / design).is_file():
        return []
    table = tree.rooms(root)
    complaints, documented = [], set()
    for names, allowed in re.findall(r"^\| ([a-z/, ]+) \| [^|]+ \| ([^|]+) \|$", tree.text(root, design), re.M):
        for room in names.split(", "):
            if room not in table:
                continue
            documented.add(room)
            expected = documented_rooms(allowed.strip(), room, table)
            if expected != set(table[room]):
                complaints.append(f"{design}: {room} may include {sorted(expected)}, but the build links "
                                  f"{sorted(table[room])}")
    return complaints + [f"{design}: the table lacks {room}" for room in table if room not in documented]


def documented_rooms(allowed, room, table):
    if allowed in ("–", "-"):
        return set()
    if allowed.startswith("all"):
        without = [w.strip() for w in allowed.removeprefix("all").removeprefix(" but ").split(",") if w.strip()]
        return {r for r in table if r != room and not any(r == w or r.startswith(w + "/") for w in without)}
    return set(allowed.replace(",", " ").split())


def check_family_names(root):
    """Families are named in models/ and in tests. The text room is left out: tokenizer files name their own kinds
    after families. So are "llama.cpp" and "llama-gguf-split", which are programs."""
    families = tree.listed(root, "src/models/family_list.inc")
    if not families:
        return []
    pattern = re.compile(r"(?<![a-z0-9])(" + "|".join(families) + r")(?![a-z0-9])(?!\.cpp|-gguf-split)", re.I)
    complaints = []
    for path in tree.files(root):
        if not path.startswith("src/") or path.startswith(("src/models/", "src/text/")) or path.endswith("_test.cc"):
            continue
        for number, line in enumerate(tree.text(root, path).splitlines(), 1):
            found = pattern.search(line)
            if found:
                complaints.append(f"{path}:{number}: names the family {found[1]}")
    return complaints


def check_file_length(root):
    return [f"{path}: {lines} lines, the limit is {HARD_LINE_LIMIT}" for path in tree.files(root)
            if path.startswith(("src/", "tests/", "tools/", "bench/"))
            and path.endswith((*tree.SOURCE_ENDINGS, ".py", ".sh", ".cmake"))
            and (lines := tree.text(root, path).count("\n")) > HARD_LINE_LIMIT]


def check_headers(root):
    """A header says what it is for, is guarded, and includes nothing that slows every build."""
    complaints = []
    for path in tree.sources(root):
        if not path.endswith((".h", ".cuh")):
            continue
        header = tree.text(root, path)
        if not header.startswith("//"):
            complaints.append(f"{path}: does not begin with a comment on what it owns")
        if "\n#pragma once\n" not in header and not path.endswith("-inl.h"):  # those are read once a target
            complaints.append(f"{path}: lacks #pragma once")
        for heavy in HEAVY_HEADERS:
            if re.search(rf"#include [<\"]{re.escape(heavy)}[>\"]", header) and not path.endswith("-inl.h"):
                complaints.append(f"{path}: includes {heavy}; a header may only declare what it needs of it")
    return complaints


def check_json_library(root):
    """The JSON library costs seconds in each file that includes it: base/json.h stands for it."""
    return [f"{path}: includes nlohmann/json.hpp; include base/json.h"
            for path in tree.sources(root) if path not in JSON_LIBRARY_USERS
            and "nlohmann/json.hpp" in tree.text(root, path)]


def check_own_header_first(root):
    """x.cc includes x.h before anything else, so each header is compiled once with nothing before it."""
    complaints = []
    for path in tree.sources(root):
        own = path.removeprefix("src/").removesuffix(".cc") + ".h"
        if path.endswith(".cc") and (root / "src" / own).is_file():
            first = re.search(r"^#include (.+)$", tree.text(root, path), re.M)
            if first is None or first[1] != f'"{own}"':
                complaints.append(f"{path}: its first include is not \"{own}\"")
    return complaints


def check_lists(root):
    """What the four lists name exists, is tested, and nothing of the kind is left out of its list."""
    complaints = []
    for path, needed in (
        ("src/models/family_list.inc", ("src/models/{}.cc",)),
        ("src/cli/command_list.inc", ("src/cli/cmd_{}.cc", "tests/scripts/{}.t")),
    ):
        names = tree.listed(root, path)
        if len(set(names)) != len(names):
            complaints.append(f"{path}: a name stands twice")
        for name in names:
            complaints += [f"{path}: {name} lacks {pattern.format(name)}" for pattern in needed
                           if not (root / pattern.format(name)).is_file()]
    ops = "".join(tree.text(root, path) for path in tree.sources(root) if re.fullmatch(r"src/ops/\w+\.cc", path))
    for name in tree.listed(root, "src/ops/op_list.inc"):  # that it has cases, ops/op_cases_test.cc checks
        if f"const OpDef& {name}_op() {{" not in ops:
            complaints.append(f"src/ops/op_list.inc: {name} is defined in no file of src/ops")
    commands = tree.listed(root, "src/cli/command_list.inc")
    for path in tree.sources(root):
        found = re.fullmatch(r"src/cli/cmd_(\w+)\.cc", path)
        if found and found[1] not in commands:
            complaints.append(f"{path}: is not in src/cli/command_list.inc")
    return complaints


def check_case_tests(root):
    """Every test that docs/cases.md names exists, and every row names one."""
    complaints = []
    for row in re.findall(r"^\| (T\d\d.*) \|$", tree.text(root, "docs/cases.md"), re.M):
        case, named = row.split(" | ")[0], re.findall(r"`([^`]+)`", row.split(" | ")[-1])
        if not named:
            complaints.append(f"docs/cases.md: {case} names no test")
        program = None
        for name in named:
            if ": " in name:
                program, name = name.split(": ")
            if not named_test_exists(root, program, name):
                complaints.append(f"docs/cases.md: {case} names {name}, which is not there")
    return complaints


def named_test_exists(root, program, name):
    """`name` is a script, a make target, a test program, or Suite.Test (Suite.* for all of it) of `program`."""
    if name.endswith(".t"):
        return (root / "tests/scripts" / name).is_file()
    if name.startswith("make "):
        return f"\n{name.removeprefix('make ')}:" in tree.text(root, "Makefile")
    if name.endswith("_test"):
        return bool(tests_of(root, name))
    suite, test = name.split(".")
    wanted = r"\w+" if test == "*" else test
    pattern = rf"\bTEST(_F|_P)?\(\s*{suite},\s*{wanted}\)"
    return re.search(pattern, tests_of(root, program)) is not None


def tests_of(root, program):
    room = program.removeprefix("tenon_").removesuffix("_test").replace("backend_", "backend/")
    folder = re.compile(r"tests/\w+\.cc" if room == "system" else rf"src/{room}/(\w+/)*\w+_test\.cc")
    return "".join(tree.text(root, path) for path in tree.files(root) if folder.fullmatch(path))


def check_banned_words(root):
    words = re.compile(r"\b(" + "|".join(a + b for a, b in (("TO", "DO"), ("FIX", "ME"), ("XX", "X"))) + r")\b")
    return marked_lines(root, words, "is a note to somebody, not code",
                        ("src/", "tests/architecture/", "tools/", "bench/", "cmake/", "docs/", ".ci/"))


def check_machine_paths(root):
    """No path of one developer's machine."""
    paths = re.compile(r"(?<![\w.<-])/(" + "|".join(a + b for a, b in (("wo", "rk"), ("ro", "ot"), ("ho", "me")))
                       + r")/\w")
    return marked_lines(root, paths, "is a path of one machine",
                        ("src/", "tests/architecture/", "tests/scripts/", "tools/", "bench/", "cmake/", "docs/", ".ci/",
                         "Makefile", "README"))


def marked_lines(root, pattern, complaint, folders):
    complaints = []
    for path in tree.files(root):
        if path.startswith(folders):
            for number, line in enumerate(tree.text(root, path).splitlines(), 1):
                found = pattern.search(line)
                if found:
                    complaints.append(f"{path}:{number}: \"{found[0]}\" {complaint}")
    return complaints
