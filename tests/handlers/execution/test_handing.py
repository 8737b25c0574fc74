"""What restricted code hands to a tool fits the types of the parameters, whether it can be called or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from effectful_agents import Tool, handler
from effectful_agents.operations import policy
from effectful_agents.operations.policy import ALLOW, Disposition, ProposedEffect
from effectful_agents.runtime import ObjectInterpretation, implements
from tests.sandbox.running import run

CLASSES = """
class Fake:
    def __call__(self, n=1): return n + 1
    def __gt__(self, other): return False
class List(list): __call__ = Fake.__call__
class Dict(dict): __call__ = Fake.__call__
class Number(int): __call__ = Fake.__call__
"""


class Allow(ObjectInterpretation):
    @implements(policy.decide)
    def decide(self, effect: ProposedEffect) -> Disposition:
        return ALLOW


def handed(call: str, **types: Any) -> Any:
    """What a tool with such parameters gets."""
    got: list[Any] = []

    def tool(**given: Any) -> int:
        """Take it."""
        got.extend(given.values())
        return 1

    names = ", ".join(types)
    made: dict[str, Any] = {"tool": tool}
    exec(f"def take({names}):\n  'Take it.'\n  return tool({', '.join(f'{n}={n}' for n in types)})", made)
    made["take"].__annotations__ = {**types, "return": int}
    with handler(Allow()):
        run(CLASSES + call, {"take": Tool.define(made["take"])})
    return got[0]


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (int, "Fake()"),
        (int, "len"),
        (int, "lambda: 1"),
        (str, "type('x')"),
        (list[int], "[Fake()]"),
        (list[int], "Fake()"),
        (dict[str, int], "Dict(a='x')"),
        (int | None, "Fake()"),
    ],
)
def test_what_can_be_called_has_to_fit_too(tp, value):
    with pytest.raises(TypeError, match="does not fit"):
        handed(f"take({value})", x=tp)


@pytest.mark.parametrize(
    ("tp", "value", "plain"),
    [
        (list[int], "List([1, 2])", [1, 2]),
        (dict[str, int], "Dict(a=1)", {"a": 1}),
        (int, "Number(500)", 500),
    ],
)
def test_what_fits_is_of_no_class_of_the_code(tp, value, plain):
    found = handed(f"take({value})", x=tp)
    assert (type(found), found) == (type(plain), plain)


@pytest.mark.parametrize("value", ["lambda n: n + 1", "Fake()", "Fake().__call__"])
@pytest.mark.parametrize("tp", [Callable[[int], int], Callable[[int], int] | None, Callable])
def test_a_function_is_handed_over_where_one_is_asked_for(tp, value):
    found = handed(f"take({value})", x=tp)
    assert found(2) == 3
    assert type(found).__name__ in ("function", "method")


def test_a_class_is_handed_over_where_one_is_asked_for():
    assert handed("take(int)", x=type[int]) is int
