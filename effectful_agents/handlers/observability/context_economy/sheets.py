"""The economy of a run as tables, for text and for a terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from effectful_agents.encoding.questions import printable_text
from effectful_agents.handlers.observability.context_economy.turns import Section, TurnEconomy, TurnOutcome
from effectful_agents.messages import Usage

if TYPE_CHECKING:
    from effectful_agents.handlers.observability.context_economy.whole import ContextEconomy

__all__ = ["Sheet", "sheets", "summary_of", "written"]


@dataclasses.dataclass(frozen=True)
class Sheet:
    """A table: its title, the heads of its columns, its rows, and which columns are words and not numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[int] = frozenset({0})


def written(economy: ContextEconomy) -> str:
    """All of it as plain text."""
    parts = ["\n".join(summary_of(economy))]
    for sheet in sheets(economy):
        widths = [max(map(len, column)) for column in zip(sheet.heads, *sheet.rows, strict=True)]
        lines = [_line(row, widths, sheet.words) for row in (sheet.heads, *sheet.rows)]
        parts.append("\n".join([sheet.title, *(f"  {line}" for line in lines)]))
    return "\n\n".join(parts)


def _line(row: Sequence[str], widths: Sequence[int], words: frozenset[int]) -> str:
    cells = (
        cell.ljust(width) if place in words else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def summary_of(economy: ContextEconomy) -> Iterator[str]:
    """The run in a few lines."""
    counted, others = len(economy.counted), len(economy.attempted)
    facts = [
        printable_text(economy.run_id),
        f"{counted:,} turn{'' if counted == 1 else 's'}",
        *_used(economy),
        *([_dollars(economy.cost)] if economy.cost is not None else ["cost not known"]),
    ]
    yield "  ".join(filter(None, facts))
    yield from _unreported(economy)
    if others:
        were = "turn has no reply and is" if others == 1 else "turns have no reply and are"
        yield f"{others:,} {were} in no sum: nobody knows what was paid."
    retries = economy.retries
    if retries.refused:
        cost = f", {_dollars(retries.cost)}" if retries.cost is not None else ""
        yield (
            f"{retries.refused:,} of the replies {'was' if retries.refused == 1 else 'were'} refused, and asked for "
            f"again: {', '.join(_tokens(retries.usage))}{cost}."
        )
    if economy.repeated:
        calls = ", ".join(f"{printable_text(name)} {count:,}" for name, count in economy.repeated.items())
        yield f"Calls of tools that were made again: {calls}."
    if economy.estimated:
        yield "Tokens of the parts are estimated; those that a provider reported stand under REPORTED."


def _used(economy: ContextEconomy) -> Iterator[str]:
    yield from _tokens(economy.usage)
    if economy.cached is not None:
        known = sum(turn.cached is not None for turn in economy.counted)
        of = "" if known == len(economy.counted) else f" in the {known:,} turn{'s' * (known > 1)} that reported it"
        yield f"{economy.cached:.0%} from a cache{of}"


def _tokens(usage: Usage) -> Iterator[str]:
    if usage.input is None and usage.output is None:
        yield "tokens not known"
    else:
        yield "tokens in not known" if usage.input is None else f"{usage.input:,} tokens in"
        yield "out not known" if usage.output is None else f"{usage.output:,} out"


def _unreported(economy: ContextEconomy) -> Iterator[str]:
    """What is known all the same where some turns have no number of tokens."""
    known = [turn.usage for turn in economy.counted if None not in (turn.usage.input, turn.usage.output)]
    missing = len(economy.counted) - len(known)
    if known and missing:
        read, written = (sum(getattr(usage, name) for usage in known) for name in ("input", "output"))
        turns = "turn has" if missing == 1 else "turns have"
        yield f"{missing:,} {turns} no number of tokens; the others have {read:,} in, {written:,} out."


def sheets(economy: ContextEconomy) -> Iterator[Sheet]:
    """The tables: turns, sections of the system message, tools, models, and what broke the prefix."""
    if economy.turns:
        yield _turns(economy)
        yield _parts(economy)
    counted = max(1, len(economy.counted))
    if len(economy.system) > 1:
        rows = [[printable_text(title), f"{n:,}", f"{n // counted:,}"] for title, n in _largest(economy.system)]
        yield Sheet("System message", ["SECTION", "TOKENS", "A TURN"], rows)
    if economy.tools:
        largest = sorted(economy.tools.items(), key=lambda item: -(item[1].definition + item[1].results))
        rows = [
            [printable_text(name), f"{tool.calls:,}", f"{tool.definition:,}", f"{tool.results:,}"]
            for name, tool in largest
        ]
        yield Sheet("Tools, in tokens of all prompts", ["TOOL", "CALLS", "DEFINITION", "RESULTS"], rows)
    if economy.models:
        rows = [
            [
                printable_text(model) or "(not recorded)",
                f"{known.turns:,}",
                *map(_number, (known.usage.input, known.usage.cache_read, known.usage.output)),
                _dollars(known.cost),
            ]
            for model, known in economy.models.items()
        ]
        yield Sheet("Models", ["MODEL", "TURNS", "INPUT", "CACHED", "OUTPUT", "COST"], rows)
    if economy.breaks:
        numbers = {id(turn): number for number, turn in enumerate(economy.turns, 1)}
        rows = [
            [f"{numbers[id(turn)]}", f"{turn.agreed:,}", f"{broken.lost:,}", printable_text(str(broken))]
            for turn, broken in economy.breaks
        ]
        yield Sheet("Where the prefix broke", ["TURN", "KEPT", "LOST", "WHAT"], rows, frozenset({3}))


def _largest(counts: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])


_SHORT = {
    Section.TOOLS: "TOOLS",
    Section.FORM: "FORM",
    Section.SYSTEM: "SYSTEM",
    Section.EARLIER: "EARLIER",
    Section.USER: "USER",
    Section.REPLIES: "REPLIES",
    Section.RESULTS: "RESULTS",
}


def _turns(economy: ContextEconomy) -> Sheet:
    heads = ["TURN", "STEP", "SKILL", "PROMPT", "REPORTED", "CACHED", "OUTPUT", "COST", "NOTE"]
    rows = [_row(number, turn) for number, turn in enumerate(economy.turns, 1)]
    rows.append(["all", "", "", f"{economy.tokens:,}", *_reported(economy), ""])
    return Sheet("Turns, in tokens", heads, rows, frozenset({1, 2, len(heads) - 1}))


def _row(number: int, turn: TurnEconomy) -> list[str]:
    step = turn.step_id if turn.attempt == 1 else f"{turn.step_id} (attempt {turn.attempt})"
    notes = [] if turn.outcome is TurnOutcome.REPLIED else [turn.outcome.value]
    notes += ["prefix broken"] if turn.broken is not None else []
    said = [printable_text(text) for text in (step, turn.skill)]
    return [f"{number}", *said, f"{turn.tokens:,}", *_reported(turn), ", ".join(notes)]


def _reported(economy: ContextEconomy | TurnEconomy) -> list[str]:
    usage = economy.usage
    return [_number(usage.input), _share(economy.cached), _number(usage.output), _dollars(economy.cost)]


def _parts(economy: ContextEconomy) -> Sheet:
    there = [section for section in Section if any(section in turn.sections for turn in economy.turns)]
    turns: list[tuple[str, ContextEconomy | TurnEconomy]] = [
        *((f"{number}", turn) for number, turn in enumerate(economy.turns, 1)),
        ("all", economy),
    ]
    rows = [
        [name, *(_number(each.sections.get(section)) for section in there), f"{each.tokens:,}"] for name, each in turns
    ]
    return Sheet("Prompts by part", ["TURN", *(_SHORT[section] for section in there), "PROMPT"], rows, frozenset())


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _dollars(cost: float | None) -> str:
    return "-" if cost is None else f"${cost:.4f}"
