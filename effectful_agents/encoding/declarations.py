"""Values as declarations: Python source that gives a name the type of its value.

A type checker reads source, and some names of a program are in no source that it could read: those of a REPL or of a
notebook, those that a model's code has bound. For each of them a line is written that says what is known of the value.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import dataclasses
import enum
import inspect
import keyword
import sys
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

from effectful_agents.encoding.signatures import Verbatim
from effectful_agents.types import Tool

__all__ = ["Declarations"]

_ANY = "_typing.Any"
_MOST_ITEMS = 10_000
"""Of a longer collection the types of the items are not looked at."""
_MOST_ALIKE = 30
"""Of a longer collection of lists or dictionaries what is in these is not looked at."""
_NUMBERS = frozenset({int, float})
_LITERALS = (str, int, bool, bytes, type(None))


class Declarations:
    """The source of declarations, in the order in which they are needed.

    Args:
        module: The name of the module that they will stand in.
        known: The names that are bound there.
        env: The values of those names.

    Attributes:
        lines: Declarations for the top of the module.
        values: Statements for a function in it, which bind names to values.
    """

    def __init__(self, module: str | None, known: Collection[str], env: Mapping[str, Any]) -> None:
        self.lines: list[str] = ["import typing as _typing"]
        self.values: list[str] = []
        self._module = module
        self._known = known
        self._env = env
        self._stubs: dict[type, str] = {}

    def declare(self, name: str, value: Any) -> None:
        """Declare a name by the type of its value."""
        # By `type`: an object that stands for another would make that one when it is asked for its class.
        kind = type(value)
        if issubclass(kind, types.ModuleType):
            known = sys.modules.get(value.__name__) is value
            self.lines.append(f"import {value.__name__} as {name}" if known else f"{name}: {_ANY} = None")
        elif issubclass(kind, _DEFINED) and (place := _importable(value)):
            module, path = place
            first, _, rest = path.partition(".")
            alias = f"_{name}" if rest else name
            self.lines.append(f"from {module} import {first} as {alias}")
            if rest:
                self.lines.append(f"{name} = {alias}.{rest}")
        elif issubclass(kind, type):
            stub = self._stub(value, name)
            if stub != name:
                self.lines.append(f"{name} = {stub}")
        elif issubclass(kind, (types.FunctionType, Tool)):
            self.lines += self._function(name, value)
        else:
            self.cast(name, self.of_value(value))

    def cast(self, name: str, text: str) -> None:
        """Bind a name to a value of a type, so that it may be bound anew to another."""
        self.values.append(f"{name} = _typing.cast({text!r}, None)")

    def of_value(self, value: Any, depth: int = 2) -> str:
        """The type of a value, as text."""
        kind = type(value)
        if value is None or issubclass(kind, (type, types.FunctionType, types.MethodType, types.ModuleType, Tool)):
            return _ANY
        if kind is tuple and depth and 0 < len(value) <= 8:
            return f"tuple[{', '.join(self.of_value(one, depth - 1) for one in value)}]"
        if kind in (list, set, frozenset, collections.deque) and depth:
            return f"{self.named(kind)}[{self._items(value, depth)}]"
        if kind in (dict, collections.OrderedDict) and depth:
            return f"{self.named(kind)}[{self._items(value.keys(), depth)}, {self._items(value.values(), depth)}]"
        return self.named(kind)

    def _items(self, items: Collection[Any], depth: int) -> str:
        if not 0 < len(items) <= _MOST_ITEMS:
            return _ANY
        of_kind = {type(one): one for one in list(items)}
        if of_kind.keys() == _NUMBERS:
            return "float"
        if len(of_kind) > 1:
            # As a union each of them would have to fit wherever one is used: rows of a table are not meant so.
            return _ANY
        kind, item = next(iter(of_kind.items()))
        if kind in (list, tuple, dict, set, frozenset) and len(items) > 1:
            # What is in the others may be something else.
            texts = list(dict.fromkeys(self.of_value(one, depth - 1) for one in list(items)[:_MOST_ALIKE]))
            return texts[0] if len(texts) == 1 and len(items) <= _MOST_ALIKE else self.named(kind)
        return self.of_value(item, depth - 1)

    def named(self, tp: Any) -> str:
        """A type as text that means it where the declarations stand; `Any` where it cannot be named."""
        origin, arguments = typing.get_origin(tp), typing.get_args(tp)
        if tp is None or tp is type(None):
            return "None"
        if tp is ...:
            return "..."
        if origin is Annotated:
            return self.named(tp.__origin__)
        if origin in (typing.Union, types.UnionType):
            return " | ".join(map(self.named, arguments))
        if origin is Literal:
            plain = all(type(one) in _LITERALS for one in arguments)
            return f"_typing.Literal[{', '.join(map(repr, arguments))}]" if plain else _ANY
        if origin is collections.abc.Callable:
            parameters = arguments[0]
            given = f"[{', '.join(map(self.named, parameters))}]" if isinstance(parameters, list) else "..."
            return f"_typing.Callable[{given}, {self.named(arguments[-1])}]"
        if isinstance(tp, typing.TypeAliasType):
            return self.named(tp.__value__) if _importable(tp) is None else self._name(tp)
        if origin is not None and origin is not tp:
            name = self.named(origin)
            written = [_ANY if isinstance(one, list) else self.named(one) for one in arguments]
            return name if name == _ANY or not written else f"{name}[{', '.join(written)}]"
        if isinstance(tp, type):
            return self._name(tp)
        if isinstance(tp, typing.NewType):
            return self.named(tp.__supertype__)
        if isinstance(tp, str | typing.ForwardRef):
            return self._read(tp if isinstance(tp, str) else tp.__forward_arg__)
        return _ANY

    def _read(self, text: str) -> str:
        """An annotation that was kept as text. It is never evaluated: a model may have written it."""
        try:
            return self._of_tree(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError):
            return _ANY

    def _of_tree(self, node: ast.expr) -> str:
        match node:
            case ast.Name(name):
                found = self._env.get(name, getattr(builtins, name, None))
                return self.named(found) if isinstance(found, type | typing.TypeAliasType) else _ANY
            case ast.Constant(None):
                return "None"
            case ast.Constant(str(text)):
                return self._read(text)
            case ast.Constant(value) if value is ...:
                return "..."
            case ast.BinOp(left, ast.BitOr(), right):
                return f"{self._of_tree(left)} | {self._of_tree(right)}"
            case ast.Subscript(ast.Name() as base, inner):
                name = self._of_tree(base)
                arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return name if name == _ANY else f"{name}[{', '.join(map(self._of_tree, arguments))}]"
        return _ANY

    def _name(self, kind: Any) -> str:
        name: str = kind.__name__ if isinstance(kind, typing.TypeAliasType) else kind.__qualname__
        module = getattr(kind, "__module__", None)
        own = name.rpartition("<locals>.")[2]
        first = own.partition(".")[0]
        here = module == self._module and first in self._known
        if here and _same(self._env.get(first), own, kind):
            return own
        if module == "builtins" and getattr(builtins, name, None) is kind and name not in self._known:
            return name
        if place := _importable(kind):
            alias = f"_{place[0].replace('.', '_')}"
            line = f"import {place[0]} as {alias}"
            if line not in self.lines:
                self.lines.append(line)
            return f"{alias}.{place[1]}"
        return self._stub(kind, own.replace(".", "_")) if isinstance(kind, type) else _ANY

    def _stub(self, cls: type, name: str) -> str:
        found = self._stubs.get(cls)
        if found is not None:
            return found
        if not _is_name(name):
            return _ANY
        while name in self._known or name in self._stubs.values() or (name in self._env and self._env[name] is not cls):
            name += "_"
        self._stubs[cls] = name
        # Whole, before it is added: what it names may have to be declared first.
        self.lines += list(self._class(cls, name))
        return name

    def _class(self, cls: Any, name: str) -> Iterator[str]:
        own = vars(cls)
        parameters = own.get("__dataclass_params__")
        bases = [self.named(base) for base in own.get("__orig_bases__", cls.__bases__) if base is not object]
        named_tuple = issubclass(cls, tuple) and "_fields" in own
        if typing.is_typeddict(cls):
            bases = ["_typing.TypedDict", f"total={own['__total__']}"]
        elif named_tuple:
            bases = ["_typing.NamedTuple"]
        if parameters is not None:
            self.lines.append("import dataclasses as _dataclasses")
            options = {"frozen": parameters.frozen, "kw_only": getattr(parameters, "kw_only", False)}
            yield f"@_dataclasses.dataclass({', '.join(f'{key}={value}' for key, value in options.items())})"
        bases = [base for base in bases if base not in (_ANY, "_typing.Generic", "_typing.Protocol")]
        yield f"class {name}({', '.join(bases)}):"
        yield "    pass"
        if issubclass(cls, enum.Enum) and "_member_map_" in own:
            for name, member in own["_member_map_"].items():
                value = member._value_  # what `value` is may be the class's own
                yield f"    {name} = {repr(value) if type(value) in _LITERALS else '...'}"
        fields = {n: t for n, t in inspect.get_annotations(cls).items() if _is_name(n)}
        models = "__pydantic_fields__" in own
        for field, annotation in fields.items():
            has_default = field in own or field in own.get("_field_defaults", {})
            if parameters is not None:
                kept = own["__dataclass_fields__"].get(field)
                has_default = kept is not None and (
                    kept.default is not dataclasses.MISSING or kept.default_factory is not dataclasses.MISSING
                )
            elif models:
                kept = own["__pydantic_fields__"].get(field)
                has_default = kept is not None and not kept.is_required()
            default = " = ..." if has_default and (parameters is not None or named_tuple or models) else ""
            yield f"    {field}: {self._quoted(annotation)}{default}"
        made = parameters is not None or named_tuple or models or issubclass(cls, enum.Enum)
        members = own.get("_member_map_", {})
        for attribute, value in own.items():
            hidden = attribute.startswith("_") if made else attribute.startswith("_abc_")
            if attribute in fields or attribute in members or not _is_name(attribute) or hidden:
                continue
            for line in self._member(attribute, value):
                yield f"    {line}"
        if not made and not typing.is_typeddict(cls):
            # What a constructor sets is not known.
            yield f"    def __getattr__(self, name: str) -> {_ANY}: ..."

    def _member(self, name: str, value: Any) -> list[str]:
        if isinstance(value, staticmethod | classmethod):
            kind = "staticmethod" if isinstance(value, staticmethod) else "classmethod"
            return [f"@{kind}", *self._function(name, value.__func__)]
        if isinstance(value, property):
            return ["@property", *self._function(name, value.fget)]
        if isinstance(value, types.FunctionType | Tool):
            return self._function(name, value)
        if name.startswith("__") or isinstance(value, type | types.ModuleType) or hasattr(type(value), "__get__"):
            return []
        return [f"{name}: {_ANY}"]

    def _function(self, name: str, function: Any) -> list[str]:
        try:
            inner = inspect.unwrap(function.__wrapped__ if isinstance(function, Tool) else function)
            signature = inspect.signature(inner)
        except Exception:  # a signature may be anything's
            return [f"def {name}(*args: {_ANY}, **kwargs: {_ANY}) -> {_ANY}: ..."]
        if isinstance(function, Tool) and function.receiver is not None:
            signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        start = "async def" if inspect.iscoroutinefunction(inner) else "def"
        given = [
            one.replace(
                annotation=one.annotation if one.annotation is one.empty else Verbatim(self._quoted(one.annotation)),
                default=one.default if one.default is one.empty else Verbatim("..."),
            )
            for one in signature.parameters.values()
        ]
        returned = signature.return_annotation
        result = _ANY if returned is signature.empty else self._quoted(returned)
        return [f"{start} {name}{signature.replace(parameters=given, return_annotation=Verbatim(result))}: ..."]

    def _quoted(self, tp: Any) -> str:
        # In quotes, for a class that is only half declared.
        return repr(self.named(tp))


_DEFINED = (type, types.FunctionType, types.BuiltinFunctionType, typing.TypeAliasType, Tool)


def _importable(value: Any) -> tuple[str, str] | None:
    """The module and the path in it under which a checker finds a class or function."""
    module = getattr(value, "__module__", None)
    path = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(path, str) or module == "__main__":
        return None
    home = sys.modules.get(module)
    spec = getattr(home, "__spec__", None)
    # A module that is made while the program runs has no file that a checker could read.
    if spec is None or not (spec.has_location or spec.origin in ("built-in", "frozen")):
        return None
    first = path.partition(".")[0]
    return (module, path) if first.isidentifier() and _same(getattr(home, first, None), path, value) else None


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _same(found: Any, path: str, value: Any) -> bool:
    for name in path.split(".")[1:]:
        found = inspect.getattr_static(found, name, None)
    return found is value
