"""Schemas, encoding and decoding, each beside bare pydantic for the same type and value."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from effectful_agents import Tool
from effectful_agents.encoding import answer_codec, decode, encode, tool_codec
from effectful_agents.encoding.adapters import new_adapter
from effectful_agents.encoding.schema import adapter_schema


@dataclasses.dataclass
class Line:
    """A line of an order.

    Attributes:
        dish: Its name on the menu.
    """

    dish: str
    portions: int
    price: float
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Order:
    table: int
    at: datetime.datetime
    lines: list[Line]
    by_name: dict[str, float]


def order(lines: int) -> Order:
    return Order(
        7,
        datetime.datetime(2026, 5, 1, 12, 30),
        [Line(f"dish {number}", number, number + 0.5, ["hot", "no salt"]) for number in range(lines)],
        {f"guest {number}": number / 3 for number in range(lines)},
    )


@Tool.define
def serve(table: int, dish: str, tags: list[str] | None = None) -> str:
    """Serve a dish."""
    raise NotImplementedError


CASES: dict[str, tuple[Any, Any]] = {
    "an int": (int, 7),
    "an order of 3 lines": (Order, order(3)),
    "an order of 100 lines": (Order, order(100)),
    "1000 ints": (list[int], list(range(1000))),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("with_", ["ours", "pydantic"])
def test_encoding(benchmark: Any, case: str, with_: str) -> None:
    tp, value = CASES[case]
    benchmark.group = f"encode {case}"
    adapter = pydantic.TypeAdapter(tp)
    written = benchmark(
        (lambda: encode(value, tp)) if with_ == "ours" else lambda: adapter.dump_python(value, mode="json")
    )
    assert written == encode(value, tp)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("with_", ["ours", "ours, as an answer", "pydantic"])
def test_decoding(benchmark: Any, case: str, with_: str) -> None:
    tp, value = CASES[case]
    benchmark.group = f"decode {case}"
    text = json.dumps(encode(value, tp))
    wrapped = text if tp is Order else f'{{"value": {text}}}'
    codec, adapter = answer_codec(tp), pydantic.TypeAdapter(tp)
    ways: dict[str, Callable[[], Any]] = {
        "ours": lambda: decode(text, tp),
        "ours, as an answer": lambda: codec.decode(wrapped),
        "pydantic": lambda: adapter.validate_json(text),
    }
    assert benchmark(ways[with_]) == value


def test_arguments_of_a_tool(benchmark: Any) -> None:
    codec = tool_codec(serve)
    bound = benchmark(lambda: codec.decode('{"table": 7, "dish": "soup"}'))
    assert bound.args == (7, "soup", None)


def test_a_loose_answer(benchmark: Any) -> None:
    """What is forgiven costs a second look."""
    codec = answer_codec(Line)
    text = '{"dish": "soup", "portions": "2", "price": 3}'
    assert benchmark(lambda: codec.decode(text)) == Line("soup", 2, 3.0)


@pytest.mark.parametrize("with_", ["ours", "pydantic"])
def test_describing_a_type(benchmark: Any, with_: str) -> None:
    """Done once for each annotation."""
    benchmark.group = "describe a type"

    def ours() -> Any:
        adapter = new_adapter(Order)
        return adapter.validator, adapter.write, adapter_schema(Order, adapter)

    def bare() -> Any:
        return pydantic.TypeAdapter(Order).json_schema()

    assert benchmark(ours if with_ == "ours" else bare)
