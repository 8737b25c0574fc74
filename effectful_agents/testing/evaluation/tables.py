"""Evaluations and comparisons as tables: plain text, and for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from effectful_agents.testing.evaluation.comparing import Comparison, Difference
    from effectful_agents.testing.evaluation.evaluation import Evaluation
    from effectful_agents.testing.evaluation.rows import Row

__all__ = ["number", "on_one_line", "plain", "plain_comparison", "rich", "rich_comparison"]

_MOST_ROWS = 50
_WIDEST = 44

type _Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def plain(evaluation: Evaluation[Any]) -> str:
    """An evaluation as text."""
    parts = [on_one_line(_line(evaluation)), *_laid_out(_tables(evaluation))]
    return "\n\n".join(parts)


def plain_comparison(comparison: Comparison) -> str:
    """A comparison as text."""
    title = on_one_line(f"{comparison.one} → {comparison.other}, {_count(comparison.cases, 'case')} in both")
    return "\n\n".join([title, *_laid_out([_differences(comparison)]), *filter(None, [_below(comparison)])])


def rich(evaluation: Evaluation[Any]) -> RenderableType:
    """An evaluation for a terminal."""
    return _drawn(_line(evaluation), _tables(evaluation), f"{evaluation_seconds(evaluation):.1f} s in all calls")


def rich_comparison(comparison: Comparison) -> RenderableType:
    """A comparison for a terminal."""
    title = f"{comparison.one} → {comparison.other}"
    return _drawn(title, [_differences(comparison)], _below(comparison))


def evaluation_seconds(evaluation: Evaluation[Any]) -> float:
    """How long all calls took together."""
    return sum(row.seconds for row in evaluation.rows)


# --- of an evaluation -------------------------------------------------------------------------------------------------


def _line(evaluation: Evaluation[Any]) -> str:
    rows = evaluation.rows
    suspended = sum(row.suspended for row in rows)
    failed = sum(row.error is not None for row in rows) - suspended
    cases = len({row.case.name for row in rows})
    parts = [_count(cases, "case")]
    if len(rows) != cases:
        parts.append(_count(len(rows), "call"))
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{suspended} suspended"] if suspended else []
    usage = evaluation.usage
    if usage.input is not None or usage.output is not None:
        parts.append(f"{(usage.input or 0) + (usage.output or 0):,} tokens")
    if evaluation.cost:
        parts.append(f"${evaluation.cost:.4f}")
    return f"{evaluation.name}: {', '.join(parts)}"


def _tables(evaluation: Evaluation[Any]) -> list[_Table]:
    summary = evaluation.summary()
    means = [
        [name, number(each.mean), _or_nothing(each.error), _or_nothing(each.spread), str(each.cases)]
        for name, each in summary.items()
    ]
    repeated = any(each.spread is not None for each in summary.values())
    head = ["score", "mean", "± error", "spread", "cases"]
    if not repeated:
        means = [[*line[:3], line[4]] for line in means]
        head.remove("spread")
    tables: list[_Table] = [(head, means)] if means else []
    if evaluation.rows:
        tables.append(_rows(evaluation, list(summary)))
    return tables


def _rows(evaluation: Evaluation[Any], scores: list[str]) -> _Table:
    rows = sorted(evaluation.rows, key=lambda row: not row.failures)
    repeated = any(row.trial > 1 for row in rows)
    head = ["case", *(["trial"] if repeated else []), "output", *scores]
    lines = [
        [row.case.name, *([str(row.trial)] if repeated else []), _came_to(row), *(_score(row, name) for name in scores)]
        for row in rows[:_MOST_ROWS]
    ]
    if len(rows) > _MOST_ROWS:
        lines.append([f"… {len(rows) - _MOST_ROWS} more", *[""] * (len(head) - 1)])
    return head, lines


def _came_to(row: Row[Any]) -> str:
    if row.error is not None:
        return f"! {row.error}"
    output = row.output if isinstance(row.output, str) else _repr(row.output)
    return " ".join([output, *(f"! {each}" for each in row.failures)])


def _score(row: Row[Any], name: str) -> str:
    return number(row.scores[name]) if name in row.scores else ""


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"(its repr raises {type(error).__name__})"


# --- of a comparison --------------------------------------------------------------------------------------------------


def _differences(comparison: Comparison) -> _Table:
    head = ["score", "one", "other", "difference", "95 %", "p", "better", "worse", "same", ""]
    return head, [_difference(name, each) for name, each in comparison.scores.items()]


def _difference(name: str, each: Difference) -> list[str]:
    interval = "" if each.interval is None else f"{each.interval[0]:+.3g} to {each.interval[1]:+.3g}"
    return [
        name,
        number(each.one),
        number(each.other),
        f"{each.difference:+.3g}",
        interval,
        number(each.p),
        str(len(each.better)),
        str(len(each.worse)),
        str(each.same),
        each.verdict,
    ]


def _notes(comparison: Comparison) -> Iterable[str]:
    for name, each in comparison.scores.items():
        for what, cases in (("better", each.better), ("worse", each.worse)):
            if cases:
                yield f"{name}, {what}: {_listed(cases)}"
    for whose, cases in ((comparison.one, comparison.only_in_one), (comparison.other, comparison.only_in_other)):
        if cases:
            yield f"only in {whose}: {_listed(cases)}"
    yield from comparison.notes


def _below(comparison: Comparison) -> str:
    return "\n".join(map(on_one_line, _notes(comparison)))


def _listed(cases: Sequence[str]) -> str:
    more = f" and {len(cases) - 10} more" if len(cases) > 10 else ""
    return ", ".join(cases[:10]) + more


# --- laid out ---------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A score as it stands in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}"


def _or_nothing(value: float | None) -> str:
    return "" if value is None else number(value)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def on_one_line(text: str) -> str:
    r"""Text on one line, without what steers a terminal: names come from arguments, and these from anywhere.

    >>> on_one_line("a\x1b[2J\nb")
    'a [2J b'
    """
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _cell(text: str) -> str:
    text = on_one_line(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _laid_out(tables: Iterable[_Table]) -> Iterable[str]:
    for head, given in tables:
        lines = [[_cell(text) for text in line] for line in (head, *given)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        yield "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


def _drawn(title: str, tables: Sequence[_Table], below: str) -> RenderableType:
    from rich.console import Group  # noqa: PLC0415 - slow to load, and not needed where nobody looks
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    parts: list[Any] = [Text(on_one_line(title), style="bold")]
    for head, lines in tables:
        drawn = Table()
        for name in head:
            drawn.add_column(Text(name))
        for line in lines:
            failed = any(text.startswith("! ") for text in line)
            drawn.add_row(*(Text(_cell(text)) for text in line), style="red" if failed else None)
        parts.append(drawn)
    return Group(*parts, *([Text(below, style="dim")] if below else []))
