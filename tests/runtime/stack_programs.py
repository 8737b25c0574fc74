"""Small programs over operations and handlers, as JSON, and one evaluator for them.

`test_differential.py` runs a program twice: here, with our handlers and operations mixed with the library's, and in a
process of its own that never imports `effectful_agents`, with the library's only. This file is loaded in both, so it
imports neither; a `Vocabulary` says what to use. Run as a script it answers programs with the library's results.

An expression is a list whose first item names it; the rest are described at `Run.value`. A program is the
class and the default rule of each operation, and one expression.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FUEL = 40
"""Operations performed before a program is stopped: a handler may perform its own operation again."""


class OutOfFuel(BaseException):
    """Ends a program that goes on too long, in either process at the same step."""


class Failure(Exception):
    """What programs raise."""


@dataclass(frozen=True)
class Vocabulary:
    """The functions that a program is run with.

    Of classes of operations, handlers and coproducts there are two each, chosen by number in the program. In the
    library's process both are its own; the second class is a subclass of the first in either process.
    """

    operations: list[Any]
    handlers: list[Callable[..., Any]]
    coproducts: list[Callable[..., Any]]
    fwd: Callable[..., Any]
    not_handled: type[Exception]
    object_interpretation: type
    implements: Callable[..., Any]


@dataclass
class Run:
    """One program being run, and what it did."""

    vocabulary: Vocabulary
    fuel: int = FUEL
    trace: list[Any] = field(default_factory=list)
    operations: dict[str, Any] = field(default_factory=dict)

    def define(self, defaults: dict[str, list], classes: dict[str, int]) -> None:
        """Make the four operations. Their parameters differ: one, two, none, any."""

        def one(x: int) -> int:
            return self.value(defaults["one"], (x,))

        def two(x: int, y: int = 7) -> int:
            return self.value(defaults["two"], (x, y))

        def none() -> int:
            return self.value(defaults["none"], ())

        def many(*xs: int) -> int:
            return self.value(defaults["many"], xs)

        for function in (one, two, none, many):
            name = function.__name__
            self.operations[name] = self.vocabulary.operations[classes[name]].define(function)
        self.operations["apply"], self.operations["apply_second"] = [
            each.__apply__ for each in self.vocabulary.operations
        ]

    def burn(self) -> None:
        self.fuel -= 1
        if self.fuel < 0:
            raise OutOfFuel

    def value(self, expression: list, args: tuple) -> Any:
        """Evaluate an expression in a function with some arguments."""
        kind, *parts = expression
        return getattr(self, f"_{kind}")(args, *parts)

    def _const(self, args: tuple, number: int) -> int:
        return number

    def _arg(self, args: tuple, index: int) -> Any:
        return args[index] if index < len(args) else -1

    def _add(self, args: tuple, left: list, right: list) -> Any:
        return self.value(left, args) + self.value(right, args)

    def _perform(self, args: tuple, name: str, given: list) -> Any:
        self.burn()
        return self.operations[name](*[self.value(each, args) for each in given])

    def _fwd(self, args: tuple) -> Any:
        self.burn()
        return self.vocabulary.fwd()

    def _fwd_with(self, args: tuple, given: list) -> Any:
        """Forward changed arguments; in a handler of `apply` the operation stays the first."""
        self.burn()
        first = args[:1] if args and any(args[0] is each for each in self.operations.values()) else ()
        return self.vocabulary.fwd(*first, *[self.value(each, args) for each in given])

    def _mark(self, args: tuple, label: int, inner: list) -> Any:
        self.trace.append([label, [self.shown(arg) for arg in args]])
        result = self.value(inner, args)
        self.trace.append([label, self.shown(result)])
        return result

    def _fail(self, args: tuple, text: str) -> Any:
        raise Failure(text)

    def _leave(self, args: tuple) -> Any:
        raise self.vocabulary.not_handled

    def _guard(self, args: tuple, inner: list, otherwise: list) -> Any:
        try:
            return self.value(inner, args)
        except Exception as error:
            self.trace.append(describe(error))
            return self.value(otherwise, args)

    def _with(self, args: tuple, which: int, interpretation: list, inner: list) -> Any:
        with self.vocabulary.handlers[which](self.interpretation(interpretation)):
            return self.value(inner, args)

    def _decorated(self, args: tuple, which: int, interpretation: list, inner: list) -> Any:
        install = self.vocabulary.handlers[which](self.interpretation(interpretation))
        return install(lambda: self.value(inner, args))()

    def interpretation(self, description: list) -> Any:
        """A dictionary, an object, or a coproduct of two interpretations."""
        kind, *parts = description
        if kind == "coproduct":
            which, outer, inner = parts
            return self.vocabulary.coproducts[which](self.interpretation(outer), self.interpretation(inner))
        functions = {self.operations[name]: self.function(name, body) for name, body in parts[0].items()}
        return functions if kind == "dict" else self.object_of(functions)

    def function(self, name: str, body: list) -> Callable[..., Any]:
        """A handler function with the parameters of its operation."""
        if name == "none":
            return lambda: self.value(body, ())
        if name == "one":
            return lambda x: self.value(body, (x,))
        if name == "two":
            return lambda x, y=9: self.value(body, (x, y))
        return lambda *args: self.value(body, args)

    def object_of(self, functions: dict[Any, Callable[..., Any]]) -> Any:
        def method(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda _self, *args: function(*args)

        implements = self.vocabulary.implements
        members = {
            f"method_{i}": implements(operation)(method(function))
            for i, (operation, function) in enumerate(functions.items())
        }
        return type("Described", (self.vocabulary.object_interpretation,), members)()

    def shown(self, value: Any) -> Any:
        for name, operation in self.operations.items():
            if value is operation:
                return name
        return value if isinstance(value, int) else getattr(value, "__name__", type(value).__name__)


def describe(error: BaseException) -> list:
    """An exception for comparison, without the texts that name functions, which differ."""
    return [type(error).__name__, str(error) if isinstance(error, Failure) else ""]


def outcome(program: dict[str, Any], vocabulary: Vocabulary) -> dict[str, Any]:
    """Run a program: its result or exception, and its trace."""
    run = Run(vocabulary)
    run.define(program["defaults"], program["classes"])
    try:
        result: Any = ["value", run.shown(run.value(program["body"], ()))]
    except (Exception, OutOfFuel) as error:
        result = ["raised", *describe(error)]
    return {"result": result, "trace": run.trace}


def library_vocabulary() -> Vocabulary:
    """The library's own, with one repair: operations without parameters save their arguments too (its `_save_args`
    leaves them out, and a `now()` forwarded in a handler gets the arguments of the operation handled there)."""
    import functools

    from effectful.internals import runtime as internals
    from effectful.ops import semantics, syntax
    from effectful.ops.types import NotHandled, Operation

    runtime: Any = internals

    def save_always(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def saving(*args: Any, **kwargs: Any) -> Any:
            with semantics.handler({runtime._get_args: lambda: (args, kwargs)}):
                return function(*args, **kwargs)

        return saving

    runtime._save_args = save_always

    class Other(Operation):
        """Stands for our class of operations, which is a subclass as well."""

    return Vocabulary(
        operations=[Operation, Other],
        handlers=[semantics.handler] * 2,
        coproducts=[semantics.coproduct] * 2,
        fwd=semantics.fwd,
        not_handled=NotHandled,
        object_interpretation=syntax.ObjectInterpretation,
        implements=syntax.implements,
    )


def main() -> None:
    """Answer programs, one a line."""
    vocabulary = library_vocabulary()
    for line in sys.stdin:
        print(json.dumps(outcome(json.loads(line), vocabulary)), flush=True)
    assert not any(name.partition(".")[0] == "effectful_agents" for name in sys.modules)


if __name__ == "__main__":
    main()
