"""Which names restricted code may use: identifiers, attributes, and the special methods of its own classes."""

from __future__ import annotations

import ast
import re
import sys

from RestrictedPython.transformer import INSPECT_ATTRIBUTES

__all__ = [
    "BINDABLE",
    "GUARDS",
    "READABLE",
    "is_attribute",
    "is_binding",
    "is_identifier",
    "is_private",
    "is_safe_type_text",
    "is_standard",
]

GUARDS = frozenset(
    [
        "__builtins__",
        "__metaclass__",
        "__sandbox__",
        "_add_",
        "_and_",
        "_annotated_",
        "_apply_",
        "_awaited_",
        "_callee_",
        "_catchable_",
        "_contained_",
        "_delegated_",
        "_each_",
        "_floordiv_",
        "_flying_",
        "_format_",
        "_getattr_",
        "_getitem_",
        "_getiter_",
        "_inplacevar_",
        "_instance_",
        "_iter_unpack_sequence_",
        "_joined_",
        "_kept_",
        "_listed_",
        "_looped_",
        "_lshift_",
        "_mapping_",
        "_mod_",
        "_mul_",
        "_named_",
        "_names_",
        "_opened_",
        "_operand_",
        "_or_",
        "_pairs_",
        "_pow_",
        "_print",
        "_print_",
        "_raisable_",
        "_returned_",
        "_sequence_",
        "_shown_",
        "_shown_ascii_",
        "_shown_repr_",
        "_slices_",
        "_special_",
        "_spread_",
        "_sub_",
        "_tick_",
        "_told_",
        "_unpack_sequence_",
        "_unpacked_",
        "_with_",
        "_write_",
        "_xor_",
    ]
)
"""What the policies write into the code that they compile. Who could bind one of these could switch a guard off."""

_TEMPORARY = re.compile(r"_tmp\d+_?")

_OPERATORS = (
    "abs add and bool bytes ceil complex contains delitem divmod enter eq exit float floor floordiv format ge "
    "getitem gt hash iadd iand ifloordiv ilshift imatmul imod imul index int invert ior ipow irshift isub iter "
    "itruediv ixor le len length_hint lshift lt matmul missing mod mul ne neg next or pos pow radd rand rdivmod "
    "repr reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor setitem "
    "str sub truediv trunc xor"
)
READABLE = frozenset(
    {f"__{name}__" for name in _OPERATORS.split()}
    | {"__call__", "__doc__", "__init__", "__init_subclass__", "__name__", "__new__", "__post_init__", "__qualname__"}
    # The guard hands out versions of its own of these: `object.__setattr__(self, …)` is how frozen classes begin.
    | {"__setattr__", "__delattr__", "__members__"}
)
"""Special attributes that may be read, called and defined. Each other one is a way back into the interpreter."""

_HOOKS = frozenset(
    [
        "__class_getitem__",
        "__copy__",
        "__deepcopy__",
        "__delete__",
        "__get__",
        "__getattr__",
        "__match_args__",
        "__set__",
        "__set_name__",
    ]
)
"""Special methods that a class may define, and that nobody may read."""

BINDABLE = frozenset({"__all__", "__author__", "__slots__", "__version__"})
"""Special names that say something about the code itself."""


def is_identifier(name: str) -> bool:
    """Whether code may read this name.

    >>> [name for name in ("x", "_x", "__init__", "__import__", "_getattr_") if is_identifier(name)]
    ['x', '_x', '__init__']
    """
    if not name.startswith("_"):
        return name not in ("breakpoint", "builtins")
    if name in GUARDS or _TEMPORARY.fullmatch(name):
        return False
    return not _is_special(name) or name in READABLE or name in _HOOKS or name in BINDABLE


def is_binding(name: str) -> bool:
    """Whether code may bind this name.

    `super` without arguments is called past the guards, so it stays what it is; and from `__name__` a class has the
    module that it is in, by which it is known as the code's own.
    """
    return name not in ("super", "__name__") and is_identifier(name)


def is_attribute(name: str, *, defined: bool = False) -> bool:
    """Whether code may read an attribute of this name, or with `defined` give its own class one.

    >>> [name for name in ("x", "_x", "__len__", "__class__", "gi_frame") if is_attribute(name)]
    ['x', '_x', '__len__']
    """
    if _is_special(name):
        return name in READABLE or (defined and (name in _HOOKS or name in BINDABLE))
    return name not in INSPECT_ATTRIBUTES and not name.startswith(("f_back", "f_globals")) and name not in GUARDS


def is_private(name: str) -> bool:
    """Whether it begins with an underscore, and is not special."""
    return name.startswith("_") and not _is_special(name)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def is_standard(module: object) -> bool:
    """Whether a name of a module is one of the standard library."""
    return type(module) is str and module.partition(".")[0] in sys.stdlib_module_names


_TYPE_NODES = (
    *(ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Load),
    *(ast.BinOp, ast.BitOr, ast.UnaryOp, ast.USub, ast.Starred),
    # Of texts that are no types: `Literal["read-only"]`, `Annotated[int, "0 < x <= 9"]`.
    *(ast.Sub, ast.Div, ast.FloorDiv, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.Not),
)


_LONGEST = 10_000
_BRACKETS = frozenset("()[]{}\\`")


def is_safe_type_text(text: str) -> bool:
    """Whether a text that stands where a type is expected does nothing when somebody evaluates it.

    Whoever resolves annotations evaluates them with all powers, and outside of the sandbox: pydantic does, for one.
    What cannot be parsed is harmless as long as it could call nothing in any case.

    >>> is_safe_type_text("list[Node] | None"), is_safe_type_text("__import__('os').system('id')")
    (True, False)
    >>> is_safe_type_text("in metres, at least 1"), is_safe_type_text("in metres (at least 1)")
    (True, False)
    """
    if type(text) is not str or len(text) > _LONGEST or "\0" in text:
        return False
    source = text.strip()
    try:
        # `typing` evaluates a text that begins with a star in this way.
        tree = ast.parse(f"({source},)[0]" if source.startswith("*") else source, mode="eval")
    except SyntaxError:
        return _BRACKETS.isdisjoint(text)
    except (ValueError, RecursionError, MemoryError):
        return False
    return is_type_expression(tree)


def is_type_expression(tree: ast.AST) -> bool:
    """Whether an expression only names types and puts them together."""
    for node in ast.walk(tree):
        if not isinstance(node, _TYPE_NODES):
            return False
        if isinstance(node, ast.Name) and not is_identifier(node.id):
            return False
        if isinstance(node, ast.Attribute) and not (is_attribute(node.attr) and not node.attr.startswith("_")):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_safe_type_text(node.value):
            return False
    return True
