"""Server-sent events, however the body was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.handlers.provision.http import sse
from tests.handlers.provision.http.server import recorded


def cut(body: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b"data: a\n\ndata:b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\r", ["a", "b"]),
        (b"data: a\ndata: b\n\n", ["a\nb"]),
        (b"data:  a\n\n", [" a"]),
        (b": a comment\n\nevent: message\nid: 1\ndata: a\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a\n\ndata: b", ["a", "b"]),
        (b"data\n\n", [""]),
        ("data: a\u2028b\x85c\x0bd\n\n".encode(), ["a\u2028b\x85c\x0bd"]),
        (b"data: \xff\n\n", ["\ufffd"]),
    ],
)
@given(places=st.lists(st.integers(0, 100), max_size=8))
def test_each_event_gives_its_data(body, expected, places):
    assert list(sse.events(cut(body, places))) == expected


@given(places=st.lists(st.integers(0, 10_000), max_size=40), end=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_where_a_recorded_body_is_cut_does_not_matter(places, end):
    body = recorded("openai.sse")
    assert list(sse.events(cut(body.replace(b"\n", end), places))) == list(sse.events([body]))


def test_an_event_is_there_before_the_body_ends():
    def body():
        yield b"data: a\n\n"
        raise AssertionError("read too far")

    assert next(sse.events(body())) == "a"


def test_an_event_that_breaks_off_is_none():
    body = [b"data: whole\n\ndata: whole by", b" itself"]
    assert list(sse.events(body, lambda data: data.endswith("itself"))) == ["whole", "whole by itself"]
    assert list(sse.events(body, lambda data: data.endswith("more"))) == ["whole"]


def test_a_line_in_many_pieces_is_one():
    assert list(sse.events([b"data: ", *[b"x"] * 10_000, b"\n\n"])) == ["x" * 10_000]
