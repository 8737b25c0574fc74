"""Code that a model wrote, put into the source of the skill that it is for, so that a type checker can read it.

A checker knows what a name means only from the source around it. So the code goes into a function of its own that
stands right behind the skill's definition, where it sees what the skill sees. Of the module that comes out, only the
region of the code is to be reported:

    region = splice_snippet("print(seats)", skill, env)
    code.type_check(*region, lenient=True)

What the source does not bind and the running program does (names of a session, or of cells of a notebook that were run
before) is declared at the start of that function, with the types of the values. Where there is no source at all, the
function stands in a module of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from effectful_agents.encoding.contracts import GIVEN, Contract, with_annotations
from effectful_agents.encoding.declarations import Declarations
from effectful_agents.encoding.places import Place, place_of
from effectful_agents.encoding.source_text import at_top_level, indented, last_function, names_in, plain_lines
from effectful_agents.generated import awaits_at_top
from effectful_agents.types import Skill

__all__ = [
    "WRAPPER",
    "ModuleSource",
    "SplicedRegion",
    "splice_function",
    "splice_into_source",
    "splice_skill_body",
    "splice_snippet",
]

WRAPPER = "__generated__"
"""The name of the function that the code stands in."""
_INDENT = "    "


class ModuleSource(str):
    """The source of a module, which knows the file that it stands for.

    Attributes:
        path: The file, so that a checker finds its neighbours and takes it for the module that they import; or None.
    """

    path: str | None

    def __new__(cls, text: str, path: str | None = None) -> Self:
        source = super().__new__(cls, text)
        source.path = path
        return source


class SplicedRegion(NamedTuple):
    """A module with code in it; the arguments of `type_check`.

    Attributes:
        source: The module.
        lo: The first line of the code, from 1.
        hi: Its last line.
    """

    source: ModuleSource
    lo: int
    hi: int


def splice_snippet(
    snippet: str, skill: Skill | None, env: Mapping[str, Any], earlier: Sequence[str] = ()
) -> SplicedRegion:
    r"""A piece of a session, as part of the body of the skill; to be checked with `lenient=True`.

    Args:
        snippet: The piece: statements, or a single expression.
        skill: The skill whose call the session belongs to; None where there is none.
        env: What the code sees: the names of the session, over the scope of the call.
        earlier: The pieces that ran before it, in their order.

    Raises:
        SyntaxError: A piece is no Python.

    >>> region = splice_snippet("total = sum(prices)", None, {"prices": [1.5, 2.0]})
    >>> region.source.split("\n")[region.lo - 1 : region.hi]
    ['    total = sum(prices)']
    >>> "prices = _typing.cast('list[float]', None)" in region.source
    True
    """
    pieces = [at_top_level(one) for one in (*earlier, snippet)]
    before = [line for text, _ in pieces[:-1] for line in plain_lines(text)]
    text, stars = pieces[-1]
    opening = _Opening(skill, env)
    opening.take_arguments()
    opening.rebind("\n".join([*before, text]))
    awaits = any(any(awaits_at_top(ast.parse(one))) for one, _ in pieces)
    return opening.region(opening.head(before, awaits=awaits), text, imports=stars)


def splice_skill_body(code: str, skill: Skill, env: Mapping[str, Any]) -> SplicedRegion:
    """A function that takes the place of the skill, held to the signature of the skill.

    The parameters and the result of the function have the annotations that the skill declares for those of the same
    place, whatever the model wrote there. The function may have helpers and imports before it; the last line of the
    region is a call with the skill's arguments.

    Args:
        code: The source; its last statement is the function. That of a method takes `self` first.
        skill: The skill.
        env: What the code sees.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It does not end with a function.
    """
    opening, text, function, stars = _with_function(code, skill, env)
    contract: Any = opening.contract
    awaits = isinstance(function, ast.AsyncFunctionDef)
    # That the result is what the skill's is said by the function around it: the code may call another class the same.
    call = f"return {'await ' if awaits else ''}{function.name}({contract.arguments})  # this is how it is called"
    head = opening.head(result=contract.result, awaits=awaits)
    annotated = with_annotations(text, function, contract)
    return opening.region(head, annotated, (call,), stars)


def splice_function(code: str, expected: Any, skill: Skill | None, env: Mapping[str, Any]) -> SplicedRegion:
    """A function that is to have a type, as part of the body of the skill.

    The last line of the region returns the function, from one that is declared to return that type.

    Args:
        code: The source; its last statement is the function.
        expected: The type: `Callable[[int], str]`.
        skill: The skill that is to return the function; None where there is none.
        env: What the code sees.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It does not end with a function.
    """
    opening, text, function, stars = _with_function(code, skill, env)
    head = opening.head(parameters=False, result=repr(opening.declarations.named(expected)))
    fits = f"return {function.name}  # this is the function that was asked for"
    return opening.region(head, text, (fits,), stars)


def splice_into_source(
    place: Place | None,
    head: Sequence[str],
    code: str,
    after: Sequence[str] = (),
    imports: Sequence[str] = (),
    top: Sequence[str] = (),
) -> SplicedRegion:
    """The module with a function behind the skill that holds the code.

    Args:
        place: Where the skill is written; None for a module of its own.
        head: The lines of that function before the code: its `def`, declarations.
        code: The code.
        after: Lines behind it, in the region.
        imports: Statements for the end of the module.
        top: Statements for its beginning.
    """
    outer = place.indent if place is not None else ""
    inner = outer + _INDENT
    region = [*(indented(code.rstrip(), inner) or [""]), *(inner + line for line in after)]
    opened = indented("\n".join(head), outer)
    spliced = [*opened, *region, f"{inner}pass"]
    lines = place.lines if place is not None else []
    at = (place.node.end_lineno or 0) if place is not None else 0
    first = place.top if place is not None else 0
    made = [*lines[:first], *top, *lines[first:at], *spliced, *lines[at:], *imports]
    source = ModuleSource("\n".join(made).rstrip() + "\n", place.path if place is not None else None)
    lo = len(top) + at + len(opened) + 1
    return SplicedRegion(source, lo, lo + len(region) - 1)


def _with_function(
    code: str, skill: Skill | None, env: Mapping[str, Any]
) -> tuple[_Opening, str, ast.FunctionDef | ast.AsyncFunctionDef, list[str]]:
    """What comes before code that ends with a function; the code without its star imports, its function, and these."""
    text, stars = at_top_level(code)
    function = last_function(ast.parse(text))
    opening = _Opening(skill, env)
    opening.declare(text)
    return opening, text, function, stars


class _Opening:
    """What comes before the code: declarations at the top of the module, the head of the function.

    Attributes:
        declarations: What is declared.
        contract: The signature of the skill; None where there is none.
    """

    def __init__(self, skill: Skill | None, env: Mapping[str, Any]) -> None:
        place = place_of(skill) if skill is not None else None
        known = place.names if place is not None else frozenset()
        self.declarations = Declarations(place.module if place is not None else None, known, env)
        self._place = place
        self._env = env
        self._known = known
        self._bound: set[str] = set()
        if place is not None and place.path is None:
            # What is in no file may go on from another piece of source: a cell, a line of a REPL.
            self._declare(place.missing)
        self.contract = Contract.of(skill, place, self.declarations) if skill is not None else None

    def region(
        self, head: Sequence[str], code: str, after: Sequence[str] = (), imports: Sequence[str] = ()
    ) -> SplicedRegion:
        """The module with the code in it; the parameters are those of `splice_into_source`."""
        return splice_into_source(self._place, head, code, after, imports, self.declarations.lines)

    def head(
        self, before: Sequence[str] = (), *, parameters: bool = True, result: str = "None", awaits: bool = False
    ) -> list[str]:
        """The lines of the function up to the code; `before` come last."""
        types = getattr(self._place.node, "type_params", []) if self._place is not None else []
        of = f"[{', '.join(map(ast.unparse, types))}]" if types else ""
        given = self.contract.header if parameters and self.contract is not None else ""
        decorator = [f"@{self._place.kind}"] if self._place is not None and self._place.kind and parameters else []
        start = "async def" if awaits else "def"
        opened = [*decorator, f"{start} {WRAPPER}{of}({given}){f' -> {result}' if result else ''}:"]
        return [*opened, *indented("\n".join([*self.declarations.values, *before]), _INDENT)]

    def take_arguments(self) -> None:
        """Bind the names of the skill's parameters, so that code may bind them anew to something else."""
        names = [one.name for one in self.contract.parameters] if self.contract is not None else []
        self.declarations.values += [f"{name} = {GIVEN}{name}" for name in names]
        self._bound.update(names)

    def rebind(self, text: str) -> None:
        """Declare what the text names, so that it can bind it anew."""
        free, assigned = names_in(text)
        for name in assigned:
            if name in self._env and name not in self._bound:
                self.declarations.cast(name, self.declarations.of_value(self._env[name]))
                self._bound.add(name)
        self._declare(free)

    def declare(self, text: str) -> None:
        """Declare what the text names and does not bind."""
        self._declare(names_in(text)[0])

    def _declare(self, free: Iterable[str]) -> None:
        for name in free:
            if name in self._env and name not in self._bound and name not in self._known:
                self.declarations.declare(name, self._env[name])
                self._bound.add(name)
