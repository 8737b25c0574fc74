"""What static checkers tell the users of the package: for each file here, errors on the marked lines and on no other.

A mark is a comment, `# error` for all checkers, `# error: mypy pyright` for some.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
FILES = ["api.py", "disputed.py", "misuse.py"]
MARK = re.compile(r"# error(?:: (?P<checkers>[a-z ]+))?$")

# Each prints one line for an error, with the file's name and the line's number.
COMMANDS = {
    "ty": ["ty", "check", "--output-format=concise", f"--python={sys.prefix}"],
    "mypy": ["mypy", "--no-error-summary", "--hide-error-context", "--no-pretty"],
    "pyright": ["pyright", f"--pythonpath={sys.executable}"],
}
LINE = re.compile(r"(?P<file>\w+\.py):(?P<line>\d+):(?:\d+:?)? *(?:- )?error")


def marked(file: str, checker: str) -> set[int]:
    """The lines of a file on which a checker must report an error."""
    lines = enumerate((FOLDER / file).read_text(encoding="utf-8").splitlines(), 1)
    marks = {number: match for number, line in lines if (match := MARK.search(line))}
    return {number for number, match in marks.items() if checker in (match["checkers"] or checker).split()}


def check(checker: str) -> dict[str, set[int]]:
    """Run a checker over all files and collect the lines with errors, by file."""
    files = [str(FOLDER / file) for file in FILES]
    done = subprocess.run(
        [str(Path(sys.executable).parent / COMMANDS[checker][0]), *COMMANDS[checker][1:], *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    print(done.stdout)  # for the reader of a failure
    found: dict[str, set[int]] = {file: set() for file in FILES}
    for match in LINE.finditer(done.stdout):
        found.setdefault(match["file"], set()).add(int(match["line"]))
    return found


@pytest.mark.parametrize(
    "checker", ["ty", pytest.param("mypy", marks=pytest.mark.slow), pytest.param("pyright", marks=pytest.mark.slow)]
)
def test_errors_stand_on_the_marked_lines_and_nowhere_else(checker: str) -> None:
    assert check(checker) == {file: marked(file, checker) for file in FILES}


def test_the_marks_are_found() -> None:
    assert marked("misuse.py", "ty")
    assert marked("disputed.py", "ty") < marked("disputed.py", "pyright")
