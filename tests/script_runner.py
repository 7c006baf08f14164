"""Runs a script test: shell commands with the output that they must give.

A file NAME.t holds

    # a comment
    [needs test -d "$SHARED/golden"]     skips the whole script where the command fails
    $ tenon tokenize "$TESTS/x.json" \\   a command; lines that begin with "> " continue it
    > --text hello
    1 2 3                                what it prints, standard output and error together
    [exit 2]                             its exit code, where not 0

In expected output "..." alone on a line stands for any number of lines, "..." inside a line for any characters,
and a line "re: PATTERN" for one line that matches the pattern as a whole. Blank lines at the end of a block do
not count. Commands of a script share one fresh folder and bash with pipefail; `tenon` is on PATH, $TESTS is the
tests folder and $SHARED the folder of test data beside the checkout (which may be missing).

    python3 tests/script_runner.py [--build DIR] [--rewrite] FILE ...

runs scripts alone; --rewrite puts what the commands printed in the place of blocks that did not match."""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from outcome import Outcome

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent


@dataclasses.dataclass
class Block:
    line: int  # of the command, from 1
    command: str
    first: int = 0  # lines [first, last) of the file are what is expected
    last: int = 0
    expected: list = dataclasses.field(default_factory=list)
    exit_code: int = 0


def parse(text):
    """The [needs] commands and the blocks of a script."""
    needs, blocks = [], []
    for index, line in enumerate(text.splitlines()):
        block = blocks[-1] if blocks else None
        if line.startswith("$ "):
            blocks.append(Block(index + 1, line[2:], index + 1, index + 1))
        elif block and line.startswith("> ") and block.last == index:
            block.command += "\n" + line[2:]
            block.first = block.last = index + 1
        elif line.startswith("# ") or line == "#":
            continue
        elif block is None:
            found = re.fullmatch(r"\[needs (.+)\]", line)
            if found:
                needs.append(found[1])
            elif line.strip():
                raise ValueError(f"line {index + 1}: expected a comment, [needs ...] or a command")
        else:
            found = re.fullmatch(r"\[exit (\d+)\]", line)
            if found:
                block.exit_code = int(found[1])
            else:
                block.expected.append(line)
            if line:
                block.last = index + 1
    for block in blocks:
        while block.expected and not block.expected[-1]:
            block.expected.pop()
    return needs, blocks


def line_matches(expected, actual):
    if expected.startswith("re: "):
        return re.fullmatch(expected[4:], actual) is not None
    if "..." in expected:
        return re.fullmatch(".*".join(re.escape(part) for part in expected.split("...")), actual) is not None
    return expected == actual


def lines_match(expected, actual):
    """Whether the lines match, "..." lines standing for any number: each run between two is found as early as it can."""
    runs, run = [], []
    for line in expected:
        if line == "...":
            runs.append(run)
            run = []
        else:
            run.append(line)
    runs.append(run)

    def at(run, begin):
        return begin >= 0 and len(actual) >= begin + len(run) and all(
            line_matches(line, actual[begin + i]) for i, line in enumerate(run))

    if len(runs) == 1:
        return len(actual) == len(runs[0]) and at(runs[0], 0)
    if not at(runs[0], 0):
        return False
    position = len(runs[0])
    for run in runs[1:-1]:
        while not at(run, position):
            position += 1
            if position > len(actual):
                return False
        position += len(run)
    last = len(actual) - len(runs[-1])
    return last >= position and at(runs[-1], last)


def environment_of(folder, build):
    environment = {key: os.environ[key] for key in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if key in os.environ}
    environment["PATH"] = f"{build}{os.pathsep}{environment.get('PATH', os.defpath)}"
    environment.update(HOME=str(folder), LC_ALL="C.UTF-8", TZ="UTC", TERM="dumb", TESTS=str(TESTS),
                       SHARED=str(ROOT.parent / "shared"))
    return environment


def shell(command, folder, environment, timeout):
    """Exit code and output lines; the code is None when the command was stopped."""
    process = subprocess.Popen(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    try:
        output, code = process.communicate(timeout=timeout)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, code = process.communicate()[0], None
    lines = output.decode("utf-8", "replace").split("\n")
    while lines and not lines[-1]:
        lines.pop()
    return code, lines


def failure(script, block, code, lines):
    if code is None:
        return f"{script.name}:{block.line}: $ {block.command}\nstopped: it took too long\n" + "\n".join(lines[-40:])
    if code != block.exit_code or not lines_match(block.expected, lines):
        shown = [f"  {line}" for line in block.expected] or ["  (nothing)"]
        got = [f"  {line}" for line in lines[:200]] or ["  (nothing)"]
        return "\n".join([f"{script.name}:{block.line}: $ {block.command}", f"expected, exit code {block.exit_code}:",
                          *shown, f"printed, exit code {code}:", *got])
    return None


def run(script, build, timeout, rewritten=None):
    """One script as one Outcome. With a list `rewritten`, blocks that fail are put there with what they gave."""
    name = f"scripts/{script.name}"
    try:
        needs, blocks = parse(script.read_text())
    except ValueError as error:
        return Outcome(name, "failed", str(error))
    if not blocks:
        return Outcome(name, "failed", "the script has no command")
    with tempfile.TemporaryDirectory(prefix="tenon-script-") as folder:
        environment = environment_of(folder, build)
        for need in needs:
            if shell(need, folder, environment, timeout)[0] != 0:
                return Outcome(name, "skipped", f"needs {need}")
        failures = []
        for block in blocks:
            code, lines = shell(block.command, folder, environment, timeout)
            failed = failure(script, block, code, lines)
            if failed and rewritten is not None:
                rewritten.append((block, code, lines))
            elif failed:
                failures.append(failed)
    return Outcome(name, "failed" if failures else "passed", "\n\n".join(failures))


def rewrite(script, changes):
    lines = script.read_text().split("\n")
    for block, code, output in reversed(changes):
        lines[block.first:block.last] = output + ([f"[exit {code}]"] if code else [])
    script.write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description="Runs script tests.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--rewrite", action="store_true", help="put the printed output into the script")
    parser.add_argument("scripts", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = False
    for script in arguments.scripts:
        changes = [] if arguments.rewrite else None
        outcome = run(script, arguments.build.resolve(), arguments.timeout, changes)
        if changes:
            rewrite(script, changes)
        failed |= outcome.state == "failed"
        print(f"{outcome.state} {script}{': ' + outcome.detail if outcome.detail else ''}"
              f"{f' ({len(changes)} blocks rewritten)' if changes else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
