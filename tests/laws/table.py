"""The page of the documentation that says which handlers commute: `uv run python -m tests.laws.table` writes it."""

from __future__ import annotations

from pathlib import Path

from effectful_agents.harness.stack import Harness
from tests.laws.registry import EXCLUSIVE, ORDERED, SAMPLES, WITH_SECTIONS, Ordered, Sections, verdict

PAGE = Path(__file__).parents[2] / "docs" / "handlers" / "commuting.md"

HEAD = """\
<!-- Written by `uv run python -m tests.laws.table` from tests/laws/registry.py, which the tests check. -->

# Which handlers commute

Of two handlers that handle the same operation the inner one comes first, and its `fwd()` goes to the outer one. For
some pairs it makes no difference which of the two that is. The table says what holds for each pair, and tests run a
set of programs in both orders to check it. Handlers are listed as they stand in a stack, the outermost first.

| sign | meaning |
| --- | --- |
| `=` | they commute: value, requests and history are the same in both orders |
| `§` | they commute but for the order of their sections in the system message, where the inner one's comes first |
| `out` | the handler of the row has to stand outside of the one of the column |
| `in` | the handler of the row has to stand inside of the one of the column |
| `1` | a stack can have only one of it |
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_matrix(), "", *_reasons(), *_exclusive(), *_standard_stack()]) + "\n"


def _matrix() -> list[str]:
    order = list(SAMPLES)
    numbers = [str(number) for number, _ in enumerate(order, 1)]
    return [
        f"|   |   | {' | '.join(numbers)} |",
        f"| --- | --- |{' --- |' * len(order)}",
        *(
            f"| {number} | `{row.__name__}` | {' | '.join(_sign(row, column) for column in order)} |"
            for number, row in zip(numbers, order, strict=True)
        ),
    ]


def _sign(row: type, column: type) -> str:
    if row is column:
        return "1" if row in EXCLUSIVE else "§" if row in WITH_SECTIONS else "="
    match verdict(row, column):
        case Ordered(outer=outer):
            return "out" if outer is row else "in"
        case Sections():
            return "§"
        case _:
            return "="


def _reasons() -> list[str]:
    reasons: dict[str, list[str]] = {}
    for entry in ORDERED:
        reasons.setdefault(entry.reason, []).append(f"`{entry.outer.__name__}` outside of `{entry.inner.__name__}`")
    lines = ["## Where the order matters", ""]
    for reason, entries in reasons.items():
        lines += [f"- {reason[0].upper()}{reason[1:]}:", *(f"  - {entry}" for entry in entries)]
    return lines


def _exclusive() -> list[str]:
    lines = ["", "## Those of which there can be only one", ""]
    lines += [f"- `{cls.__name__}`: {reason}." for cls, reason in EXCLUSIVE.items()]
    return [
        *lines,
        "",
        "Two of any other kind are as one, but that a section of the system message stands there twice.",
    ]


def _standard_stack() -> list[str]:
    return [
        "",
        "## The order of the standard stack",
        "",
        f"`harness()` builds its handlers in an order that keeps to all of this; `{Harness.__module__}` has the reason "
        "for each place.",
    ]


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
