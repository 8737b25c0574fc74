"""What a stack says of itself: which handlers are installed, in which order, and what they are held to."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.encoding import tool_codec
from effectful_agents.errors import ConfigurationError, DefinitionError
from effectful_agents.handlers.policy.manifest_text import text_of
from effectful_agents.handlers.policy.rules.settings import named
from effectful_agents.operations import code
from effectful_agents.operations.history import load_state
from effectful_agents.operations.loop import call_agent
from effectful_agents.operations.templates import prompted
from effectful_agents.runtime import Interpretation, Layers, ObjectInterpretation, Operation, handler, installed
from effectful_agents.types import Scope, Skill, Tool

__all__ = ["CompositionManifest", "composition_manifest"]

NOTHING_DECIDES = "nothing decides"


@dataclasses.dataclass(frozen=True)
class CompositionManifest:
    """What is installed, without what it works on: no prompts, no texts of users, no keys, no paths, no identifiers.

    It attests how a stack was put together, and not that anything has happened. Two stacks that are put together alike
    have the same digest, in any process.

    Attributes:
        handlers: A row for each, outermost first: `handler` (its class), `module`, `operations`, and what it says of
            itself as `states`. Functions that were installed as handlers have a row with `functions` by operation.
        skills: A row for each skill that was asked about: `skill`, and `prompt`, the digest of its text.
        tools: A row for each tool that a handler offers to these skills, before routing: `tool`, `risk`, `effect`,
            `schema` (a digest of its definition; None where it is called by an expression only), and `skills`.
        stages: The stages that handlers say they work at, in the order of the handlers.
        grants: What handlers say they grant, each with `handler` and `grant`.
        limits: The limits that handlers say they keep to, each with `handler`, `limit` and `value`.
        policies: The policies that handlers say they decide by, each with `handler` and `policy`.
        preconditions: The rules that handlers say they enforce, each with `handler` and `precondition`.
        enforcement: Who decides about effects; `nothing decides` where no handler of `decide` is installed.
        code: What runs code that a model writes: `none`, `builtin`, `restricted`, or the class of another executor.
        versions: Versions of this package, of Python, of effectful, and of what handlers write. No part of the digest.
    """

    handlers: tuple[Mapping[str, Any], ...]
    skills: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    stages: tuple[str, ...]
    grants: tuple[Mapping[str, Any], ...]
    limits: tuple[Mapping[str, Any], ...]
    policies: tuple[Mapping[str, Any], ...]
    preconditions: tuple[Mapping[str, Any], ...]
    enforcement: str
    code: str
    versions: Mapping[str, str]

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of all of it but the versions, as JSON with sorted keys."""
        composed = {name: value for name, value in self._fields().items() if name != "versions"}
        return hashlib.sha256(_canonical(composed).encode()).hexdigest()

    def to_json(self, *, indent: int | None = None) -> str:
        """All of it as JSON, with the digest."""
        return json.dumps({"digest": self.digest, **self._fields()}, indent=indent, ensure_ascii=False)

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __str__(self) -> str:
        return text_of(self)

    def __rich__(self) -> str:
        return text_of(self).replace("[", r"\[")


def composition_manifest(*skills: Skill[..., Any], stack: Interpretation | None = None) -> CompositionManifest:
    """Describe the stack that is installed here, or one that is not installed.

    A handler may say more of itself, in a method `manifest()` that returns a mapping of plain JSON: among others
    `stages`, `grants`, `policies` and `preconditions` (lists of names), `limits` (numbers by name), `versions`, and
    `code` for what runs code. It must say nothing that is secret, or that is another in each process.

    Take it outside of calls: the handlers that a call installs for itself would be in it.

    Args:
        skills: Skills whose tools are listed: what handlers with a method `discover` find for them.
        stack: The stack, in the place of what is installed here. Nothing of it is begun: no run, no session.

    Raises:
        ConfigurationError: What a handler says of itself is no plain JSON, or one of `skills` is none.

    >>> from effectful_agents import NotHandled, handler, harness
    >>> @Tool.define
    ... def weather(city: str) -> str:
    ...     '''The weather in a city.'''
    ...     return "sunny"
    >>> @Skill.define
    ... def ask(question: str) -> str:
    ...     '''{question}'''
    ...     raise NotHandled
    >>> with handler(harness(eval_provider="none", turns=9)):
    ...     manifest = composition_manifest(ask)
    >>> manifest.enforcement, manifest.code, [row["tool"] for row in manifest.tools]
    ('nothing decides', 'none', ['weather'])
    >>> manifest.limits[0]
    {'handler': 'AgentLoop', 'limit': 'turns', 'value': 9}
    """
    for one in skills:
        if not isinstance(one, Skill):
            raise ConfigurationError(
                f"a manifest is about skills, made with `Skill.define`; this is {type(one).__name__}. A stack is given "
                "as `stack=…`, and tools are listed for the skills that see them."
            )
    layers = installed(stack)
    rows = [_row(layer) for layer in layers]
    states = [(row["handler"], row["states"]) for row in rows if "states" in row]
    with contextlib.nullcontext() if stack is None else handler(_not_begun(layers)):
        prompts = tuple({"skill": one.__qualname__, "prompt": prompted(one).template.digest} for one in skills)
        tools = tuple(_tools(layers, skills))
    versions = {name: str(value) for _, said in states for name, value in said.pop("versions", {}).items()}
    return CompositionManifest(
        handlers=tuple(rows),
        skills=prompts,
        tools=tools,
        stages=tuple(dict.fromkeys(stage for _, said in states for stage in said.get("stages", ()))),
        grants=_listed(states, "grants", "grant"),
        limits=tuple(
            {"handler": name, "limit": limit, "value": value}
            for name, said in states
            for limit, value in said.get("limits", {}).items()
        ),
        policies=_listed(states, "policies", "policy"),
        preconditions=_listed(states, "preconditions", "precondition"),
        enforcement=_enforcement(layers),
        code=_runs_code(layers, rows),
        versions={**_versions(), **versions},
    )


def _not_begun(layers: Iterable[Interpretation]) -> Layers:
    """Layers with the same functions, for which nothing has to be begun and ended."""
    return Layers(*(dict(layer) for layer in layers))


def _listed(states: Iterable[tuple[str, Mapping[str, Any]]], several: str, one: str) -> tuple[Mapping[str, Any], ...]:
    return tuple({"handler": name, one: value} for name, said in states for value in said.get(several, ()))


# --- handlers ---------------------------------------------------------------------------------------------------------


def _row(layer: Interpretation) -> dict[str, Any]:
    operations = sorted(map(_operation, layer))
    if not isinstance(layer, ObjectInterpretation):
        handled = sorted((_operation(operation), named(layer[operation])) for operation in layer)
        return {"handler": "functions", "operations": operations, "functions": dict(handled)}
    cls = type(layer)
    row = {"handler": cls.__qualname__, "module": cls.__module__, "operations": operations}
    states = getattr(layer, "manifest", None)
    if callable(states):
        row["states"] = _plain(states(), cls.__qualname__)
    return row


_ELSEWHERE: Mapping[EffectfulOperation, str] = {
    call_agent: "loop.call_agent",
    load_state: "history.load_state",
    Tool.__apply__: "Tool.__apply__",
}
"""Operations that stand beside the nouns which perform them."""

_OPERATIONS = f"{Operation.__module__.partition('.')[0]}.operations."


def _operation(operation: EffectfulOperation) -> str:
    """The name of an operation: `loop.call_tool`, or where it is none of this package's, that of its module too."""
    if operation in _ELSEWHERE:
        return _ELSEWHERE[operation]
    module, name = str(operation.__module__), str(getattr(operation, "__qualname__", operation.__name__))
    return f"{module.removeprefix(_OPERATIONS)}.{name}"


def _plain(states: Any, whose: str) -> dict[str, Any]:
    """What a handler says of itself, copied.

    Raises:
        ConfigurationError: It is no plain JSON, or has a known part in another form.
    """
    if not isinstance(states, Mapping):
        raise _unfit(states, whose, "")
    for name, fits in _FORMS.items():
        if name in states and not fits(states[name]):
            raise _unfit(states[name], whose, f".{name}")
    try:
        return _copied(states, whose, "")
    except RecursionError:
        raise ConfigurationError(f"`{whose}.manifest()` gives what is in itself, or nested too deep.") from None


def _copied(value: Any, whose: str, path: str) -> Any:
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and abs(value) < _HUGE):
        return value
    if isinstance(value, float) and value - value == 0:
        return int(value) if value.is_integer() else value  # 1.0 is an equal setting
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _copied(part, whose, f"{path}.{key}") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(part, whose, f"{path}[{place}]") for place, part in enumerate(value)]
    raise _unfit(value, whose, path)


_HUGE = 10**1000
"""Beyond that Python may refuse to write a number out."""


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, int | float) for one in value.values())


_FORMS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("stages", "grants", "policies", "preconditions"), _are_names),
    "limits": _are_numbers,
    "versions": lambda value: isinstance(value, Mapping),
    "code": lambda value: isinstance(value, str),
}
"""The parts that the manifest collects, and whether they have the form that it takes."""


def _unfit(value: Any, whose: str, path: str) -> ConfigurationError:
    # Not the value itself, which may be what is not to be shown.
    return ConfigurationError(
        f"`{whose}.manifest()` gives {type(value).__name__} at `{path or '.'}`. It gives a dictionary of plain JSON; "
        "`stages`, `grants`, `policies` and `preconditions` in it are lists of names, `limits` numbers by name, and "
        "`versions` a dictionary."
    )


def _enforcement(layers: Iterable[Interpretation]) -> str:
    """Who decides about effects. The operation is known by its name: a stack without policies need not load it."""
    who = [_name(layer) for layer in layers if any(map(_decides, layer))]
    return f"decided by {', '.join(who)}" if who else NOTHING_DECIDES


def _decides(operation: EffectfulOperation) -> bool:
    name = _operation(operation)
    return name.startswith("policy.") and name.endswith(".decide")


def _runs_code(layers: Sequence[Interpretation], rows: Sequence[Mapping[str, Any]]) -> str:
    found = [(layer, row) for layer, row in zip(layers, rows, strict=True) if code.exec in layer]
    if not found:
        return "none"
    layer, row = found[-1]  # the innermost is asked first
    return str(row.get("states", {}).get("code") or _name(layer))


def _name(layer: Interpretation) -> str:
    return type(layer).__qualname__ if isinstance(layer, ObjectInterpretation) else "functions"


# --- tools ------------------------------------------------------------------------------------------------------------


def _tools(layers: Iterable[Interpretation], skills: Iterable[Skill[..., Any]]) -> Iterator[Mapping[str, Any]]:
    """The tools that handlers offer to skills, sorted, each once."""
    collecting = [layer for layer in layers if callable(getattr(layer, "discover", None))]
    found: dict[str, dict[str, Any]] = {}
    for skill in skills:
        for layer in collecting:
            for tool in layer.discover(_scope(skill)):  # ty: ignore[missing-attribute]  # see above
                if tool == skill and not skill.recursive:
                    continue
                row = {
                    "tool": tool.__name__,
                    "risk": tool.risk.name,
                    "effect": tool.effect,
                    "schema": _schema(tool),
                }
                kept = found.setdefault(_canonical(row), {**row, "skills": []})
                if skill.__qualname__ not in kept["skills"]:
                    kept["skills"].append(skill.__qualname__)
    return iter([found[key] for key in sorted(found, key=lambda key: (found[key]["tool"], key))])


def _scope(skill: Skill[..., Any]) -> Scope:
    """What a skill sees, before anybody has called it."""
    arguments = {}
    if skill.receiver is not None:
        arguments = {next(iter(skill.function.__signature__.parameters)): skill.receiver}
    return Scope(skill, arguments, skill.__context__)


def _schema(tool: Tool) -> str | None:
    try:
        definition = tool_codec(tool).definition()
    except DefinitionError:
        raise
    except ConfigurationError:  # JSON cannot say its types
        return None
    return hashlib.sha256(_canonical(definition).encode()).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _versions() -> dict[str, str]:
    from importlib import metadata  # noqa: PLC0415 - slow

    package = Operation.__module__.partition(".")[0]
    return {
        "effectful-agents": sys.modules[package].__version__,
        "python": platform.python_version(),
        "effectful": metadata.version("effectful"),
    }
