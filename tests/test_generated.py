"""Sources that are in no file."""

from __future__ import annotations

import inspect
import linecache

from effectful_agents.generated import generated_name, is_generated, remember_source, source_of


def test_a_name_tells_sources_apart_and_is_the_same_for_the_same():
    names = {generated_name(text, label) for text in ("a", "b", "a") for label in ("x", "y")}
    assert len(names) == 4


def test_the_lines_of_a_source_are_found():
    source = "def f():\n    return 1"
    name = generated_name(source, "f")
    remember_source(source, name)
    code = compile(source, name, "exec")
    names: dict[str, object] = {}
    exec(code, names)
    assert source_of(code) == source
    assert inspect.getsource(names["f"]) == source + "\n"  # ty: ignore[invalid-argument-type]
    assert is_generated(names["f"])
    assert not is_generated(test_the_lines_of_a_source_are_found)
    linecache.checkcache(name)
    assert linecache.getline(name, 2) == "    return 1\n"


def test_an_empty_source_is_one_too():
    remember_source("", "<empty>")
    assert source_of(compile("", "<empty>", "exec")) == ""


def test_the_oldest_are_forgotten_when_there_are_thousands():
    first = generated_name("first", "x")
    remember_source("first", first)
    for number in range(5000):
        remember_source(str(number), f"<many {number}>")
    assert source_of(compile("1", first, "eval")) is None
    assert first not in linecache.cache
    assert linecache.getline("<many 4999>", 1) == "4999\n"
