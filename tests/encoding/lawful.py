"""What the laws over random types share: how many examples, and what a model would send of a value."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from effectful_agents import Tool
from effectful_agents.encoding import (
    json_schema,
    tool_codec,
)
from tests.encoding.random_types import Case, Recipe, build, recipes

EXAMPLES, MANY = 100, 600
MEDIA = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "text", "text": "not a block"},
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | MEDIA,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)

PHASES = [phase for phase in Phase if phase is not Phase.explain]


def law(examples: int = EXAMPLES, many: int = MANY) -> Callable[[Callable[..., None]], Any]:
    """Make a law a parametrised test: `few` examples always, `many` where slow tests run."""

    def decorate(check: Callable[..., None]) -> Any:
        def run(count: int) -> None:
            chosen = settings(
                max_examples=count,
                deadline=None,
                phases=PHASES,
                suppress_health_check=list(HealthCheck),
                database=None,
                derandomize=True,  # what stops a merge is a fault of the change, not of the day
            )
            chosen(given(recipes(), st.data())(check))()

        def test(count: int) -> None:
            run(count)

        test.__name__ = test.__qualname__ = check.__name__
        test.__doc__ = check.__doc__
        test.law = check
        sizes = [pytest.param(examples, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
        return pytest.mark.parametrize("count", sizes)(test)

    return decorate


# --- what a model would send ------------------------------------------------------------------------------------------


def as_answer(tp: Any, encoded: Any) -> Any:
    """The JSON of an answer: the value, or an object around it where the value is none."""
    return encoded if json_schema(tp).get("type") == "object" else {"value": encoded}


def tool_with(tp: Any, default: Any = ...) -> Tool[..., Any]:
    """A tool with one parameter `x`, and with a result of the same type."""

    def use(x): ...

    use.__doc__ = "Use it."
    use.__annotations__ = {"x": tp, "return": tp}
    use.__defaults__ = () if default is ... else (default,)
    return Tool.define(use)


def parameters_of(tool: Tool[..., Any], strict: bool = False) -> dict[str, Any]:
    return tool_codec(tool).definition(strict=strict)["function"]["parameters"]


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def misfit(schema: Mapping[str, Any], value: Any) -> str:
    """Why a value is not what a schema says; empty where it is."""
    if _has_non_finite(value):  # JSON has no such numbers: they are texts where the schema says number
        return ""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return "\n".join(f"{error.json_path}: {error.message}" for error in errors)


def _has_non_finite(value: Any) -> bool:
    return any(f'"{name}"' in json.dumps(value) for name in ("NaN", "Infinity", "-Infinity"))


def drawn(recipe: Recipe, data: Any) -> tuple[Case, Any]:
    case = build(recipe)
    return case, data.draw(case.values, label="value")


def settled(back: Any) -> Any:
    return list(back) if isinstance(back, Iterator) else back
