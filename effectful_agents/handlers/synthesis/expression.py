"""Tool calls that are written as Python expressions: one tool, and the tool that a model is offered in its place."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import types
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from effectful_agents.encoding import signature_text
from effectful_agents.encoding.functions import called_skill, told_as_problem
from effectful_agents.encoding.once import run_once
from effectful_agents.encoding.splicing import splice_snippet
from effectful_agents.errors import MissingHandlerError
from effectful_agents.generated import generated_name
from effectful_agents.operations import code, session
from effectful_agents.operations.loop import DecodedToolCall
from effectful_agents.types import Tool
from effectful_agents.types.walk import implicit_target

__all__ = ["CallExpression", "ExpressionTool", "expression_tool"]


@dataclasses.dataclass(frozen=True, eq=False)
class CallExpression[T](DecodedToolCall[T]):
    """A tool call that was decoded from a Python expression: the call of the tool itself, with its arguments.

    Attributes:
        source: The expression. It is the only form of the call on the wire: the arguments may be values without one.
    """

    source: str = dataclasses.field()  # without the default of the base


class ExpressionTool(Tool):
    """What a model is offered in the place of a tool: it has one parameter, an expression that calls the tool.

    Its calls are never carried out: the one that was meant takes their place.
    """


def expression_tool(tool: Tool, path: str) -> ExpressionTool:
    """Make the tool that a model calls another one with.

    Args:
        tool: The other one.
        path: How Python code in the skill calls it: `self.find`.
    """

    @run_once
    def decoded(source: str, context: Any) -> CallExpression:
        with told_as_problem():
            return _decoded(source, tool, path, context if isinstance(context, Mapping) else {})

    def decode(source: str, info: pydantic.ValidationInfo) -> CallExpression:
        return decoded(source, info.context)

    function = types.FunctionType(_perform.__code__, globals(), tool.__name__)
    function.__annotations__ = {"call": Annotated[str, pydantic.AfterValidator(decode)], "return": Any}
    text = _DESCRIPTION.format(path=path, signature=signature_text(tool)[len(tool.__name__) :])
    described = f"{tool.description}\n\n{text}"
    made: Any = ExpressionTool.define(
        function,
        name=tool.__name__,
        description=described,
        risk=tool.risk,
        effect=tool.effect,
        concurrent=tool.concurrent,
    )
    return made


_DESCRIPTION = """\
Call it with one Python expression:

    {path}{signature}

Args:
    call: The expression, a call of `{path}` and nothing around it."""


def _perform(call: Any) -> Any:
    raise MissingHandlerError(
        "a call by expression", "Install `ExpressionToolCaller()` of `effectful_agents.handlers.synthesis`."
    )


def _decoded(source: str, tool: Tool, path: str, names: Mapping[str, Any]) -> CallExpression:
    """Read an expression: everything is done but for the call itself.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It is something else than a call of the tool.
        TypeError: It does not pass the type check, or the arguments do not fit.
        Exception: An argument raises.
    """
    text = source.strip()
    filename = generated_name(text, "call")
    call = _single_call(code.parse(text, filename), path)
    earlier = session.repl_history()
    code.type_check(*splice_snippet(text, called_skill(names), names, earlier), lenient=True)
    env = dict(names.items())
    callee = _value(call.func, filename, env)
    if not _is_meant(callee, tool):
        raise ValueError(f"`{ast.unparse(call.func)}` is not the tool that is called here, which is `{path}`.")
    given = _arguments(call, filename, env)
    bound = tool.__signature__.bind(*given.args, **given.kwargs)
    return CallExpression(tool=tool, bound_args=bound, id="", name=tool.__name__, source=text)


def _single_call(tree: ast.Module, path: str) -> ast.Call:
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr) or not isinstance(tree.body[0].value, ast.Call):
        raise ValueError(
            f"it is not a single call. Write `{path}(…)` and nothing around it; no statements, no `await`."
        )
    call = tree.body[0].value
    if any(isinstance(node, ast.NamedExpr) for node in ast.walk(call)):
        raise ValueError("it binds a name with `:=`. A call binds nothing; do that with `exec_code` before.")
    return call


def _value(node: ast.expr, filename: str, env: dict[str, Any]) -> Any:
    expression = ast.fix_missing_locations(ast.Expression(node))
    return code.eval(code.compile(expression, filename, "eval"), env)


@dataclasses.dataclass(frozen=True)
class _Given:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _arguments(call: ast.Call, filename: str, env: dict[str, Any]) -> _Given:
    """The values of the arguments, in the order in which Python takes them, stars and all."""
    name = "arguments_of_call"
    while name in env:
        name += "_"
    collect = ast.copy_location(ast.Name(name, ast.Load()), call.func)
    collecting = ast.copy_location(ast.Call(collect, call.args, call.keywords), call)
    return _value(collecting, filename, {**env, name: lambda *args, **kwargs: _Given(args, kwargs)})


def _is_meant(callee: Any, tool: Tool) -> bool:
    # A method is made anew at each access, hence equality; a function that stands for a tool is what the scope holds.
    if isinstance(callee, Tool):
        return callee == tool
    target = implicit_target(tool.function)
    if target is None or not inspect.isroutine(callee):
        return False
    receiver = getattr(callee, "__self__", None)
    return getattr(callee, "__func__", callee) is target and (receiver is None or receiver is tool.receiver)
