"""Keywords of JSON schema that users write themselves."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from effectful_agents import Tool
from effectful_agents.encoding import json_schema, tool_codec
from effectful_agents.errors import EncodingError


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"description": 5, "deprecated": True}, "`description`"),
        ({"anyOf": 5}, "`anyOf`"),
        ({"anyOf": [5]}, "stands for a schema"),
        ({"type": "object", "properties": ["a"]}, "`properties`"),
        ({"type": "object", "properties": {"a": 5}}, "stands for a schema"),
        ({"type": "object", "required": "a"}, "`required`"),
        ({"type": "array", "items": 3}, "`items`"),
        ({"type": "array", "minItems": "1"}, "`minItems`"),
        ({"enum": "abc"}, "`enum`"),
        ({"type": 7}, "`type`"),
        ({"pattern": 7}, "`pattern`"),
    ],
    ids=str,
)
def test_a_keyword_that_says_nothing_is_refused_by_name(keywords, named):
    for tp in (Annotated[int, WithJsonSchema(keywords)], list[Annotated[int, Field(json_schema_extra=keywords)]]):
        with pytest.raises(EncodingError, match=f"no form on the wire: .*{named}"):
            json_schema(tp)

    def use(x: Any) -> None:
        """Use it."""

    use.__annotations__["x"] = Annotated[int, WithJsonSchema(keywords)]
    with pytest.raises(EncodingError, match=f"the parameter `x` of `use` cannot be described: .*{named}"):
        tool_codec(Tool.define(use))


def test_what_fails_while_a_schema_is_tidied_names_the_type():
    class Odd(BaseModel):
        model_config = ConfigDict(json_schema_extra={"title": 5})

        a: int

    with pytest.raises(EncodingError, match=r"`tuple\[Odd, Odd\]` has no form on the wire") as raised:
        json_schema(tuple[Odd, Odd])
    assert isinstance(raised.value.__cause__, TypeError)


def test_a_keyword_that_is_right_stays():
    about = {"description": "Told.", "deprecated": True, "minimum": 3}

    assert json_schema(Annotated[int, Field(json_schema_extra=about)]) == {
        "type": "integer",
        "description": "Told (deprecated)",
        "minimum": 3,
    }
