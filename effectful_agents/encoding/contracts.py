"""What a function that takes the place of a skill is held to: the skill's own signature."""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
from inspect import Parameter
from typing import Any, NamedTuple

from effectful_agents.encoding.declarations import Declarations
from effectful_agents.encoding.places import Place, raw_function
from effectful_agents.encoding.signatures import Verbatim
from effectful_agents.encoding.source_text import Edit, edited, end_of_parameters
from effectful_agents.types import Skill

__all__ = ["GIVEN", "Contract", "Given", "with_annotations"]

GIVEN = "_given_"
"""What the names of the skill's own parameters begin with, so that code may bind the plain ones anew."""

_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Given(NamedTuple):
    """A parameter as text.

    Attributes:
        kind: Its kind.
        name: Its name.
        outside: Its annotation, as it reads beside the skill; it may be empty.
        inside: The same, as it reads in a function that is written there.
    """

    kind: Any
    name: str
    outside: str
    inside: str


class Contract(NamedTuple):
    """A signature as text.

    Attributes:
        parameters: The parameters.
        result: The annotation of the result, as it reads beside the skill; it may be empty.
        inner_result: The same, as it reads in a function that is written there.
    """

    parameters: list[Given]
    result: str
    inner_result: str

    @classmethod
    def of(cls, skill: Skill, place: Place | None, declarations: Declarations) -> Contract:
        """The contract of a skill, in the words of its source, or else with the types that it has."""
        return cls._written(place) if place is not None else cls._made(skill, declarations)

    @classmethod
    def _written(cls, place: Place) -> Contract:
        given = place.node.args
        arguments: list[tuple[Any, ast.arg | None]] = [
            *((Parameter.POSITIONAL_ONLY, one) for one in given.posonlyargs),
            *((Parameter.POSITIONAL_OR_KEYWORD, one) for one in given.args),
            (Parameter.VAR_POSITIONAL, given.vararg),
            *((Parameter.KEYWORD_ONLY, one) for one in given.kwonlyargs),
            (Parameter.VAR_KEYWORD, given.kwarg),
        ]
        parameters = [
            Given(kind, one.arg, _text(one.annotation), _inside(one.annotation, place))
            for kind, one in arguments
            if one is not None
        ]
        if parameters and not parameters[0].outside and place.receiver and place.kind != "staticmethod":
            receiver = f"type[{place.receiver}]" if place.kind == "classmethod" else place.receiver
            parameters[0] = parameters[0]._replace(inside=receiver)
        return cls(parameters, _text(place.node.returns), _inside(place.node.returns, place))

    @classmethod
    def _made(cls, skill: Skill, declarations: Declarations) -> Contract:
        def text(tp: Any) -> str:
            return "" if tp is Parameter.empty else repr(declarations.named(tp))

        signature = _signature(skill)
        named = [(one.kind, one.name, text(one.annotation)) for one in signature.parameters.values()]
        result = text(signature.return_annotation)
        return cls([Given(kind, name, written, written) for kind, name, written in named], result, result)

    @property
    def header(self) -> str:
        """The parameters of a function that stands beside the skill; their names begin with `GIVEN`."""
        given = [
            Parameter(GIVEN + name, kind, annotation=Verbatim(outside) if outside else Parameter.empty)
            for kind, name, outside, _ in self.parameters
        ]
        return str(inspect.Signature(given))[1:-1]

    @property
    def arguments(self) -> str:
        """The arguments of a call that passes the parameters on."""
        by_name = {one.name: f"{one.name}=" for one in self.parameters if one.kind is Parameter.KEYWORD_ONLY}
        return ", ".join(
            f"{by_name.get(one.name, '')}{_STARS.get(one.kind, '')}{GIVEN}{one.name}" for one in self.parameters
        )

    def annotations(self, *kinds: Any) -> dict[str, str]:
        """The annotations of the parameters of some kinds inside, by name."""
        return {one.name: one.inside for one in self.parameters if one.kind in kinds}


def _text(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


def _inside(annotation: ast.expr | None, place: Place) -> str:
    """An annotation, without what can be named in the body of the class only."""
    if annotation is None or not place.of_class:
        return _text(annotation)
    return ast.unparse(_Qualified(place).visit(copy.deepcopy(annotation)))


class _Qualified(ast.NodeTransformer):
    """Names that a class binds, as attributes of the class."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._place.of_class:
            return node
        return ast.parse(f"{self._place.receiver}.{node.id}", mode="eval").body


def _signature(skill: Skill) -> inspect.Signature:
    """The signature of a skill, its receiver included."""
    signature = skill.__signature__
    function = raw_function(skill)
    if skill.receiver is None or function is None:
        return signature
    first = next(iter(inspect.signature(function).parameters.values()))
    receiver = skill.receiver
    kind: Any = type[receiver] if isinstance(receiver, type) else type(receiver)
    others = list(signature.parameters.values())
    return signature.replace(parameters=[first.replace(annotation=kind), *others])


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
    by_name = contract.annotations(Parameter.KEYWORD_ONLY)
    for argument, text in itertools.zip_longest(places, by_place):
        annotate(argument, text if text is not None else by_name.get(argument.arg, ""))
    for argument in arguments.kwonlyargs:
        annotate(argument, by_name.get(argument.arg, ""))
    # What takes the rest may have to take what is no rest in the skill: it then has no type of its own.
    named = {one.arg for one in (*arguments.kwonlyargs, *arguments.args)}
    if arguments.vararg is not None and len(places) >= len(contract.annotations(*_BY_PLACE)):
        annotate(arguments.vararg, "".join(contract.annotations(Parameter.VAR_POSITIONAL).values()))
    if arguments.kwarg is not None and named.issuperset(by_name):
        annotate(arguments.kwarg, "".join(contract.annotations(Parameter.VAR_KEYWORD).values()))
    if function.returns is not None and contract.inner_result:
        edits.append(Edit.of(function.returns, contract.inner_result))
    elif contract.inner_result:
        at = end_of_parameters(code, function)
        edits.append(Edit(at, at, f" -> {contract.inner_result}"))
    return edited(code, edits)
