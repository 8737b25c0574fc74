"""The economy of a whole run: the sums of its turns."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from effectful_agents.handlers.observability.context_economy.picture import drawn
from effectful_agents.handlers.observability.context_economy.sheets import written
from effectful_agents.handlers.observability.context_economy.turns import (
    PrefixBreak,
    Section,
    ToolEconomy,
    TurnEconomy,
    TurnOutcome,
)
from effectful_agents.messages import Usage

__all__ = ["ContextEconomy", "ModelEconomy", "RetryEconomy"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelEconomy:
    """What one model was asked and paid for.

    Attributes:
        turns: Turns to which it replied.
        usage: What was reported of them; a count is None where that of one turn is not known.
        cost: In US dollars; None where that of one turn is not known.
    """

    turns: int
    usage: Usage
    cost: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RetryEconomy:
    """What was asked and led to nothing.

    Requests that a handler inside of the step repeats, such as after an overloaded service, are one turn here.

    Attributes:
        refused: Turns whose reply was not taken; their tokens and cost are in the sums of the run as well.
        failed: Turns that ended with an error, and are in no sum.
        unknown: Turns of which nobody knows what came, and that are in no sum.
        usage: What was reported of the refused ones; a count is None where that of one is not known.
        cost: Of the refused ones, in US dollars; None where that of one is not known.
    """

    refused: int
    failed: int
    unknown: int
    usage: Usage
    cost: float | None


@dataclasses.dataclass(frozen=True)
class ContextEconomy:
    """What the models of a run were shown, and what it cost.

    Sums are over the turns that had a reply. How each is counted, `TurnEconomy` says. A sum of what was reported is
    None where one of its parts was not.

    Attributes:
        run_id: The run; empty where there was none.
        turns: All turns in order, those of nested calls and those without a reply too.
        repeated: How often calls of tools were made again, as after a crash, by tool.

    >>> turn = TurnEconomy(step_id="000001-model", skill="trip", model="m", outcome=TurnOutcome.REPLIED,
    ...     sections={Section.USER: 10}, usage=Usage(input=12, output=3, cache_read=6))
    >>> whole = ContextEconomy("monday", (turn, turn))
    >>> whole.tokens, whole.usage.output, whole.cached, whole.cost is None
    (20, 6, 0.5, True)
    """

    run_id: str
    turns: Sequence[TurnEconomy] = ()
    repeated: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def counted(self) -> Sequence[TurnEconomy]:
        """The turns that had a reply."""
        return tuple(turn for turn in self.turns if turn.is_counted)

    @functools.cached_property
    def attempted(self) -> Sequence[TurnEconomy]:
        """The turns without one. They were attempted, and nobody knows what they cost."""
        return tuple(turn for turn in self.turns if not turn.is_counted)

    @property
    def tokens(self) -> int:
        """Tokens of all prompts, as counted here."""
        return sum(self.sections.values())

    @functools.cached_property
    def sections(self) -> Mapping[Section, int]:
        """Tokens by part of the prompts."""
        found = _sums(turn.sections for turn in self.counted)
        return {section: found[section] for section in Section if section in found}

    @functools.cached_property
    def system(self) -> Mapping[str, int]:
        """Tokens by section of the system messages."""
        return _sums(turn.system for turn in self.counted)

    @functools.cached_property
    def tools(self) -> Mapping[str, ToolEconomy]:
        """Tokens by tool."""
        found: dict[str, ToolEconomy] = {}
        for turn in self.counted:
            for name, tool in turn.tools.items():
                found[name] = found.get(name, ToolEconomy()) + tool
        return found

    @property
    def estimated(self) -> bool:
        """Whether one of the counts is an estimate."""
        return any(turn.estimated for turn in self.counted)

    @functools.cached_property
    def usage(self) -> Usage:
        """What was reported; a count is None where that of one turn is not known."""
        return _used(self.counted)

    @property
    def cost(self) -> float | None:
        """In US dollars; None where that of one turn is not known, or there is no turn."""
        return _cost(self.counted)

    @functools.cached_property
    def cached(self) -> float | None:
        """The share of the prompts that was served from a cache, of the turns for which it was reported."""
        known = [turn.usage for turn in self.counted if turn.cached is not None]
        read = sum(usage.input or 0 for usage in known)
        return min(1.0, sum(usage.cache_read or 0 for usage in known) / read) if read else None

    @functools.cached_property
    def models(self) -> Mapping[str, ModelEconomy]:
        """What each model that replied was paid for, by its name."""
        found: dict[str, list[TurnEconomy]] = {}
        for turn in self.counted:
            found.setdefault(turn.model, []).append(turn)
        return {
            model: ModelEconomy(turns=len(turns), usage=_used(turns), cost=_cost(turns))
            for model, turns in found.items()
        }

    @property
    def breaks(self) -> Sequence[tuple[TurnEconomy, PrefixBreak]]:
        """The turns whose prompt does not go on from the one before it, and what broke it."""
        return tuple((turn, turn.broken) for turn in self.turns if turn.broken is not None)

    @property
    def retries(self) -> RetryEconomy:
        """What was asked and led to nothing."""
        refused = [turn for turn in self.counted if turn.outcome is TurnOutcome.REFUSED]
        failed = sum(turn.outcome is TurnOutcome.FAILED for turn in self.attempted)
        return RetryEconomy(
            refused=len(refused),
            failed=failed,
            unknown=len(self.attempted) - failed,
            usage=_used(refused),
            cost=_cost(refused) if refused else 0.0,
        )

    # --- to be shown --------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """All of it as plain text."""
        return written(self)

    def table(self) -> Any:
        """All of it as tables of rich, for a terminal."""
        from effectful_agents.handlers.observability.context_economy.table import tables  # noqa: PLC0415 - loads rich

        return tables(self)

    def to_svg(self) -> str:
        """A picture: a bar for each turn, its parts on top of each other, and how far it was served from a cache."""
        return drawn(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """All of it as JSON.

        Args:
            indent: Blanks by which what is nested is indented; None for one line.
        """
        return json.dumps(self.as_data(), indent=indent)

    def as_data(self) -> dict[str, Any]:
        """All of it as plain data."""
        whole = _data(self) | {
            "turns": len(self.turns),
            "counted": len(self.counted),
            "models": {model: dataclasses.asdict(known) for model, known in self.models.items()},
            "retries": dataclasses.asdict(self.retries),
            "repeated": dict(self.repeated),
        }
        return {"run_id": self.run_id, "whole": whole, "turns": [_of_turn(turn) for turn in self.turns]}


def _of_turn(turn: TurnEconomy) -> dict[str, Any]:
    about = {name: getattr(turn, name) for name in ("step_id", "attempt", "skill", "model", "outcome", "error")}
    broken = None if turn.broken is None else dataclasses.asdict(turn.broken)
    return about | _data(turn) | {"agreed": turn.agreed, "broken": broken}


def _data(economy: ContextEconomy | TurnEconomy) -> dict[str, Any]:
    return {
        "tokens": economy.tokens,
        "estimated": economy.estimated,
        "sections": {section.value: tokens for section, tokens in economy.sections.items()},
        "system": dict(economy.system),
        "tools": {name: dataclasses.asdict(tool) for name, tool in economy.tools.items()},
        "usage": dataclasses.asdict(economy.usage),
        "cached": economy.cached,
        "cost": economy.cost,
    }


def _sums[K](counts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    found: dict[K, int] = {}
    for each in counts:
        for name, tokens in each.items():
            found[name] = found.get(name, 0) + tokens
    return found


def _used(turns: Sequence[TurnEconomy]) -> Usage:
    usages = [turn.usage for turn in turns]
    return Usage(
        input=_sum(usage.input for usage in usages),
        output=_sum(usage.output for usage in usages),
        reasoning=_sum(usage.reasoning for usage in usages),
        cache_read=_sum(usage.cache_read for usage in usages),
        cache_write=_sum(usage.cache_write for usage in usages),
        estimated=any(usage.estimated for usage in usages),
    )


def _cost(turns: Sequence[TurnEconomy]) -> float | None:
    return _sum(turn.cost for turn in turns)


def _sum[N: (int, float)](numbers: Iterable[N | None]) -> N | None:
    """The sum; None where a number is not known, or there is none: what leaves something out is taken for the whole."""
    given = list(numbers)
    known = [number for number in given if number is not None]
    return sum(known) if given and len(known) == len(given) else None
