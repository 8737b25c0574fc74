"""Null in strict mode: for the default, unless the type has one of its own, wherever that is said."""

import dataclasses
import json
from typing import Annotated, Any

import pytest

from effectful_agents import Tool
from effectful_agents.encoding import decode, json_schema, strict_form, tool_codec
from effectful_agents.encoding.strict import admits_null

type Tree = int | list[Tree] | None
type Deeper = Annotated[Tree, "named twice"]
type Whole = int | list[Whole]


@dataclasses.dataclass
class Kept:
    tree: Tree = 5
    deeper: Deeper = 5
    either: str | Tree = 5
    whole: Whole = 5
    plain: int | None = 5


def test_null_behind_a_name_is_a_value_and_not_the_default():
    strict = strict_form(json_schema(Kept))
    said = {name: part.get("description") for name, part in strict.schema["properties"].items()}

    assert said == {
        "tree": "the default is 5",
        "deeper": "the default is 5",
        "either": "the default is 5",
        "whole": "null for the default, 5",
        "plain": "the default is 5",
    }
    nulls = decode(json.dumps(dict.fromkeys(said)), Kept)
    assert nulls == Kept(None, None, None, 5, None)


@pytest.mark.parametrize(("tp", "said"), [(Tree, "the default is 5"), (Whole, "null for the default, 5")], ids=str)
def test_the_same_of_a_parameter(tp, said):
    def plant(x: Any = 5) -> str:
        """Plant."""
        return "planted"

    plant.__annotations__["x"] = tp
    codec = tool_codec(Tool.define(plant))

    assert codec.definition(strict=True)["function"]["parameters"]["properties"]["x"]["description"] == said
    assert codec.decode('{"x": null}').arguments["x"] == (None if tp is Tree else 5)


def test_names_that_lead_nowhere_admit_no_null():
    schema = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": {"$ref": "#/$defs/A"}}}

    assert not admits_null(schema)
