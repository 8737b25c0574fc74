"""What a script offers to others: its tools, its skills and the methods of its agents."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

from effectful_agents.errors import ConfigurationError
from effectful_agents.harness.launcher import read_script, stack_of
from effectful_agents.harness.loading import load
from effectful_agents.harness.manifest import handler_named
from effectful_agents.harness.stack import Harness
from effectful_agents.runtime import Interpretation, Layers
from effectful_agents.types import Skill, Tool
from effectful_agents.types.walk import is_agent, tools_in_scope

__all__ = ["Published", "publish"]


@dataclasses.dataclass(frozen=True)
class Published:
    """A script, loaded to be served.

    Attributes:
        name: The name of the script, without its ending.
        description: The script's docstring, or nothing.
        tools: What it offers by name: tools and skills as they are called, methods of an agent as `agent__method`.
        options: The options of the standard stack in which calls are made.
        module: The script, as the `__main__` of this process.
    """

    name: str
    description: str
    tools: Mapping[str, Tool[..., Any]]
    options: Mapping[str, Any]
    module: types.ModuleType

    @property
    def skills(self) -> dict[str, Skill[..., Any]]:
        """Those of the tools that are skills."""
        return {name: tool for name, tool in self.tools.items() if isinstance(tool, Skill)}

    def stack(self, **more: Any) -> Harness:
        """A standard stack by the options; `more` takes the place of some of them, such as a `run_id`."""
        return stack_of({**self.options, **more})

    def stack_with(self, names: Sequence[str]) -> Interpretation:
        """The same, with handlers inside of it that the script makes, by their names, the outermost first.

        Raises:
            ConfigurationError: The script has no such handler.
        """
        return Layers(self.stack(), *(handler_named(self.module, name) for name in names))

    @property
    def named_tools(self) -> list[Tool[..., Any]]:
        """The tools, each with the name by which it is offered."""
        return [tool if name == tool.__name__ else tool.named(name) for name, tool in self.tools.items()]


def publish(script: str, options: Mapping[str, Any], only: Sequence[str] = (), *, required: bool = True) -> Published:
    """Load a script to serve it.

    What it has imported is not published, unless it is named: that a skill may use a tool does not offer it to the
    world.

    Args:
        script: The path of the script.
        options: Options of the standard stack, as `effectful_agents.harness.options` parses them.
        only: The names to publish; none for all that the script defines itself.
        required: Whether there has to be something to publish.

    Raises:
        NotLoaded: The script failed; it has been told.
        ConfigurationError: There is no script, nothing to publish in it, or a name in `only` that it does not have.
    """
    source = read_script(script)
    module = load(script, source)
    seen = {tool.__name__: tool for tool in tools_in_scope(vars(module))}
    for missing in (name for name in only if name not in seen):
        raise ConfigurationError(f"the script has no tool or skill `{missing}`; it has {_named(seen)}.")
    tools = {name: tool for name, tool in seen.items() if name in only or (not only and _is_own(tool))}
    if required and not tools:
        raise ConfigurationError(
            "the script defines no tool and no skill, so that there is nothing to offer: `@Skill.define` and "
            "`@Tool.define` make them, and `--only NAME` publishes one that it imports."
        )
    name = script.rpartition("/")[2].removesuffix(".py")
    return Published(name, inspect.cleandoc(module.__doc__ or ""), tools, options, module)


def _is_own(tool: Tool[..., Any]) -> bool:
    """Whether the script itself defines it, or the class of the agent whose method it is."""
    receiver = tool.receiver
    if receiver is not None and is_agent(receiver):
        return type(receiver).__module__ == "__main__"
    return tool.__module__ == "__main__"


def _named(tools: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in tools) or "none"
