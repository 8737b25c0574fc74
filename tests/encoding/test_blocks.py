import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.encoding import to_content_blocks

PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
PAPER = {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}

parts = st.sampled_from([PICTURE, SOUND, PAPER, {"type": "text", "text": "x"}, {"type": "file", "file": 3}])
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | parts
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def linearize(blocks: list[Any]) -> str:
    return "".join(block["text"] if block["type"] == "text" else json.dumps(block) for block in blocks)


@given(values.filter(lambda value: not isinstance(value, str)))
def test_blocks_read_in_order_are_the_json_of_the_value(value):
    assert linearize(to_content_blocks(value)) == json.dumps(value)


@given(values)
def test_neighbouring_text_is_one_block_and_no_block_is_empty(value):
    kinds = [block["type"] for block in to_content_blocks(value)]

    assert ("text", "text") not in list(itertools.pairwise(kinds))
    assert all(block.get("text", "x") for block in to_content_blocks(value))


def test_text_alone_is_bare():
    assert to_content_blocks('say "hi"') == [{"type": "text", "text": 'say "hi"'}]
    assert to_content_blocks("") == []


def test_media_are_blocks_wherever_they_are():
    assert [block["type"] for block in to_content_blocks({"a": [PICTURE, 1, SOUND], "b": PAPER})] == [
        "text",
        "image_url",
        "text",
        "input_audio",
        "text",
        "file",
        "text",
    ]
    assert to_content_blocks(PICTURE) == [PICTURE]
