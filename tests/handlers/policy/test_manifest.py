"""What a stack says of itself."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from effectful_agents import NotHandled, Skill, Tool, fwd, handler, harness
from effectful_agents.errors import ConfigurationError, DefinitionError
from effectful_agents.handlers.durability import Journal, MemoryCheckpointer
from effectful_agents.handlers.execution import RestrictedPythonExecutor
from effectful_agents.handlers.legibility import InMemoryPrompts, PromptRegistry
from effectful_agents.handlers.loop import Deadline
from effectful_agents.handlers.policy import composition_manifest
from effectful_agents.handlers.provision import Fallback, Model, RateLimit
from effectful_agents.handlers.provision.http import HttpModel
from effectful_agents.handlers.routing import ToolRouter, keyword_router
from effectful_agents.operations.code import exec as exec_
from effectful_agents.operations.loop import call_tool, completion
from effectful_agents.runtime import Layers, Operation, coproduct
from effectful_agents.testing import ScriptedModel
from tests.handlers.policy import composed
from tests.handlers.policy.composed import Clerk, Stating, ask, bare, note, of, send_mail, weather
from tests.laws.registry import SAMPLES, Surroundings

# What is in it


def test_handlers_are_listed_outermost_first_with_what_they_touch():
    with handler(ScriptedModel()), handler(harness(eval_provider="none")), handler({call_tool: note}):
        rows = composition_manifest().handlers
    names = [row["handler"] for row in rows]
    assert names == [
        "ScriptedModel",
        *(type(one).__name__ for one in harness(eval_provider="none").layers),
        "functions",
    ]
    assert rows[0]["operations"] == ["loop.completion"]
    assert rows[1]["module"] == "effectful_agents.handlers.loop.agent_loop"
    assert {"loop.call_agent", "loop.call_tool"} <= {*rows[1]["operations"]}
    assert rows[-1] == {
        "handler": "functions",
        "operations": ["loop.call_tool"],
        "functions": {"loop.call_tool": "tests.handlers.policy.composed.note"},
    }


def test_functions_are_told_by_their_qualified_names():
    @Operation.define
    def greet(name: str) -> str:
        """Greet."""
        return name

    functions = {greet: functools.partial(note, 3), completion: lambda **_: fwd(), call_tool: ScriptedModel()}
    with handler(functions):
        [row] = composition_manifest().handlers
    here = f"{__name__}.test_functions_are_told_by_their_qualified_names.<locals>"
    assert row["functions"] == {
        f"{here}.greet": "tests.handlers.policy.composed.note",
        "loop.completion": f"{here}.<lambda>",
        "loop.call_tool": "effectful_agents.testing.scripted.ScriptedModel",
    }


def test_what_was_put_together_is_told_apart():
    one, other = Deadline(3), RateLimit(concurrent=2)
    expected = []
    for stack in (Layers(one, other), coproduct(one, other)):
        with handler(stack):
            expected.append(composition_manifest().digest)
    with handler(one), handler(other):
        assert {composition_manifest().digest} == {*expected}


def test_the_tools_of_skills_are_listed_with_their_risks():
    rows = {row["tool"]: row for row in of(ask, bare, Clerk().serve).tools}
    assert list(rows) == ["ask", "bare", "file", "send_mail", "weather"]
    assert (rows["send_mail"]["risk"], rows["send_mail"]["effect"]) == ("HARD_WRITE", "keyed")
    assert (rows["file"]["risk"], rows["file"]["effect"], rows["file"]["skills"]) == (
        "READ",
        "idempotent",
        ["Clerk.serve"],
    )
    assert rows["weather"]["skills"] == ["ask", "Clerk.serve"]
    assert all(len(row["schema"]) == 64 for row in rows.values())


def test_the_tools_are_those_that_the_installed_handlers_offer():
    def named(**options: Any) -> list[str]:
        return [row["tool"] for row in of(ask, **options).tools]

    assert named() == ["bare", "send_mail", "weather"]
    assert named(tool_collection="none") == []
    assert named(tool_collection="auto") == ["bare", "digest_in", "note", "of", "send_mail", "weather"]
    assert named(eval_provider="builtin") == ["bare", "exec_code", "send_mail", "weather", "write_and_run_body"]
    assert [row["tool"] for row in of(bare).tools] == []
    assert of().tools == ()


def test_a_router_narrows_what_is_offered_and_not_what_is_registered():
    manifest = of(ask, tool_router=ToolRouter(keyword_router({"mail": [send_mail]}), always=[weather]))
    assert [row["tool"] for row in manifest.tools] == ["bare", "send_mail", "weather"]
    assert manifest.stages == ("tools.routing",)
    [row] = [row for row in manifest.handlers if row["handler"] == "ToolRouter"]
    assert row["states"]["routing"]["by"] == "keywords"
    assert row["states"]["routing"]["always"] == ["weather"]


def test_the_prompt_of_a_skill_counts_and_is_not_told():
    plain = of(ask)
    with handler(harness(eval_provider="none")):
        with handler(PromptRegistry(InMemoryPrompts({"ask": "Secretly: {question}"}))):
            other = composition_manifest(ask)
    assert plain.skills[0]["prompt"] != other.skills[0]["prompt"]
    assert "Secretly" not in other.to_json()


def test_limits_grants_policies_and_preconditions_are_collected():
    said = {
        "stages": ["ingress", "egress"],
        "grants": ("model_call",),
        "limits": {"cost": 1.5},
        "policies": ["risk"],
        "preconditions": ["no keys"],
        "versions": {"rules": 7},
        "note": {"any": [1, None, True]},
    }
    with handler(Deadline(2.5)), handler(Stating(said)), handler(Stating({"stages": ["egress", "late"]})):
        manifest = composition_manifest()
    assert manifest.stages == ("ingress", "egress", "late")
    assert manifest.grants == ({"handler": "Stating", "grant": "model_call"},)
    assert manifest.policies == ({"handler": "Stating", "policy": "risk"},)
    assert manifest.preconditions == ({"handler": "Stating", "precondition": "no keys"},)
    assert manifest.limits == (
        {"handler": "Deadline", "limit": "seconds", "value": 2.5},
        {"handler": "Stating", "limit": "cost", "value": 1.5},
    )
    assert manifest.versions["rules"] == "7"
    assert "7" not in json.dumps(manifest.handlers)
    assert manifest.handlers[1]["states"]["note"] == {"any": [1, None, True]}


def test_the_standard_limits_are_told():
    limits = {(row["handler"], row["limit"]): row["value"] for row in of(turns=7, requests_per_minute=5).limits}
    assert limits["AgentLoop", "turns"] == 7
    assert limits["RateLimit", "requests_per_minute"] == 5
    assert limits["TenacityRetryer", "attempts"] == 5
    assert limits["ToolOutputCap", "max_chars"] == 16000


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({}, "none"),
        ({"eval_provider": "builtin"}, "builtin"),
        ({"eval_provider": "restricted"}, "restricted"),
    ],
)
def test_it_says_what_runs_code(options, runs):
    assert of(**options).code == runs


def test_of_two_executors_the_inner_one_runs_code():
    with handler(harness(eval_provider="builtin")), handler(RestrictedPythonExecutor(seconds=3)):
        manifest = composition_manifest()
    assert manifest.code == "restricted"
    assert {"handler": "RestrictedPythonExecutor", "limit": "seconds", "value": 3} in manifest.limits


def test_a_foreign_executor_goes_by_its_name():
    with handler({exec_: note}):
        assert composition_manifest().code == "functions"


def test_nothing_decides_unless_somebody_does():
    assert of().enforcement == "nothing decides"
    with handler({_decide(): note}):
        assert composition_manifest().enforcement == "decided by functions"


def _decide() -> Any:
    """The operation of policies, or in a version without it one that has its name."""
    try:
        return importlib.import_module("effectful_agents.operations.policy").decide
    except ModuleNotFoundError:

        def decide(effect: str) -> str:
            """Decide."""
            return effect

        decide.__module__, decide.__qualname__ = "effectful_agents.operations.policy", "decide"
        return Operation.define(decide)


def test_versions_are_told_and_are_no_part_of_the_digest():
    with handler(Journal("run", MemoryCheckpointer())):
        manifest = composition_manifest()
    assert {"effectful-agents", "python", "effectful", "journal"} == {*manifest.versions}
    assert dataclasses.replace(manifest, versions={}).digest == manifest.digest


def test_a_stack_is_described_without_being_installed():
    store = MemoryCheckpointer()
    stack = Layers(harness(eval_provider="restricted"), Journal("monday", store), {call_tool: note})
    described = composition_manifest(ask, Clerk().serve, stack=stack)
    assert not store.load("monday").records
    with handler(stack):
        assert composition_manifest(ask, Clerk().serve) == described
    assert composition_manifest().handlers == ()
    with pytest.raises(TypeError):
        composition_manifest(stack=Journal)  # ty: ignore[invalid-argument-type]


def test_what_is_installed_does_not_count_for_another_stack():
    with handler(Deadline(3)):
        described = composition_manifest(ask, stack=harness(eval_provider="none"))
    assert described == of(ask)


def test_what_keeps_something_names_its_stage_and_its_version(tmp_path):
    assert of().stages == ()
    manifest = composition_manifest(
        stack=harness(persist_db=tmp_path / "agents.db", journal=tmp_path / "runs.db", eval_provider="none")
    )
    assert manifest.stages == ("agents.kept", "run.journal")
    assert {"agents", "journal"} <= manifest.versions.keys()


# What is not in it


SECRET = st.text("abcdefghijkXYZ0123456789_-", min_size=6, max_size=20).map("secret-{}".format)


def _options(secret: str, folder: Path) -> dict[str, Any]:
    """Every option of the standard stack that takes a text, with a secret in it."""
    return {
        "dump_system_prompt": folder / f"{secret}.md",
        "persist_db": folder / f"{secret}.db",
        "journal": folder / f"{secret}-runs.db",
        "run_id": secret,
        "fallback": [Model(f"local/{secret}.gguf", api_key=secret, base_url=f"https://host/{secret}")],
        "requests_per_minute": 10,
        "eval_provider": "restricted",
    }


def _settings(secret: str) -> dict[str, Any]:
    """Settings of requests, with a secret wherever one could stand."""
    return {
        "api_key": secret,
        "base_url": f"https://host/{secret}",
        "organization": secret,
        "user": secret,
        "stop": [secret],
        "temperature": secret,
        "seed": [secret],
        "max_tokens": {secret: secret},
        "extra_headers": {secret: secret},
        "provider_options": {secret: {"nested": secret}},
        secret: secret,
    }


@settings(max_examples=25, deadline=None)
@given(SECRET, SECRET, st.booleans())
def test_no_secret_is_in_it_and_none_changes_it(tmp_path_factory, one, other, is_local):
    """Of any texts in the options of all handlers, in prompts, defaults, descriptions and replies."""
    folder, digests = tmp_path_factory.mktemp("secrets"), []
    for secret in (one, other):
        options: dict[str, Any] = {"model": f"local/{secret}/weights.gguf", "stop": [secret]}
        if not is_local:
            options = {"model": "gpt-5-mini", **_settings(secret)}
        http = HttpModel(f"https://host/{secret}", api_key=secret, headers={"x-key": secret})
        with handler(ScriptedModel(secret)), handler(http), handler(harness(**options, **_options(secret, folder))):
            with handler({completion: functools.partial(note, secret)}), handler(_Keeping(secret)):
                manifest = composition_manifest(ask)
        for text in (manifest.to_json(), str(manifest), repr(manifest)):
            for private in (secret, json.dumps(secret)[1:-1], str(folder), os.getcwd(), tempfile.gettempdir()):
                assert private not in text
        digests.append(manifest.digest)
    assert digests[0] == digests[1]


class _Keeping(Deadline):
    """Holds a secret, and has what its base says of itself."""

    def __init__(self, secret: str) -> None:
        super().__init__(9)
        self.secret = secret
        self.__doc__ = secret


def test_of_what_a_program_says_to_a_model_there_are_digests():
    """Prompts, descriptions and defaults of parameters: another text is another digest, and is not to be read."""
    digests = set()
    for secret in ("first secret", "second secret"):

        @Tool.define(description=f"A tool of {secret}.")
        def tool(text: str = secret) -> str:
            return text

        @Skill.define
        def skill(question: str) -> str:
            """{question}"""
            raise NotHandled

        manifest = of(skill)
        assert [row["tool"] for row in manifest.tools if row["tool"] == "tool"] == ["tool"]
        assert secret not in manifest.to_json() + str(manifest)
        digests.add(manifest.digest)
    assert len(digests) == 2


@pytest.mark.parametrize("cls", SAMPLES, ids=lambda cls: cls.__name__)
def test_every_handler_of_the_package_says_plain_json_without_a_path(cls, tmp_path):
    """The samples of the laws: what they say is the same for each that is made, and no place on this machine."""
    digests = set()
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        with handler(Layers(SAMPLES[cls](Surroundings(folder)))):
            manifest = composition_manifest()
        text = manifest.to_json()
        assert json.loads(text)["digest"] == manifest.digest
        assert str(tmp_path) not in text
        assert " at 0x" not in text
        digests.add(manifest.digest)
    assert len(digests) == 1


def test_texts_of_users_and_models_are_not_in_it():
    clerk = Clerk()
    with handler(harness(eval_provider="none")) as stack, handler(ScriptedModel("A reply to nobody.")):
        before = composition_manifest(clerk.serve)
        clerk.serve("A wish that is private.")
        after = composition_manifest(clerk.serve)
    assert stack.layers
    assert after == before
    for private in ("A reply", "A wish", "Somebody with tools", "File a paper"):
        assert private not in after.to_json()


IN_ITSELF: list[Any] = []
IN_ITSELF.append(IN_ITSELF)


@pytest.mark.parametrize(
    "states",
    [
        None,
        ["turns"],
        {"stages": "tools.routing"},
        {"limits": [3]},
        {"code": 3},
        {"x": {1, 2}},
        {"x": object()},
        {"x": [{"y": Path("/secret")}]},
        {"x": {3: 4}},
        {"x": math.inf},
        {"x": math.nan},
        {"x": b"secret"},
        {"x": 10**5000},
        {"x": IN_ITSELF},
        {"stages": [{"x": 1}]},
        {"policies": [["x"]]},
        {"limits": {"a": [1]}},
    ],
    ids=itertools.count(),
)
def test_a_statement_that_is_no_plain_json_is_refused(states):
    with handler(Stating(states)), pytest.raises(ConfigurationError, match=r"`Stating.manifest\(\)` gives") as raised:
        composition_manifest()
    assert "secret" not in str(raised.value)


def test_what_a_handler_says_later_does_not_change_it():
    said = {"limits": {"x": 1}, "list": [1]}
    with handler(Stating(said)):
        manifest = composition_manifest()
    before = manifest.to_json()
    said["limits"]["x"] = 2  # ty: ignore[invalid-assignment]
    said["list"].append(3)  # ty: ignore
    assert manifest.to_json() == before


# Digests


def test_equal_stacks_have_equal_digests():
    assert of(ask) == of(ask)
    assert of(ask).digest == of(ask).digest
    assert of(ask, bare).digest != of(ask).digest


CHANGES: dict[str, dict[str, Any]] = {
    "turns": {"turns": 3},
    "retries": {"num_retries": 0},
    "model": {"model": "gpt-5-mini"},
    "another model": {"model": "gpt-5"},
    "fallback": {"model": "gpt-5", "fallback": ["gpt-5-mini"]},
    "temperature": {"temperature": 0.5},
    "executor": {"eval_provider": "restricted"},
    "tools": {"tool_collection": "auto"},
    "deferral": {"defer_tools": 100},
    "prompt": {"system_prompt": "brief"},
    "strict": {"strict_tools": True},
    "router": {"tool_router": ToolRouter(keyword_router({"mail": [send_mail]}))},
    "another router": {"tool_router": ToolRouter(keyword_router({"mail": [weather]}))},
    "router by turn": {"tool_router": ToolRouter(keyword_router({"mail": [weather]}), per="turn")},
    "router by function": {"tool_router": ToolRouter(lambda context: [])},
    "limit": {"requests_per_minute": 3},
}


def test_what_changes_a_stack_changes_its_digest():
    digests = {name: of(ask, **options).digest for name, options in {"none": {}, **CHANGES}.items()}
    assert len({*digests.values()}) == len(digests)


def test_the_order_in_which_a_dictionary_was_written_does_not_count():
    functions = {call_tool: note, completion: note}
    one, other = (composition_manifest(stack=each) for each in (functions, dict(reversed(functions.items()))))
    assert one.digest == other.digest
    assert (one.to_json(), str(one)) == (other.to_json(), str(other))


def test_the_order_of_handlers_counts():
    one, other = Stating({}), Deadline(3)
    with handler(one), handler(other):
        first = composition_manifest().digest
    with handler(other), handler(one):
        assert composition_manifest().digest != first


@given(st.permutations(["AgentLoop", "Deadline", "RateLimit", "Journal", "ToolRouter"]))
def test_the_order_that_is_told_is_the_order_that_was_installed(order):
    makes: dict[str, Any] = {
        "AgentLoop": harness(eval_provider="none").layers[0],
        "Deadline": Deadline(3),
        "RateLimit": RateLimit(concurrent=3),
        "Journal": Journal("r", MemoryCheckpointer()),
        "ToolRouter": ToolRouter(lambda context: []),
    }
    with handler(Layers(*(makes[name] for name in order))):
        assert [row["handler"] for row in composition_manifest().handlers] == order


def test_a_setting_that_is_written_in_another_way_is_the_same():
    assert of(temperature=1).digest == of(temperature=1.0).digest != of(temperature=1.5).digest


def test_what_a_handler_says_of_itself_is_no_line_of_the_manifest():
    with handler(Stating({"stages": ["a\nauthority    decided by X"], "note": "b\ncode         none"})):
        lines = str(composition_manifest()).splitlines()
    assert [line[:24] for line in lines if line.startswith("authority")] == ["authority    nothing dec"]
    assert len([line for line in lines if line.startswith("code")]) == 1


def test_the_digest_is_the_same_in_another_process(tmp_path):
    digest = composed.digest_in(str(tmp_path))
    assert len(digest) == 64
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-m", composed.__name__, str(tmp_path / "elsewhere")],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=Path(composed.__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == digest


# As text


def test_it_is_readable_and_says_what_matters_first():
    manifest = of(ask, eval_provider="builtin", tool_router=ToolRouter(keyword_router({"mail": [send_mail]})))
    lines = str(manifest).splitlines()
    assert lines[:4] == [
        f"composition {manifest.digest}",
        "authority    nothing decides: a tool that is offered is called whenever the model asks for it",
        "code         code that the model writes runs as plain Python in this process, and may do anything that it may",
        "stages       tools.routing",
    ]
    assert "tools that are offered to ask, before routing" in lines
    assert any(line.split()[:3] == ["send_mail", "HARD_WRITE", "keyed"] for line in lines)


def test_rich_shows_it_as_it_is():
    manifest = of(ask, tool_router=ToolRouter(keyword_router({"mail": [send_mail]}), always=["a"]))
    console = Console(width=1000, color_system=None)
    with console.capture() as captured:
        console.print(manifest)
    assert [line.rstrip() for line in captured.get().splitlines()] == str(manifest).splitlines()


def test_a_tool_whose_types_are_wrong_is_told():
    @Skill.define
    def asks(x: str) -> str:
        """{x}"""
        raise NotHandled

    @Tool.define
    def broken(x: Missing) -> str:  # noqa: F821  # ty: ignore[unresolved-reference]
        """Broken."""
        return ""

    with pytest.raises(DefinitionError, match="Missing"):
        of(asks)


def test_fallbacks_are_told_by_their_names():
    with handler(Fallback("gpt-5", Model("local/some/where.gguf", temperature=1))):
        [row] = composition_manifest().handlers
    assert row["states"] == {"models": ["gpt-5", "local/file"], "rest_seconds": 10.0}
