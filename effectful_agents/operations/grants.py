"""Kinds of effects that are granted, and what becomes of those that are not."""

from __future__ import annotations

from collections.abc import Iterable

from effectful_agents.errors import OptionError
from effectful_agents.operations.policy import Decision, Disposition, EffectKind, ProposedEffect

__all__ = ["granted_kinds", "not_granted"]


def granted_kinds(names: Iterable[EffectKind | str]) -> frozenset[EffectKind]:
    """Kinds of effects by their names.

    Raises:
        OptionError: There is no such kind.

    >>> granted_kinds(["model_call"])
    frozenset({<EffectKind.MODEL_CALL: 'model_call'>})
    """
    try:
        return frozenset(map(EffectKind, names))
    except ValueError as error:
        raise OptionError(
            f"{error}; the kinds of effects are {', '.join(kind.value for kind in EffectKind)}."
        ) from error


def not_granted(effect: ProposedEffect, remedy: str) -> Decision:
    """The decision about an effect whose kind is not granted: the call ends where it could not go on without it.

    Args:
        effect: The effect.
        remedy: What would grant it.
    """
    disposition = Disposition.DENY_STEP if effect.kind in _GOES_ON_WITHOUT else Disposition.TERMINATE_RUN
    return Decision(disposition, "not_granted", f"`{effect.kind}` is not granted; {remedy}.")


_GOES_ON_WITHOUT = frozenset({EffectKind.TOOL_CALL, EffectKind.DELEGATE, EffectKind.IMPORT})
