"""The policy: which Python restricted code may be written in, and where the guards go."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, cast, override

from RestrictedPython.transformer import IOPERATOR_TO_STR

from effectful_agents.handlers.execution.displays import spread
from effectful_agents.handlers.execution.finals import FUNCTION, LOOP, FinallyPolicy
from effectful_agents.handlers.execution.kept_back import instead
from effectful_agents.handlers.execution.levels import with_ticks
from effectful_agents.handlers.execution.names import (
    is_attribute,
    is_binding,
    is_private,
    is_safe_type_text,
    is_type_expression,
)
from effectful_agents.handlers.execution.naming import NamingPolicy
from effectful_agents.handlers.execution.nodes import as_statements, at, call
from effectful_agents.handlers.execution.specials import LISTED, TAKE_OPERANDS

__all__ = ["RestrictedPythonPolicy"]

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "_add_",
    ast.FloorDiv: "_floordiv_",
    ast.Mult: "_mul_",
    ast.Pow: "_pow_",
    ast.LShift: "_lshift_",
    ast.Mod: "_mod_",
    ast.BitOr: "_or_",
    ast.BitAnd: "_and_",
    ast.BitXor: "_xor_",
    ast.Sub: "_sub_",
}
_SYMBOLS: Mapping[type[ast.operator], str] = cast(Any, IOPERATOR_TO_STR)
_FATAL = frozenset({"BaseExceptionGroup", "GeneratorExit", "KeyboardInterrupt", "SystemExit"})


class RestrictedPythonPolicy(NamingPolicy, FinallyPolicy):
    """The policy of RestrictedPython, for the Python that models write today.

    Beyond that policy it allows annotated assignments, names with one leading underscore, `nonlocal`, augmented
    assignment to items and attributes, `match`, type aliases and type parameters, metaclass arguments (which are
    checked when the class is made) and the special methods of operators and protocols. Everything else that it does
    not know stays forbidden: `async`, `except*`, star imports.

    It writes more guards than that policy: for each call, for arithmetic that could build something large, for formats,
    `raise`, `except` and `with`, and a count of the steps of each loop.

    >>> policy = RestrictedPythonPolicy()
    >>> _ = policy.visit(ast.parse("f.__globals__"))
    >>> policy.errors
    ['Line 1: `__globals__` is not available here.']
    """

    def __init__(self, errors: Any = None, warnings: Any = None, used_names: Any = None) -> None:
        super().__init__(errors, warnings, used_names)
        self.annotations_are_text = False
        """Whether annotations are not evaluated, and kept as texts."""
        self._classes: list[str] = []
        self._functions: list[str] = []

    # --- names ----------------------------------------------------------------------------------------------------

    @override
    def check_name(self, node: Any, name: str | None, allow_magic_methods: bool = False) -> None:
        if name is not None and not is_binding(name):
            self.error(node, f"the name `{name}` is not available here.")

    @override
    def check_import_names(self, node: ast.ImportFrom | ast.Import) -> ast.AST:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level:
            self.annotations_are_text |= any(name.name == "annotations" for name in node.names)
        for name in node.names:
            if "*" in name.name:
                self.error(node, "an import of `*` is not possible here; name what you need.")
            elif isinstance(node, ast.ImportFrom) and not is_attribute(name.name):
                self.error(node, f"`{name.name}` is not available here.")
            bound = name.asname or (name.name if isinstance(node, ast.ImportFrom) else name.name.partition(".")[0])
            if bound not in ("*", "__future__"):
                self.check_name(node, bound)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return self._checked_names(node)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return self._checked_names(node)

    def _checked_names(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            self.check_name(node, name)
        return node

    # --- attributes -----------------------------------------------------------------------------------------------

    def _mangled(self, name: str) -> str:
        """A private name of a class as it is kept; the compiler does this, but not in the text that a guard gets."""
        if name.startswith("__") and not name.endswith("__") and self._classes:
            owner = self._classes[-1].lstrip("_")
            return f"_{owner}{name}" if owner else name
        return name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        loads = isinstance(node.ctx, ast.Load)
        guard = self.special_guard(node)
        if guard is not None:
            return guard
        if not is_attribute(node.attr):
            self.error(node, f"`{node.attr}` is not available here{instead('attribute', node.attr)}.")
        value = self.visit(node.value)
        if loads:
            return call(node, "_getattr_", value, ast.Constant(self._mangled(node.attr)))
        node.value = call(node.value, "_write_", value, ast.Constant(self._mangled(node.attr)))
        return node

    # --- calls and operators --------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
            return node  # it looks at the frame that calls it
        called = self.called_name(node)
        node = self.node_contents_visit(node)
        node.func = called or node.func
        spread(node.args)
        maps = [one for one in node.keywords if one.arg is None]
        for one in maps:
            one.value = call(one.value, "_names_", one.value, ast.Constant(len(maps)))
        node.func = call(node.func, "_callee_", node.func)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        node = self.node_contents_visit(node)
        name = _OPERATORS.get(type(node.op))
        if name is None or _is_number_at_once(node):
            return node
        return call(node, name, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """`a.b += c` reads, adds and writes as the guards see it; what stands before the dot is evaluated once."""
        value, target = self.visit(node.value), node.target
        symbol = ast.Constant(_SYMBOLS[type(node.op)])
        if isinstance(target, ast.Name):
            self.check_name(node, target.id)
            old = ast.Name(target.id, ast.Load())
            return at(node, ast.Assign([target], call(node, "_inplacevar_", symbol, old, value)))
        names, before = [self.gen_tmp_name()], [self.visit(target.value)]
        obj = ast.Name(names[0], ast.Load())
        if isinstance(target, ast.Attribute):
            if not is_attribute(target.attr):
                self.error(node, f"`{target.attr}` is not available here.")
            key: ast.expr = ast.Constant(self._mangled(target.attr))
            old = call(node, "_getattr_", obj, key)
            new: ast.expr = ast.Attribute(call(node, "_write_", obj, key), target.attr, ast.Store())
        else:
            names.append(self.gen_tmp_name())
            before.append(self.visit(target.slice))
            key = ast.Name(names[1], ast.Load())
            old = call(node, "_getitem_", obj, key)
            new = ast.Subscript(call(node, "_write_", obj), key, ast.Store())
        steps: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], one) for name, one in zip(names, before, strict=True)
        ]
        steps.append(ast.Assign([new], call(node, "_inplacevar_", symbol, old, value)))
        steps.append(ast.Delete([ast.Name(name, ast.Del()) for name in names]))
        return [at(node, step) for step in steps]

    # --- assignments and loops ------------------------------------------------------------------------------------

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = self._annotation(node.annotation)
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    @override
    def guard_iter(self, node: Any) -> Any:
        node = self.node_contents_visit(node)
        node.iter = call(node.iter, "_looped_", node.iter)
        return self.guarded_target(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._loop(node, self.guard_iter)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._loop(node, self.node_contents_visit)

    def _loop(self, node: Any, visit: Any) -> ast.AST:
        otherwise, node.orelse = node.orelse, []  # a `break` in there is one of the loop around this one
        with self.within(LOOP):
            node = visit(node)
        node.orelse = [one for statement in otherwise for one in as_statements(self.visit(statement))]
        node.body.insert(0, _tick(node))
        return node

    # --- exceptions and context managers --------------------------------------------------------------------------

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        node = self.node_contents_visit(node)
        node.exc = node.exc and call(node.exc, "_raisable_", node.exc)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.check_name(node, node.name)
        kinds = node.type and self._exception_kinds(node.type)
        node.body = [one for statement in node.body for one in as_statements(self.visit(statement))]
        where = node.type or node
        # Without a class the guard means `Exception`, whatever the code has called by that name.
        node.type = call(where, "_catchable_", kinds or call(where, "_catchable_"))
        return node

    def _exception_kinds(self, kinds: ast.expr) -> ast.expr:
        # Which these names are is known, and there are no such classes here.
        if isinstance(kinds, ast.Name) and kinds.id in _FATAL:
            return at(kinds, ast.Tuple([], ast.Load()))
        if isinstance(kinds, ast.Name) and kinds.id == "BaseException":
            return call(kinds, "_catchable_")
        if isinstance(kinds, ast.Tuple):
            kinds.elts = [self._exception_kinds(one) for one in kinds.elts]
            return kinds
        return self.visit(kinds)

    def visit_With(self, node: ast.With) -> ast.AST:
        node = self.node_contents_visit(node)
        for item in node.items:
            item.context_expr = call(item.context_expr, "_with_", item.context_expr)
        return node

    # --- functions and classes ------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not (is_attribute(node.name, defined=True) or is_private(node.name)) or not is_binding(node.name):
            self.error(node, f"a function cannot be called `{node.name}` here{instead('attribute', node.name)}.")
        self.check_function_argument_names(node)
        node.returns = node.returns and self._annotation(node.returns)
        self._functions.append(node.name)
        with self.within(FUNCTION):
            node = self._without(node, "returns")
        self._functions.pop()
        node.decorator_list = [call(one, "_callee_", one) for one in node.decorator_list]
        if node.name.startswith("__"):
            # It is called by operators and by functions in C, which count nothing.
            first = 1 if ast.get_docstring(node, clean=False) is not None else 0
            node.body[first:first] = [_tick(node), *_with_operand(node)]
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        node = self.node_contents_visit(node)
        guard = "_listed_" if self._functions and self._functions[-1] in LISTED else "_returned_"
        node.value = node.value and _returned(node.value, guard)
        return self.leaving(node, FUNCTION)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.check_function_argument_names(node)
        node = self.node_contents_visit(node)
        node.body = _returned(node.body)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = node.annotation and self._annotation(node.annotation)
        return node

    def _without(self, node: Any, field: str) -> Any:
        """Visit a node but for one of its fields, which was visited in another way."""
        kept = getattr(node, field)
        setattr(node, field, None)
        node = self.node_contents_visit(node)
        setattr(node, field, kept)
        return node

    def _annotation(self, node: ast.expr) -> ast.expr:
        for part in _type_texts(node, self.annotations_are_text):
            if not is_safe_type_text(part):
                self.error(node, f"the text {part!r} in an annotation does not only name types.")
        if not self.annotations_are_text:
            return call(node, "_annotated_", self.visit(node))
        # Whoever wants to know evaluates it, so it has to stay as it was written.
        if not is_type_expression(ast.Expression(node)):
            self.error(node, "an annotation can only name types here, where annotations are kept as texts.")
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.check_name(node, node.name)
        self._classes.append(node.name)
        body = [one for statement in node.body for one in as_statements(self.visit(statement))]
        self._classes.pop()
        node.body = []
        node = self.node_contents_visit(node)
        spread(node.bases)
        node.decorator_list = [call(one, "_callee_", one) for one in node.decorator_list]
        node.body = body
        return node

    def _type_parameter(self, node: Any) -> ast.AST:
        self.check_name(node, node.name)
        node = self.node_contents_visit(node)
        for field in ("bound", "default_value"):
            hint = getattr(node, field, None)
            if isinstance(hint, ast.Tuple) and field == "bound":  # of constraints, as the compiler sees it
                hint.elts = [call(one, "_annotated_", one) for one in hint.elts]
            elif hint is not None:
                setattr(node, field, call(hint, "_annotated_", hint))
        return node

    visit_TypeVar = visit_ParamSpec = visit_TypeVarTuple = _type_parameter

    def visit_TypeAlias(self, node: ast.TypeAlias) -> ast.AST:
        node.name = self.visit(node.name)
        for parameter in node.type_params:
            self.visit(parameter)
        node.value = call(node.value, "_annotated_", self.visit(node.value))
        return node

    def _counted(self, node: Any) -> ast.AST:
        node = self._whole(node)
        with_ticks(node)
        return node

    visit_Module = visit_Expression = visit_Interactive = _counted


def _tick(where: ast.AST) -> ast.Expr:
    return at(where, ast.Expr(call(where, "_tick_")))


def _with_operand(method: ast.FunctionDef) -> list[ast.stmt]:
    """What the method of an operator does first with what is on the other side."""
    positional = [*method.args.posonlyargs, *method.args.args]
    if method.name not in TAKE_OPERANDS or len(positional) < 2:
        return []
    name = positional[1].arg
    value = call(method, "_operand_", ast.Name(name, ast.Load()))
    return [at(method, ast.Assign([ast.Name(name, ast.Store())], value))]


_NOT_TYPES = frozenset({"Annotated", "Literal"})


def _type_texts(node: ast.AST, annotations_are_text: bool) -> Iterable[str]:
    """The texts in an annotation, but for those that are no types, as far as a guard will see that it is so."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    name = node.value if isinstance(node, ast.Subscript) else None
    if getattr(name, "id", getattr(name, "attr", None)) in _NOT_TYPES and not annotations_are_text:
        return
    for part in ast.iter_child_nodes(node):
        yield from _type_texts(part, annotations_are_text)


_NO_CALLABLES = (
    *(ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda),
)


def _returned(value: ast.expr, guard: str = "_returned_") -> ast.expr:
    """What a function returns, looked at where it may be something that can be called."""
    return value if isinstance(value, _NO_CALLABLES) else call(value, guard, value)


def _is_number_at_once(node: ast.BinOp) -> bool:
    """Whether an operator cannot build anything large: one side is a number that is written there."""
    sides: Iterable[ast.expr] = (node.left, node.right)
    numbers = [side.value for side in sides if isinstance(side, ast.Constant) and type(side.value) in (int, float)]
    if not numbers:
        return False
    if isinstance(node.op, ast.Add | ast.Sub | ast.BitAnd | ast.BitXor | ast.BitOr):
        return True
    if isinstance(node.op, ast.FloorDiv):
        return isinstance(node.right, ast.Constant)
    if isinstance(node.op, ast.Mod):
        return isinstance(node.left, ast.Constant) and type(node.left.value) in (int, float)
    return any(type(number) is float for number in numbers)
