"""What a function that takes the place of a skill is held to: the skill's own signature."""

from __future__ import annotations

import ast
import inspect
import itertools
from typing import Any, NamedTuple

from effectful_agents.encoding.declarations import Declarations
from effectful_agents.encoding.places import Place, raw_function
from effectful_agents.encoding.source_text import Edit, edited, end_of_parameters
from effectful_agents.types import Skill

__all__ = ["GIVEN", "Contract", "renamed", "synthetic_signature", "with_annotations"]

GIVEN = "_given_"
"""What the names of the skill's own parameters begin with, so that code may bind the plain ones anew."""


_KINDS = inspect.Parameter
_BY_PLACE = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)


class Contract(NamedTuple):
    """A signature as text.

    Attributes:
        parameters: The kind, the name and the annotation of each parameter; an annotation may be empty.
        result: The annotation of the result.
    """

    parameters: list[tuple[Any, str, str]]
    result: str

    @classmethod
    def of(cls, skill: Skill, place: Place | None, declarations: Declarations) -> Contract:
        """The contract of a skill, in the words of its source, or else with the types that it has."""
        return cls._written(place) if place is not None else cls._made(skill, declarations)

    @classmethod
    def _written(cls, place: Place) -> Contract:
        node, given = place.node, place.node.args
        parameters: list[tuple[Any, str, str]] = [
            (_KINDS.POSITIONAL_ONLY, one.arg, _text(one.annotation)) for one in given.posonlyargs
        ]
        parameters += [(_KINDS.POSITIONAL_OR_KEYWORD, one.arg, _text(one.annotation)) for one in given.args]
        if parameters and not parameters[0][2] and place.receiver and place.kind != "staticmethod":
            receiver = f"type[{place.receiver}]" if place.kind == "classmethod" else place.receiver
            parameters[0] = (*parameters[0][:2], receiver)
        if given.vararg is not None:
            parameters.append((_KINDS.VAR_POSITIONAL, given.vararg.arg, _text(given.vararg.annotation)))
        parameters += [(_KINDS.KEYWORD_ONLY, one.arg, _text(one.annotation)) for one in given.kwonlyargs]
        if given.kwarg is not None:
            parameters.append((_KINDS.VAR_KEYWORD, given.kwarg.arg, _text(given.kwarg.annotation)))
        return cls(parameters, _text(node.returns))

    @classmethod
    def _made(cls, skill: Skill, declarations: Declarations) -> Contract:
        def text(tp: Any) -> str:
            # In quotes, since what it names may be declared in the function only.
            return "" if tp is _KINDS.empty else repr(declarations.named(tp))

        signature = synthetic_signature(skill)
        parameters = [(one.kind, one.name, text(one.annotation)) for one in signature.parameters.values()]
        return cls(parameters, text(signature.return_annotation))

    @property
    def arguments(self) -> str:
        """The arguments of a call that passes the parameters on."""
        forms = {_KINDS.VAR_POSITIONAL: "*{0}{1}", _KINDS.KEYWORD_ONLY: "{1}={0}{1}", _KINDS.VAR_KEYWORD: "**{0}{1}"}
        return ", ".join(forms.get(kind, "{0}{1}").format(GIVEN, name) for kind, name, _ in self.parameters)

    def annotations(self, *kinds: Any) -> dict[str, str]:
        """The annotations of the parameters of some kinds, by name."""
        return {name: text for kind, name, text in self.parameters if kind in kinds}


def _text(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


def synthetic_signature(skill: Skill) -> inspect.Signature:
    """The signature of a skill, its receiver included."""
    signature = skill.__signature__
    function = raw_function(skill)
    if skill.receiver is None or function is None:
        return signature
    first = next(iter(inspect.signature(function).parameters))
    receiver = skill.receiver
    kind: Any = type[receiver] if isinstance(receiver, type) else type(receiver)
    parameter = inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
    others = list(signature.parameters.values())
    if others and others[0].kind is inspect.Parameter.POSITIONAL_ONLY:
        parameter = parameter.replace(kind=inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[parameter, *others])


def renamed(arguments: ast.arguments) -> tuple[list[str], list[str]]:
    """The parameters of a definition under other names, one a text, and their own names."""

    def one(argument: ast.arg, default: ast.expr | None = None, star: str = "") -> str:
        annotation = f": {ast.unparse(argument.annotation)}" if argument.annotation is not None else ""
        given = f" = {ast.unparse(default)}" if default is not None else ""
        names.append(argument.arg)
        return f"{star}{GIVEN}{argument.arg}{annotation}{given}"

    names: list[str] = []
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults]
    written = [one(argument, default) for argument, default in zip(places, defaults, strict=True)]
    if arguments.posonlyargs:
        written.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg is not None:
        written.append(one(arguments.vararg, star="*"))
    elif arguments.kwonlyargs:
        written.append("*")
    written += [one(*pair) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        written.append(one(arguments.kwarg, star="**"))
    return written, names


def with_annotations(code: str, function: ast.FunctionDef | ast.AsyncFunctionDef, contract: Contract) -> str:
    """The code with the annotations of the contract at its last function."""
    arguments = function.args
    edits: list[Edit] = []

    def annotate(argument: ast.arg, text: str) -> None:
        if argument.annotation is not None and text:
            edits.append(Edit.of(argument.annotation, text))
        elif text:
            at = (argument.lineno, argument.col_offset + len(argument.arg.encode()))
            edits.append(Edit(at, at, f": {text}"))

    places = [*arguments.posonlyargs, *arguments.args]
    by_place = list(contract.annotations(*_BY_PLACE).values())[: len(places)]
    by_name = contract.annotations(_KINDS.KEYWORD_ONLY)
    for argument, text in itertools.zip_longest(places, by_place):
        annotate(argument, text if text is not None else by_name.get(argument.arg, ""))
    for argument in arguments.kwonlyargs:
        annotate(argument, by_name.get(argument.arg, ""))
    # What takes the rest may have to take what is no rest in the skill: it then has no type of its own.
    named = {one.arg for one in (*arguments.kwonlyargs, *arguments.args)}
    if arguments.vararg is not None and len(places) >= len(contract.annotations(*_BY_PLACE)):
        annotate(arguments.vararg, "".join(contract.annotations(_KINDS.VAR_POSITIONAL).values()))
    if arguments.kwarg is not None and named.issuperset(by_name):
        annotate(arguments.kwarg, "".join(contract.annotations(_KINDS.VAR_KEYWORD).values()))
    if function.returns is not None and contract.result:
        edits.append(Edit.of(function.returns, contract.result))
    elif contract.result:
        at = end_of_parameters(code, function)
        edits.append(Edit(at, at, f" -> {contract.result}"))
    return edited(code, edits)
