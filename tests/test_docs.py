"""The Python blocks of the README and of docs/ run, each file from top to bottom as one program.

A comment before a block says what the model replies in it, as arguments of `ScriptedModel`, with `says` and `calls`:

    <!-- replies: calls("weather", city="Oslo"), says("Oslo") -->

A block without one is run with a model that has no replies. One that cannot run here opens with `python no-run`.

A `text` block directly after one shows what it prints. `…` or `...` in it stands for anything, several lines too.
"""

import contextlib
import dataclasses
import io
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from effectful_agents import handler
from effectful_agents.testing import ScriptedModel, batch, calls, says

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(
    r"(?:^<!-- replies: (?P<replies>.*?) -->\n+)?"
    r"^```python(?P<options>[^\n]*)\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclasses.dataclass
class Block:
    """A piece of a program, with the line at which it stands in its file."""

    code: str
    line: int
    replies: str
    shown: str | None
    """What the page shows as printed; `None` where it shows nothing."""


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page that are to be run."""
    for match in BLOCK.finditer(text):
        if match["options"].strip() != "no-run":
            line = text.count("\n", 0, match.start("code"))
            yield Block(match["code"], line, match["replies"] or "", match["shown"])


def shows(shown: str, printed: str) -> bool:
    """Whether a page shows what a block prints, but for blanks at the ends of lines and what the page leaves out."""

    def trimmed(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    parts = re.split(r"…|\.\.\.", trimmed(shown))
    return re.fullmatch(".*?".join(re.escape(part) for part in parts), trimmed(printed), re.DOTALL) is not None


def execute(page: str, path: Path, module: types.ModuleType) -> None:
    """Run the blocks of a page in one namespace.

    Each is to ask the model for all its replies, and to print what the page shows.
    """
    differences: list[str] = []
    for block in blocks(page):
        # Empty lines before it give each line of a block the number that it has in the file.
        code = compile("\n" * block.line + block.code, str(path), "exec")
        model = ScriptedModel(*eval(f"[{block.replies}]", {"batch": batch, "calls": calls, "says": says}))
        out = io.StringIO()
        with handler(model), contextlib.redirect_stdout(out):
            exec(code, module.__dict__)
        assert not model.remaining, f"{path}:{block.line}: {model.remaining} replies were not asked for"
        if block.shown is not None and not shows(block.shown, out.getvalue()):
            differences.append(f"{path}:{block.line} shows\n{block.shown}\nand prints\n{out.getvalue()}")
    assert not differences, "\n".join(differences)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> types.ModuleType:
    """The module that a page is: dataclasses and agents look it up by its name. It runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    return module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_run(path: Path, program: types.ModuleType) -> None:
    execute(path.read_text(encoding="utf-8"), path, program)


PAGE = """
```python
number = 1
```

```python no-run
number = 1 / 0
```

<!-- replies: "one", says("two") -->

```python
from effectful_agents.operations.loop import completion

number += len([completion(messages=[]) for _ in range({asked})])
```

What follows is not what it prints:

```text
number = 1 / 0
```
"""


def test_blocks_share_a_namespace_and_get_their_replies(program: types.ModuleType) -> None:
    execute(PAGE.replace("{asked}", "2"), Path("page.md"), program)
    assert program.__dict__["number"] == 3


def test_a_reply_that_nobody_asks_for_is_reported(program: types.ModuleType) -> None:
    with pytest.raises(AssertionError, match="1 replies were not asked for"):
        execute(PAGE.replace("{asked}", "1"), Path("page.md"), program)


PRINTS = """
```python
print("one\\ntwo \\nthree")
```

```text
{shown}
```

```text
something else
```
"""


@pytest.mark.parametrize("shown", ["one\ntwo\nthree", "one\n…\nthree", "...\nthree", "o…e"])
def test_a_page_may_leave_out_some_of_what_is_printed(shown: str, program: types.ModuleType) -> None:
    execute(PRINTS.replace("{shown}", shown), Path("page.md"), program)


@pytest.mark.parametrize("shown", ["", "one\ntwo", "one\n…\nfour", "…\ntwo"])
def test_a_page_that_shows_what_is_not_printed_is_reported(shown: str, program: types.ModuleType) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:2 shows[^/]*and prints\s+one"):
        execute(PRINTS.replace("{shown}", shown), Path("page.md"), program)


def test_an_error_has_the_line_of_the_page(program: types.ModuleType) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        execute(PAGE.replace(" no-run", ""), Path("page.md"), program)
    last = raised.traceback[-1]
    # pytest counts lines from 0.
    assert (str(last.path), last.lineno) == ("page.md", PAGE[: PAGE.index("/")].count("\n"))
