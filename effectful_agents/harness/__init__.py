"""`harness`: the standard stack of handlers.

The package can be called like the function of the same name, since both are `effectful_agents.harness`. It loads no
handler before a harness is made.
"""

from __future__ import annotations

import os
import sys
import types
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from effectful_agents.handlers.provision import Model
    from effectful_agents.handlers.routing import ToolRouter
    from effectful_agents.harness.stack import Harness
    from effectful_agents.operations.records import Checkpointer
    from effectful_agents.runtime import Interpretation

__all__ = ["harness"]


def harness(
    *,
    model: str | None = None,
    num_retries: int = 5,
    langfuse: bool = False,
    render: bool = False,
    dump_system_prompt: str | os.PathLike[str] | None = None,
    persist_db: str | os.PathLike[str] | None = None,
    journal: str | os.PathLike[str] | Checkpointer | None = None,
    run_id: str | None = None,
    eval_provider: Literal["builtin", "restricted", "none"] | None = None,
    type_checker: Literal["mypy", "ty", "none"] | None = None,
    tool_calling: Literal["auto", "code", "json"] | None = None,
    tool_collection: Literal["none", "explicit", "auto"] = "explicit",
    defer_tools: bool | int = True,
    tool_router: ToolRouter | None = None,
    check_contracts: bool = True,
    system_prompt: Literal["full", "brief"] | None = None,
    turns: int = 50,
    strict_tools: bool = False,
    strict_decoding: bool = False,
    fallback: Sequence[str | Model | Interpretation] = (),
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    **provider_config: Any,
) -> Harness:
    """Make the standard stack of handlers.

    Making it loads and builds the handlers and installs nothing. Install it with `with handler(harness(…))`, or use it
    directly: it is a context manager and a decorator too. `effectful_agents.harness.stack` has the list of handlers, in
    their order and with the reason for each place.

    Args:
        model: The model that answers: `local/smollm2`, `local/PATH.gguf`, or any name that LiteLLM knows. None leaves
            it to another handler, such as `effectful_agents.testing.ScriptedModel`.
        num_retries: Attempts for a reply that cannot be decoded and, independently, repetitions of a request that
            failed on its way. 0 leaves both out.
        langfuse: Record calls with Langfuse (`LangfuseTracer`), by the client that the program has made, or else by one
            that takes its keys from the environment.
        render: Show the conversation in the terminal as it grows.
        dump_system_prompt: A Markdown file to write the system message to, with the tokens of its sections.
        journal: What keeps the journals of runs: the path of an SQLite file, or a `Checkpointer`. Where there is one,
            the block in which the stack is installed is a run, which can be resumed (see `Journal` in
            `effectful_agents.handlers.durability`).
        run_id: The run; None for a new one. It needs a `journal`.
        persist_db: An SQLite database that keeps agents which have an `__agent_id__`: their history and their dataclass
            fields, across processes. The file is made where there is none.
        eval_provider: What runs code that the model writes: `builtin`, plain Python in this process, which may do
            anything that the program may; `restricted`, a part of Python without a way to files, network and processes;
            `none`, nothing, and the model is offered no tools for code. By default `none` for local models and brief
            prompts, `builtin` for others.
        type_checker: What checks such code before it runs: `ty`, the default, `mypy`, or `none`.
        tool_calling: How the model calls the tools of the scope: `json`, with arguments in JSON; `code`, with Python
            expressions; `auto`, with JSON where a schema can say what a tool takes, and with expressions where not. By
            default `auto`, or `json` where nothing runs code.
        tool_collection: Which tools are offered: `explicit`, those made with `Tool.define` and `Skill.define` that the
            skill sees; `auto`, public functions and methods as well that have a docstring and full annotations; `none`,
            none of them.
        defer_tools: Whether many tools give way to two, which search the others and use one: True where that costs
            fewer tokens (for tools of usual size from about 20 on), False never; or a number, where the tools are more
            tokens than that, 0 for always. It is decided once in a conversation.
        tool_router: What narrows the tools of a call or turn, see `ToolRouter` in
            `effectful_agents.handlers.routing`; None offers all of them.
        check_contracts: Check the arguments of skills against the constraints in their annotations.
        system_prompt: `full` tells the model about the framework, the handlers and the code around the skill; `brief`
            nothing but the docstrings of the skill and its agent. By default `brief` for local models, `full` for
            others.
        turns: Turns that a call may take.
        strict_tools: Send the tools in the strict form of their schemas, those that have one, for services that hold
            the model to it. Answers are always sent so.
        strict_decoding: Forgive nothing in what the model writes: `"5"` is then no `int`, and a code fence no JSON.
        fallback: Models that are asked, in this order, when `model` fails: names, `Model`s with settings of their own,
            or handlers, as `effectful_agents.handlers.provision.Fallback` takes them. They have `num_retries` together,
            and the same settings, but for those that a service is reached with (`api_key`, `base_url`, …).
        requests_per_minute: Requests that go out to a model in any 60 seconds; others wait. None for any number.
        tokens_per_minute: The same for tokens, of prompts and replies.
        provider_config: Settings for every request: `temperature`, `max_tokens`, `seed`, `tool_choice`, `api_key`,
            `base_url` and whatever else the model's service takes.

    Returns:
        The stack.

    Raises:
        OptionError: An option has a value that it cannot have; or `tool_calling` is `auto` or `code` and nothing runs
            code. It is a ValueError.
        MissingDependencyError: `langfuse` is asked for, and is not installed.
        StorageError: The file of `persist_db` cannot be written, or is no database of this version.
    """
    from effectful_agents.harness.stack import Harness, Settings  # noqa: PLC0415 - loads every handler

    return Harness(
        Settings(
            model=model,
            num_retries=num_retries,
            langfuse=langfuse,
            render=render,
            dump_system_prompt=dump_system_prompt,
            persist_db=persist_db,
            journal=journal,
            run_id=run_id,
            eval_provider=eval_provider,
            type_checker=type_checker,
            tool_calling=tool_calling,
            tool_collection=tool_collection,
            defer_tools=defer_tools,
            tool_router=tool_router,
            check_contracts=check_contracts,
            system_prompt=system_prompt,
            turns=turns,
            strict_tools=strict_tools,
            strict_decoding=strict_decoding,
            fallback=fallback,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            provider_config=provider_config,
        )
    )


class _CallablePackage(types.ModuleType):
    """The package, which is also the function: whichever of the two somebody imports, it can be called."""

    __call__ = staticmethod(harness)


sys.modules[__name__].__class__ = _CallablePackage
