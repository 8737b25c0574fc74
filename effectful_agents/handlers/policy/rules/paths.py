"""A rule about the files that tools reach."""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any

import pydantic

from effectful_agents.errors import OptionError
from effectful_agents.handlers.policy.rules.options import names_given
from effectful_agents.handlers.policy.rules.parameters import check_names
from effectful_agents.handlers.policy.rules.rule import Rule
from effectful_agents.handlers.policy.rules.settings import tool_names
from effectful_agents.handlers.policy.rules.values import CONTAINERS, NotUnderstood, parts
from effectful_agents.handlers.policy.tools import Tools, chosen_tools, is_call_of
from effectful_agents.operations.policy import Decision, Disposition, ProposedEffect
from effectful_agents.types import Tool
from effectful_agents.types.kinds import is_a

__all__ = ["PathRule"]


class PathRule(Rule):
    """Let tools reach files in some folders only.

    It is about every `Path` in the arguments, texts where the tool takes a `Path`, and texts in what is named, whether
    it is an argument, a key of a mapping or an attribute of an object. Links and `..` are resolved first, against the
    folder that the program runs in, and the tool gets the path so resolved, so that it is what was looked at. In an
    object, or as a key, a path cannot be put in place of another, and has to be given resolved.

    What it does not know is refused: in what is named, everything but texts, paths, None, and lists, tuples, sets and
    dicts of them; elsewhere, what cannot be looked into, such as a generator. What changes in the folders between this
    and the tool's own access is the tool's to guard.

    Args:
        folders: The folders, at least one.
        tools: The tool, or the tools, that it is for, a method for all that override it, too; None: all.
        arguments: Names of arguments whose texts are paths.

    Raises:
        OptionError: There is no folder, `arguments` is no list of names, or none of `tools` has an argument of that
            name.

    >>> rule = PathRule("/srv/data", arguments=["file"])
    >>> asked = ProposedEffect(kind="tool_call", name="read", arguments={"file": "/srv/data/../../etc/passwd"})
    >>> rule.tool_call(asked).message
    'The path /etc/passwd is outside of the folders that are allowed.'
    >>> rule.tool_call(ProposedEffect(kind="tool_call", name="read", arguments={"file": 3})).message
    'No path can be seen in the arguments: a value of the class `int` cannot be looked into.'
    """

    def __init__(
        self, *folders: str | os.PathLike[str], tools: Tools = None, arguments: Iterable[str] = ("path", "file")
    ) -> None:
        super().__init__("paths")
        if not folders:
            raise OptionError("a `PathRule` has at least one folder.")
        self.folders = tuple(Path(os.path.realpath(folder)) for folder in folders)
        self.tools = chosen_tools(tools)
        self.arguments = frozenset(names_given(arguments, "arguments", "of arguments"))
        if self.arguments != {"path", "file"}:
            check_names(self.arguments, self.tools, self.name)

    def settings(self) -> Mapping[str, Any]:
        folders, arguments = sorted(map(str, self.folders)), sorted(self.arguments)
        return {**super().settings(), "folders": folders, "arguments": arguments, "tools": tool_names(self.tools)}

    def tool_call(self, effect: ProposedEffect, /) -> Decision | None:
        if not is_call_of(effect, self.tools):
            return None
        typed = _takes_paths(effect.tool)
        try:
            resolved = {
                name: self._resolved(
                    value, "named" if name in self.arguments else "typed" if name in typed else "", None
                )
                for name, value in effect.arguments.items()
            }
        except NotUnderstood as error:
            message = f"No path can be seen in the arguments: {error}."
            return Decision(Disposition.DENY_STEP, "path", message)
        except _Outside as error:
            return Decision(Disposition.DENY_STEP, "path", str(error))
        return Decision(arguments=resolved)

    def _resolved(self, value: Any, role: str, inside: set[int] | None) -> Any:
        """A value with its paths resolved; where it is `inside` of objects (these), they must be resolved already."""
        kind = type(value)
        if kind in _PATHS or (role and kind is str):
            return self._path(value, must_be=inside is not None)
        if kind in CONTAINERS:
            return kind(self._resolved(one, role, inside) for one in value)
        if kind is dict:
            return {
                self._key(key, role, inside): self._resolved(one, self._role(key) or role, inside)
                for key, one in value.items()
            }
        if value is None or (not role and inside is not None and id(value) in inside):
            return value
        if role or is_a(value, os.PathLike):
            raise NotUnderstood(value)
        inside = set() if inside is None else inside
        inside.add(id(value))
        for name, part in parts(value):
            self._resolved(part, self._role(name), inside)
        return value

    def _role(self, name: Any) -> str:
        return "named" if type(name) is str and name in self.arguments else ""

    def _key(self, key: Any, role: str, inside: set[int] | None) -> Any:
        # A key of what is named may be a path; one of `dict[str, Path]` is a word.
        self._resolved(key, "named" if role == "named" else "", set() if inside is None else inside)
        return key

    def _path(self, value: Any, must_be: bool) -> Any:
        resolved = Path(os.path.realpath(os.path.expanduser(value)))
        if not any(resolved == folder or folder in resolved.parents for folder in self.folders):
            raise _Outside(f"The path {resolved} is outside of the folders that are allowed.")
        if str(value) == str(resolved):
            return value
        if must_be:
            raise _Outside(f"The path {value} has to be written out here: {resolved}.")
        return str(resolved) if type(value) is str else type(value)(resolved)


class _Outside(Exception):
    """A path may not be reached."""


_PATHS = (Path, PurePath, PosixPath, PurePosixPath, WindowsPath, PureWindowsPath)


def _takes_paths(tool: Tool[..., Any] | None) -> frozenset[str]:
    """The parameters that take paths and nothing else, or several of them."""
    parameters = {} if tool is None else tool.__signature__.parameters
    return frozenset(name for name, parameter in parameters.items() if _is_of_paths(parameter.annotation))


def _is_of_paths(annotation: Any) -> bool:
    if isinstance(annotation, typing.TypeAliasType):
        return _is_of_paths(annotation.__value__)
    if annotation in (pydantic.FilePath, pydantic.DirectoryPath, pydantic.NewPath):
        return True
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _is_of_paths(inner[0])
    if origin in (typing.Union, types.UnionType):
        return all(_is_of_paths(one) for one in inner if one is not types.NoneType)
    if origin is dict or is_a(origin, type) and issubclass(origin, typing.Mapping):  # noqa: RUF021
        return _is_of_paths(inner[-1])
    if inner:
        return all(_is_of_paths(one) for one in inner if one is not ...)
    return isinstance(annotation, type) and issubclass(annotation, os.PathLike | PurePath)
