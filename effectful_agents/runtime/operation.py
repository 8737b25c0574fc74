"""Operations of ours: effectful's, with a short way to their handlers and with bound operations for methods.

Performing one looks for a handler of the operation itself; for a bound operation, then for one of the operation of its
class, which gets the instance as its first argument; then for one of the `__apply__` of each of its classes, which gets
the operation by position and then the arguments. Without any of them its default rule runs.
"""

import copy
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ClassVar, Concatenate, Self, overload

from effectful.ops.syntax import defdata
from effectful.ops.types import NotHandled, Term
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.errors import Signal
from effectful_agents.runtime.carrying import Interpretation, current
from effectful_agents.runtime.dispatch import Beyond, perform
from effectful_agents.runtime.stopping import keep_signal, scopes


class Operation[**P, T](EffectfulOperation[P, T]):
    """An effect: a function whose meaning handlers decide.

    Made by `define`. In a class it is a method: `bot.ask` is a bound operation of the same class as `Bot.ask`, made at
    each access and equal to any other of the same instance, so that `handler({bot.ask: ...})` handles that instance and
    `handler({Bot.ask: ...})` all of them. Nothing is stored in the instance.

    A subclass may take options of `define` in its `__init__`. Bound operations start with the attributes of the
    operation that they were made from, but for each `cached_property`, which they compute for themselves.

    Attributes:
        forwards_to_apply: Whether the last handler of an operation forwards to the handlers of its class's `__apply__`;
            effectful's operations go straight to the default rule. A class whose meaning lies in its `__apply__` says
            so.
        __self__: The instance of a bound operation; other operations have none.
        __func__: The operation that a bound operation was made from; other operations have none.
    """

    # Not in `__dict__`, which `functools.wraps` copies from one operation to the next.
    __slots__ = ("__func__", "__self__", "_attribute", "_function", "_hash", "_original", "_owners")

    __qualname__: str
    __self__: Any
    __func__: "Operation[..., T]"

    forwards_to_apply: ClassVar[bool] = False

    _applies: ClassVar[tuple[EffectfulOperation, ...]]
    _computed: ClassVar[tuple[str, ...]]

    def __init__(self, default: Callable[P, T], name: str | None = None) -> None:
        super().__init__(default, name)
        for computed in self._computed:
            # Copied from the operation that `default` wraps, if it wraps one.
            self.__dict__.pop(computed, None)
        self._function = self._original = None
        self._owners: tuple[type, ...] = ()
        self._attribute = self.__name__
        self._hash = object.__hash__(self)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Past effectful's own, which makes an `__apply__` that applies itself.
        super(EffectfulOperation, cls).__init_subclass__(**kwargs)
        _complete_class(cls)

    @classmethod
    def define[**Q, V](  # ty: ignore[incompatible-attribute-override]  # effectful's is a singledispatchmethod
        cls, default: Callable[Q, V], *, name: str | None = None, **options: Any
    ) -> "Operation[Q, V]":
        """Make an operation.

        Args:
            default: A function, whose body is the default rule; where that raises `NotHandled` an unhandled operation
                gives a term. A type makes a variable of that type, an operation a new one without its default rule.
                Static and class methods are defined in either order of the decorators.
            name: Its name, if not the function's.
            options: For the `__init__` of a subclass.
        """
        return cls._defined(default, name, options)

    @classmethod
    def _defined(cls, default: Any, name: str | None, options: dict[str, Any]) -> Any:
        if isinstance(default, staticmethod):
            return staticmethod(cls.define(default.__func__, name=name, **options))
        if isinstance(default, classmethod):
            return _ClassOperation(cls.define(default.__func__, name=name, **options))
        if isinstance(default, types.FunctionType | types.MethodType):
            return cls(default, name=name, **options)
        return super().define(default, name=name, **options)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._owners and self._has_receiver(args):
            return self._bind(args[0])(*args[1:], **kwargs)
        for scope in scopes.get():
            if scope.armed:
                scope.check()
        interpretation = current.get()
        entry = interpretation.get(self)
        try:
            if entry is None:
                return self._perform_in_class(interpretation, args, kwargs)
            return perform(entry, self, interpretation, args, kwargs)
        except Signal as signal:
            keep_signal(signal)
            raise

    def _has_receiver(self, args: tuple) -> bool:
        """Whether `Bot.ask(bot, ...)` is performed, which is to be `bot.ask(...)` in every respect."""
        return bool(args) and isinstance(args[0], self._owners) and not isinstance(args[0], Term)

    def _perform_in_class(self, interpretation: Interpretation, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Perform, when nothing handles this very operation, or nothing further."""
        function = self._function
        if function is not None:
            entry = interpretation.get(function)
            if entry is not None:
                return perform(entry, function, interpretation, (self.__self__, *args), kwargs)
        return _apply(self._applies, self, interpretation, args, kwargs)

    def forward_past(self, args: tuple, kwargs: dict[str, Any], /) -> Any:
        """Go on after the last handler of this operation (see `Beyond`)."""
        if self._function is not None:
            return self._perform_in_class(current.get(), args, kwargs)
        if self._has_receiver(args):
            return self._bind(args[0])._perform_unhandled(args[1:], kwargs)
        return self._perform_unhandled(args, kwargs)

    def _perform_unhandled(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if self.forwards_to_apply:
            return _apply(self._applies, self, current.get(), args, kwargs)
        return self.__default_rule__(*args, **kwargs)

    def handled_past(self, interpretation: Interpretation, /) -> bool:
        """Whether `forward_past` comes to another handler (see `Beyond`)."""
        function = self._function
        if function is None and not self.forwards_to_apply:
            return False
        return function in interpretation or any(apply in interpretation for apply in self._applies)

    # Effectful's own takes no argument called `self`.
    def __default_rule__(self, /, *args: Any, **kwargs: Any) -> Any:  # ty: ignore[override-of-final-method]
        try:
            return self.__default__(*args, **kwargs)
        except NotHandled:
            return defdata(self, *args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        # Again and again: `dataclass(slots=True)` makes the class twice, and another class may take the operation over.
        self._attribute = name
        if not issubclass(owner, Term):
            self._owners = (*self._owners, owner)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__[S, **R](
        self: "Operation[Concatenate[S, R], T]", instance: S, owner: type | None = None
    ) -> "Operation[R, T]": ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or self._function is not None:
            return self
        if instance is owner or isinstance(instance, Term):
            # `classmethod` around an operation asks so on Python 3.12, and gets what 3.13 gives by itself. A term is
            # no instance yet: it must stay an argument, for `evaluate` to replace it.
            return types.MethodType(self, instance)
        return self._bind(instance)

    def _bind(self, instance: Any) -> Any:
        bound = object.__new__(type(self))
        attributes = bound.__dict__
        attributes.update(self.__dict__)
        for name in self._computed:
            attributes.pop(name, None)
        attributes["__default__"] = attributes["__wrapped__"] = types.MethodType(self.__default__, instance)
        bound.__self__ = instance
        bound.__func__ = bound._function = self
        bound._attribute = self._attribute
        bound._original = None
        bound._owners = ()
        bound._hash = hash((self._hash, id(instance)))
        return bound

    def alias(self) -> Self:
        """Another operation that is equal to this one, and so has the same handlers; it may get another name."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._function, other._original = None, self._original or self
        other._attribute, other._owners, other._hash = self._attribute, self._owners, self._hash
        return other

    @property
    def __signature__(self) -> inspect.Signature:
        return self._signature if self._function is None else self._function._bound_signature

    @functools.cached_property
    def _bound_signature(self) -> inspect.Signature:
        """The signature without the first parameter; kept here, as a bound operation is made for each access."""
        signature = self.__signature__
        parameters = list(signature.parameters.values())
        if parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            del parameters[0]
        return signature.replace(parameters=parameters)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        function = self._function
        if function is None:
            return (self._original or self) is (other._original or other)
        theirs = other._function
        # Equal, not the same: one of the two may have been made from an alias.
        return theirs is not None and theirs == function and other.__self__ is self.__self__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Operations are atoms, as functions are; a bound one is bound to the copy of its instance, as methods are."""
        function = self._function
        return self if function is None else function._bind(copy.deepcopy(self.__self__, memo))

    def __reduce__(self) -> Any:
        if self._function is None:
            return self.__qualname__  # found again in its module
        return getattr, (self.__self__, self._attribute)


class _ClassOperation(classmethod):
    """`@Operation.define` over `@classmethod`: an operation for each class, bound to it."""

    def __set_name__(self, owner: type, name: str) -> None:
        operation: Any = self.__func__
        operation.__set_name__(owner, name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        operation: Any = self.__func__
        return operation._bind(type(instance) if owner is None else owner)


class _Apply(EffectfulOperation):
    """The `__apply__` of one class of operations.

    Args:
        owner: The class.
        outer: The `__apply__` of its base classes, in the order in which they are tried after this.
    """

    __hash__ = object.__hash__
    __default_rule__ = Operation.__default_rule__  # ty: ignore[override-of-final-method]

    def __init__(self, owner: type, outer: tuple[EffectfulOperation, ...]) -> None:
        # Fully annotated, as effectful takes the type of a term from it.
        def __apply__[**A, B](operation: EffectfulOperation[A, B], /, *args: A.args, **kwargs: A.kwargs) -> B:
            return _apply(outer, operation, current.get(), args, kwargs)

        super().__init__(__apply__)
        self.__module__ = owner.__module__
        self.__qualname__ = f"{owner.__qualname__}.__apply__"
        self._outer = outer

    def __call__(self, operation: EffectfulOperation, /, *args: Any, **kwargs: Any) -> Any:
        return _apply((self, *self._outer), operation, current.get(), args, kwargs)

    def __reduce__(self) -> str:
        return self.__qualname__

    def forward_past(self, args: tuple, kwargs: dict[str, Any], /) -> Any:
        return self.__default_rule__(*args, **kwargs)

    def handled_past(self, interpretation: Interpretation, /) -> bool:
        return any(apply in interpretation for apply in self._outer)


class _Root:
    """Beyond the handlers of effectful's own `Operation.__apply__`: the default rule of the operation applied."""

    def forward_past(self, args: tuple, kwargs: dict[str, Any], /) -> Any:
        operation, *rest = args
        return operation.__default_rule__(*rest, **kwargs)

    def handled_past(self, interpretation: Interpretation, /) -> bool:
        return False


_ROOT = _Root()


def _apply(
    applies: tuple[EffectfulOperation, ...],
    operation: EffectfulOperation,
    interpretation: Interpretation,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    """Perform an operation by the first of some `__apply__` that is handled, or by its default rule."""
    for apply in applies:
        entry = interpretation.get(apply)
        if entry is not None:
            beyond: Beyond = apply if isinstance(apply, _Apply) else _ROOT
            return perform(entry, beyond, interpretation, (operation, *args), kwargs)
    return operation.__default_rule__(*args, **kwargs)


def _complete_class(cls: Any) -> None:
    """Give a class of operations its own `__apply__`, and list what its bound operations compute anew."""
    outer = tuple(base.__apply__ for base in cls.__mro__[1:] if "__apply__" in vars(base))
    own = _Apply(cls, outer)
    cls.__apply__ = staticmethod(own)
    cls._applies = (own, *outer)
    cls._computed = tuple(
        {
            name
            for base in cls.__mro__
            for name, value in vars(base).items()
            if isinstance(value, functools.cached_property)
        }
    )


_complete_class(Operation)
