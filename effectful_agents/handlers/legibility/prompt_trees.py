"""JSON and YAML as one tree of texts that knows its places, and the prompts in it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from effectful_agents.errors import MissingDependencyError, PromptError
from effectful_agents.handlers.legibility.prompts import without_empty_lines
from effectful_agents.operations.templates import PromptTemplate

__all__ = ["Read", "Tree", "read_json", "read_yaml", "templates_of"]

type Read = Callable[[str, str], Tree | None]
"""Reads a text: of this file, whose name is shown. None for an empty text."""

_TEXT, _NUMBER, _MAPPING = "a text", "a number", "a mapping"


@dataclasses.dataclass(frozen=True)
class Tree:
    """A value of a file.

    Attributes:
        kind: What it is, in words.
        place: Where it stands, for errors.
        text: A text, or a number as it is written: `1.10` is another version than `1.1`.
        entries: The keys and values of a mapping, in the order of the file.
    """

    kind: str
    place: str
    text: str = ""
    entries: tuple[tuple[str, str, Tree], ...] = ()

    def mapping(self, shown: str, what: str) -> Mapping[str, Tree]:
        """The values by their keys.

        Raises:
            PromptError: It is no mapping, or a key stands twice.
        """
        if self.kind != _MAPPING:
            raise PromptError(f"{shown}{self.place}: {what} is {self.kind}; it must be a mapping.")
        found: dict[str, Tree] = {}
        for key, place, value in self.entries:
            if key in found:
                raise PromptError(f"{shown}{place}: `{key}` stands there twice.")
            found[key] = value
        return found

    def fields(self, shown: str, known: Collection[str], what: str) -> dict[str, str]:
        """The texts of a mapping that has no other keys than these; only a version may be a number.

        Raises:
            PromptError: It has another key, or a value of another kind.
        """
        found = self.mapping(shown, what)
        names = " and ".join(f"`{name}`" for name in sorted(known))
        for key, value in found.items():
            if key not in known:
                raise PromptError(f"{shown}{value.place}: {what} has a key `{key}`; it can have {names}.")
            if value.kind != _TEXT and not (key == "version" and value.kind == _NUMBER):
                raise PromptError(f"{shown}{value.place}: the `{key}` is {value.kind}; it must be a text.")
        return {key: value.text for key, value in found.items()}


def templates_of(tree: Tree, shown: str) -> Iterator[PromptTemplate]:
    """The prompts of a file that maps names to them.

    Raises:
        PromptError: Something in it is of another kind than it should be.
    """
    for name, value in tree.mapping(shown, "the whole").items():
        if value.kind == _TEXT:
            text, version = value.text, ""
        elif value.kind == _MAPPING:
            about = value.fields(shown, {"text", "version"}, f"the prompt `{name}`")
            if "text" not in about:
                raise PromptError(f"{shown}{value.place}: the prompt `{name}` has no `text`.")
            text, version = about["text"], about.get("version", "")
        else:
            raise PromptError(
                f"{shown}{value.place}: the prompt `{name}` is {value.kind}; it must be a text, or a mapping with a "
                "`text` and a `version`."
            )
        yield PromptTemplate(name, without_empty_lines(text), version, shown)


# --- JSON -------------------------------------------------------------------------------------------------------------


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, those too whose key stands twice."""


def read_json(text: str, shown: str) -> Tree:
    """Read JSON.

    Raises:
        PromptError: It is none.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
        return _of_json(value, "")
    except json.JSONDecodeError as error:
        raise PromptError(f"{shown}, line {error.lineno}, column {error.colno}: no JSON: {error.msg}.") from error
    except RecursionError as error:
        raise PromptError(f"{shown}: it is nested too deeply.") from error


def _of_json(value: Any, place: str) -> Tree:
    match value:
        case _Pairs():
            here = [(key, f"{place}: `{key}`", one) for key, one in value]
            return Tree(_MAPPING, place, entries=tuple((key, path, _of_json(one, path)) for key, path, one in here))
        case _Number():
            return Tree(_NUMBER, place, text=str(value))
        case str():
            return Tree(_TEXT, place, text=value)
        case list():
            return Tree("a list", place)
        case None:
            return Tree("null", place)
        case _:
            return Tree("a truth value", place)


# --- YAML -------------------------------------------------------------------------------------------------------------

_MOST_ALIASES = 1000

_TAGS = {"str": _TEXT, "int": _NUMBER, "float": _NUMBER, "timestamp": _NUMBER, "null": "null", "bool": "a truth value"}


def read_yaml(text: str, shown: str, line: int = 1) -> Tree | None:
    """Read YAML; a key is the text that it is written as, so that `no` and `1.10` are names.

    Args:
        text: The text.
        shown: The name of its file.
        line: The line of the file at which it begins.

    Returns:
        The tree; None for an empty text.

    Raises:
        PromptError: It is none.
        MissingDependencyError: PyYAML is not installed.
    """
    try:
        import yaml  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingDependencyError(f'{shown}: YAML needs PyYAML: pip install "effectful-agents[yaml]"') from error

    def place(mark: Any) -> str:
        return f", line {mark.line + line}, column {mark.column + 1}"

    seen: set[int] = set()
    again = 0

    def of_node(node: Any) -> Tree:
        nonlocal again
        at = place(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            again += id(node) in seen
            seen.add(id(node))
            if again > _MOST_ALIASES:  # a few lines of them could stand for a billion
                raise PromptError(f"{shown}{at}: mappings are used again by their names (`*…`) too often.")
            return Tree(_MAPPING, at, entries=tuple(entry(key, value) for key, value in node.value))
        if isinstance(node, yaml.SequenceNode):
            return Tree("a list", at)
        prefix, _, tag = node.tag.rpartition(":")
        kind = _TAGS.get(tag) if prefix == "tag:yaml.org,2002" else None
        return Tree(kind or f"something of the type `{tag or node.tag}`", at, text=node.value)

    def entry(key: Any, value: Any) -> tuple[str, str, Tree]:
        at = place(key.start_mark)
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            raise PromptError(f"{shown}{at}: a key must be a text.")
        return key.value, at, of_node(value)

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if root is None else of_node(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else place(mark)
        raise PromptError(f"{shown}{where}: no YAML: {error.problem or error.context}.") from error
    except yaml.YAMLError as error:
        raise PromptError(f"{shown}: no YAML: {error}") from error
    except RecursionError as error:
        raise PromptError(f"{shown}: it is nested too deeply.") from error
