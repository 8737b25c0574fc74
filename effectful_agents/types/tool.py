"""Tools: Python functions that a model may call."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Literal, Self, overload

from effectful_agents.errors import DefinitionError, MissingHandlerError
from effectful_agents.runtime import Operation
from effectful_agents.types.kinds import bases_of, is_a, names_in
from effectful_agents.types.local_types import TYPES, hints_of, keep_names
from effectful_agents.types.risk import Risk
from effectful_agents.types.scope import LexicalContext

__all__ = ["Effect", "Tool"]

type Effect = Literal["once", "keyed", "idempotent"]
"""What repeating a tool does: `once`, it happens again; `keyed`, it is told apart by a key; `idempotent`, nothing."""


class Tool[**P, T](Operation[P, T]):
    """A function that a model may call: its signature and docstring are what the model is shown.

    Define one with `Tool.define`. It stays an ordinary function for Python code. A skill offers the model the tools
    that it sees where it is written: those of the enclosing functions and of the module, and the methods of its class.

    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city, in a few words.'''
    ...     return "sunny"
    >>> weather("Barcelona")
    'sunny'
    >>> @Tool.define(risk=Risk.HARD_WRITE, name="send_mail")
    ... def send(to: str, text: str) -> None:
    ...     '''Send a mail.'''
    >>> send.__name__, send.risk
    ('send_mail', <Risk.HARD_WRITE: 2>)

    Attributes:
        description: What the model is told about the tool.
        parameters: The JSON schema of the parameters, where one was written by hand, else None.
        risk: What the tool can do to the world.
        idempotent: Whether a repetition changes nothing.
        effect: What a repetition does.
        concurrent: Whether it may run beside other calls of the same turn.
        timeout: Seconds that a call may take, or None.
        rerun: Whether a run that is resumed makes its calls again, see `define`.
        external: Whether the results come from outside of the process, and the body is never run.
        is_async: Whether the function is `async def`, so that a call of it is to be awaited.
    """

    # A handler of one skill forwards to the loop, which handles the `__apply__` of all skills.
    forwards_to_apply = True

    # Whether it runs code of a model: then its risk is what that may do (`operations.code.risk_of_code`).
    runs_code: bool = False

    # Whether a call of it is a delegation: whoever does the work has a history of their own.
    delegates: bool = False

    # What is asked before each call by code, and with which arguments it goes on. `operations.calls_by_code` sets it,
    # which knows what a tool must not: steps, and who decides about them. It is no operation: a call is to be decided
    # about also where somebody handles `decide` alone, and no handler is to be able to leave that out.
    before_call: ClassVar[Callable[..., tuple[tuple[Any, ...], dict[str, Any]]] | None] = None

    description: str
    parameters: Mapping[str, Any] | None
    risk: Risk
    idempotent: bool
    effect: Effect
    concurrent: bool
    timeout: float | None
    rerun: bool
    external: bool = False
    is_async: bool
    owner: type | None
    serial: int  # how many tools were made before: what tells those apart that are alike in all else
    __context__: LexicalContext

    def __init__(
        self,
        default: Callable[P, T],
        name: str | None = None,
        *,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        risk: Risk = Risk.READ,
        idempotent: bool = False,
        effect: Effect | None = None,
        concurrent: bool = False,
        timeout: float | None = None,
        rerun: bool = False,
        external: bool = False,
    ) -> None:
        super().__init__(default, name)
        self.description = description if description is not None else inspect.getdoc(default) or ""
        self.parameters = parameters
        self.risk = _risk(risk, self.__name__)
        self.idempotent = idempotent or effect == "idempotent"
        self.effect = effect or ("idempotent" if idempotent else "once")
        # Calls of one turn that wait for the outside wait together.
        self.concurrent = concurrent or external
        self.timeout = timeout
        self.rerun = rerun
        self.external = external
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(default))
        self.owner = None
        self.serial = next(_serials)
        self.__context__ = LexicalContext.of(default)
        self._validate(default)
        if external:
            self.__default__ = _not_from_here(self.__name__)

    def _validate(self, default: Callable[..., Any]) -> None:
        kind, name = type(self).__name__.lower(), self.__name__
        if not self.description.strip():
            raise DefinitionError(
                f"the {kind} `{name}` has no docstring, and the model would not know what it is for. Write one."
            )
        if self.effect not in typing.get_args(Effect.__value__):
            raise DefinitionError(
                f"the {kind} `{name}` has effect={self.effect!r}; it can be 'once', 'keyed' or 'idempotent'."
            )
        if self.idempotent and self.effect != "idempotent":
            raise DefinitionError(
                f"the {kind} `{name}` is idempotent=True and effect={self.effect!r} at once; leave one of them out."
            )
        if self.timeout is not None and not (isinstance(self.timeout, int | float) and 0 < self.timeout < math.inf):
            raise DefinitionError(
                f"the {kind} `{name}` has timeout={self.timeout!r}; it must be a number of seconds above 0."
            )
        if self.external and self.delegates:
            raise DefinitionError(f"the {kind} `{name}` is external=True; a model answers it, and nobody else.")
        if self.parameters is None:
            missing = _unannotated(default)
            if missing:
                bare = " and ".join(f"`{one}`" for one in missing)
                raise DefinitionError(
                    f"the {kind} `{name}` has no annotation for {bare}; its types are what the model is told. Annotate "
                    "every parameter and the return."
                )

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature, its annotations resolved where the function is written.

        Raises:
            DefinitionError: An annotation names something that is not defined.
        """
        function = self.function
        return function._resolved if function is self else function._bound_signature

    def arguments_of(self, /, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """The arguments of a call by the names of the parameters, those that are left out with their defaults.

        Raises:
            TypeError: They do not fit the parameters.
        """
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound

    @functools.cached_property
    def _resolved(self) -> inspect.Signature:
        return _resolve(self)

    @property
    def function(self) -> Tool:
        """The tool that a bound one was made from; any other tool itself."""
        return getattr(self, "__func__", self)

    @property
    def skill(self) -> Any:
        """The skill that does the work of a call, in steps of its own: of a skill itself; of most tools None."""
        return None

    @property
    def resumes(self) -> bool:
        """Whether a call that was under way when its run ended is gone on with by calling again."""
        return self.external or self.skill is not None

    @property
    def own_name(self) -> str:
        """The name that it was defined with, whatever name it is offered by."""
        function = self.function
        return (function._original or function).__name__

    @property
    def receiver(self) -> Any:
        """The instance (or class) that a bound tool is bound to, else None."""
        return getattr(self, "__self__", None)

    def named(self, name: str) -> Tool[P, T]:
        """The tool under another name; equal to the first, and the same for whoever handles it."""
        other = self.alias() if self.receiver is None else self.function.__get__(self.receiver)
        other.__name__ = name
        return other

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self.owner = owner

    if TYPE_CHECKING:

        @overload
        @classmethod
        def define[**Q, V](
            cls,
            default: Callable[Q, V],
            *,
            name: str | None = None,
            description: str | None = None,
            parameters: Mapping[str, Any] | None = None,
            risk: Risk = ...,
            idempotent: bool = False,
            effect: Effect | None = None,
            concurrent: bool = False,
            timeout: float | None = None,
            rerun: bool = False,
            external: bool = False,
        ) -> Tool[Q, V]: ...
        @overload
        @classmethod
        def define[**Q, V](
            cls,
            *,
            name: str | None = None,
            description: str | None = None,
            parameters: Mapping[str, Any] | None = None,
            risk: Risk = ...,
            idempotent: bool = False,
            effect: Effect | None = None,
            concurrent: bool = False,
            timeout: float | None = None,
            rerun: bool = False,
            external: bool = False,
        ) -> Callable[[Callable[Q, V]], Tool[Q, V]]: ...
        @classmethod
        def define(cls, *args: Any, **kwargs: Any) -> Any: ...  # ty: ignore[incompatible-method-override]  # more options

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__[S, **R](self: Tool[Concatenate[S, R], T], instance: S, owner: type | None = None) -> Tool[R, T]: ...
        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T: ...

    else:

        def __call__(self, /, *args, **kwargs):
            if args and is_a(args[0], type) and _is_class_method(self, args[0]):
                return self._bind(args[0])(*args[1:], **kwargs)
            before = Tool.before_call  # not what may have been set on this one
            if before is not None and not (self._owners and self._has_receiver(args)):
                args, kwargs = before(self, args, kwargs)
            return super().__call__(*args, **kwargs)

        @classmethod
        def define(cls, default=None, **options):  # noqa: D417 - the options are explained by name
            """Make a tool of a function; a decorator, with or without options.

            Args:
                default: The function: annotated, with a docstring. A `staticmethod` or `classmethod` may be decorated
                    too.
                name: The name that the model knows it by; that of the function by default.
                description: What the model is told; the docstring by default.
                parameters: A JSON schema of the parameters, for the rare case where the signature cannot say it. The
                    arguments are held to it, and then arrive as the model wrote them.
                risk: What the tool can do to the world.
                idempotent: Whether a repetition changes nothing; the same as `effect="idempotent"`.
                effect: What a repetition does.
                concurrent: Whether it may run beside other calls of the same turn.
                timeout: Seconds that a call may take.
                rerun: Whether a run that is resumed makes the calls again that it had made, since they change objects
                    of the program. What they call inside, skills and other tools, is answered from the journal.
                external: Whether the results come from outside of the process: from a browser, a queue, a person. The
                    body is `raise NotHandled` and never run. A call suspends the run that it is in, with
                    `HumanInteraction` and a journal, until somebody has given the result. What handles the tool itself,
                    `handler({tool: function})`, gives it at once. Calls of one turn wait together.

            Raises:
                DefinitionError: The docstring or an annotation is missing, or options contradict each other.
            """
            if default is None:
                return functools.partial(cls.define, **options)
            if not isinstance(default, _FUNCTIONS):
                kind = cls.__name__
                raise DefinitionError(
                    f"`{kind}.define` takes a function, and this is {type(default).__name__}: {default!r}. "
                    "Write a `def` around it."
                )
            return super().define(default, **options)


_serials = itertools.count()

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, staticmethod, classmethod)


def _not_from_here(name: str) -> Callable[..., Any]:
    def from_outside(*args: Any, **kwargs: Any) -> Any:
        raise MissingHandlerError(
            name,
            "Its results come from outside, and nobody fetches them: install `HumanInteraction(…)` and a journal, as "
            "by `harness(journal=…, run_id=…)`, or somebody who answers at once: `AskInTerminal()`, both of "
            f"`effectful_agents.handlers.policy`, or `handler({{{name}: function}})`.",
        )

    return from_outside


def _unannotated(default: Callable[..., Any]) -> list[str]:
    """What lacks an annotation: parameters, and `return`."""
    parameters = list(inspect.signature(default).parameters.values())
    if parameters and is_method(default):
        parameters = parameters[1:]
    missing = [parameter.name for parameter in parameters if parameter.annotation is inspect.Parameter.empty]
    if inspect.signature(default).return_annotation is inspect.Signature.empty:
        missing.append("return")
    return missing


def _risk(value: Any, tool: str) -> Risk:
    try:
        return Risk(value)
    except ValueError as error:
        names = ", ".join(f"Risk.{one.name}" for one in Risk)
        raise DefinitionError(f"the tool `{tool}` has risk={value!r}; it is one of {names}.") from error


def _is_class_method(tool: Tool, cls: type) -> bool:
    """Whether the tool is a method of the class with `@classmethod` outside, so that Python calls it with the class."""
    return any(
        is_a(attribute, classmethod) and attribute.__func__ is tool
        for base in bases_of(cls)
        for attribute in names_in(base).values()
    )


def is_method(function: Callable[..., Any]) -> bool:
    """Whether a function is written in a class body, so that its first parameter is the instance or the class.

    A static method is too; its first parameter, if it has one, is then not asked for an annotation.
    """
    outside = getattr(inspect.unwrap(function), "__qualname__", "").rpartition(".")[0]
    return bool(outside) and not outside.endswith("<locals>")


def _resolve(function: Tool) -> inspect.Signature:
    try:
        inner: Any = inspect.unwrap(function.__wrapped__)  # ty: ignore[missing-attribute]
        signature = inspect.signature(inner)
    except DefinitionError:
        raise
    except Exception as error:  # what was set on the function as `__wrapped__`, say
        raise DefinitionError(f"`{function.__qualname__}` has no signature: {_told(error)}") from error
    names: dict[str, Any] = dict(function.__context__.items())
    if function.owner is not None:
        # The types in the class, not its methods: one that is called `list` is not what `list[int]` means.
        inside = {name: value for name, value in vars(function.owner).items() if is_a(value, *TYPES)}
        names = {**names, **inside, function.owner.__name__: function.owner}
    names.update({parameter.__name__: parameter for parameter in getattr(inner, "__type_params__", ())})
    try:
        hints = hints_of(inner, names)
    except NameError as error:
        raise DefinitionError(
            f"an annotation of `{function.__qualname__}` names `{error.name}`, which is not defined where it stands."
        ) from error
    except (TypeError, AttributeError, SyntaxError) as error:
        raise DefinitionError(f"an annotation of `{function.__qualname__}` is no type: {error}") from error
    except RecursionError:
        raise
    except Exception as error:  # it is code, and may raise anything
        raise DefinitionError(f"an annotation of `{function.__qualname__}` raises {_told(error)}") from error
    keep_names(names, inner.__globals__)
    return signature.replace(
        parameters=[
            parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
            for parameter in signature.parameters.values()
        ],
        return_annotation=hints.get("return", signature.return_annotation),
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
