"""Asking a router which tools a turn offers: a function, or a skill."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from effectful_agents.errors import AgentsError, ConfigurationError, DecodingError, OptionError, ResultDecodingError
from effectful_agents.handlers.routing.context import RoutingContext, check_known, names_of
from effectful_agents.handlers.routing.keywords import KeywordRouter, keyword_router
from effectful_agents.messages import AssistantMessage
from effectful_agents.operations.journal import record
from effectful_agents.runtime import Operation, handler, wait
from effectful_agents.types import Skill, Tool

__all__ = ["ByFunction", "BySkill", "Choice", "Router", "choosing"]

type Names = Iterable[str | Tool]
type Router = Callable[[RoutingContext], Names | Awaitable[Names]]
"""A function that chooses."""


class ByFunction:
    """Choose by a function.

    Args:
        function: From what is known in a turn to names of tools. It may be `async def`.
    """

    by = "function"

    def __init__(self, function: Router) -> None:
        self.function = function
        self.name = _name(function)
        if isinstance(function, KeywordRouter):
            self.by = "keywords"

    def __call__(self, context: RoutingContext, known: Sequence[str]) -> list[str]:
        """The names that the function gives.

        Raises:
            ConfigurationError: It raises, or gives a name that is not known.
        """

        def choose() -> list[str]:
            return list(names_of(self._called(context), f"what the router `{self.name}` gave"))

        # What depends on the recorded call alone comes out the same when a run is resumed. Of any other function nobody
        # knows what it looks at.
        names = choose() if isinstance(self.function, KeywordRouter) else record(choose, list[str])
        mend = (
            f"The tools of `{context.skill.__name__}` are {_listed(context.names)}. Name those of other skills in "
            "`ToolRouter(registered=…)`."
        )
        check_known(names, known, f"the router `{self.name}`", mend)
        return names

    def _called(self, context: RoutingContext) -> Any:
        try:
            given: Any = self.function(context)
            return wait(given) if inspect.isawaitable(given) else given
        except AgentsError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"the router `{self.name}` raised {type(error).__name__}: {error}. It chooses the tools of "
                f"`{context.skill.__name__}`, which is not asked without."
            ) from error


_GIVEN: Mapping[str, Callable[[RoutingContext], Any]] = {
    "text": lambda context: context.text,
    "tools": lambda context: {tool.__name__: _summary(tool) for tool in context.tools},
    "skill": lambda context: context.skill.__name__,
    "turn": lambda context: context.turn,
}


class BySkill:
    """Choose by asking a model.

    Args:
        skill: It takes some of `text`, `tools` (descriptions by name), `skill` and `turn`, and returns names.
    """

    by = "skill"

    def __init__(self, skill: Skill[..., Any]) -> None:
        self.skill = skill
        self.name = skill.__name__
        self._parameters = tuple(skill.__signature__.parameters)
        foreign = [name for name in self._parameters if name not in _GIVEN]
        if foreign:
            raise OptionError(
                f"the skill `{self.name}` is to choose tools and has a parameter `{foreign[0]}`; it can have "
                f"{_listed(_GIVEN)}."
            )

    def __call__(self, context: RoutingContext, known: Sequence[str]) -> list[str]:
        """The names that the model chooses. An answer with a name that is not in the catalogue is refused.

        Raises:
            ConfigurationError: It gives none that could be decoded.
        """
        given = {name: _GIVEN[name](context) for name in self._parameters}
        try:
            with handler({choosing: lambda: Choice(self.skill, context.names)}):
                value: Any = self.skill(**given)
                if inspect.isawaitable(value):
                    value = wait(value)
        except DecodingError as error:
            # As it is, it would be taken for a reply of the turn that the tools are chosen for.
            raise ConfigurationError(
                f"the skill `{self.name}`, which chooses the tools of `{context.skill.__name__}`, was not answered by "
                f"names of them. Tell it more of what to do, ask a better model, or use `keyword_router`. ({error})"
            ) from error
        return list(names_of(value, f"what the skill `{self.name}` gave"))


class Choice:
    """A choice that a skill is making.

    Args:
        skill: The skill.
        names: What it may choose from.
    """

    def __init__(self, skill: Skill[..., Any], names: Sequence[str]) -> None:
        self.skill = skill
        self.names = names

    def held(self, response_type: Any) -> Any:
        """The type to ask for: in the place of texts, these names, to which a service can hold the model."""
        if response_type != list[str] or not self.names:
            return response_type
        name: Any = Literal[tuple(self.names)]  # ty: ignore[invalid-type-form]  # they are known here
        return list[name]

    def check(self, message: AssistantMessage, answer: Any) -> None:
        """Refuse an answer that names something else, so that the model is told, and mends it.

        Raises:
            ResultDecodingError: It does.
        """
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            return  # whoever asked says what is wrong with it
        unknown = [one for one in answer if isinstance(one, str) and one not in self.names]
        if unknown:
            problem = ValueError(f"there is no tool `{unknown[0]}`. The tools are: {_listed(self.names)}.")
            raise ResultDecodingError(problem, message)


@Operation.define
def choosing() -> Choice | None:
    """The choice that is being made here; None where none is."""
    return None


def _summary(tool: Tool) -> str:
    return tool.description.strip().partition("\n\n")[0].replace("\n", " ")


def _name(function: Any) -> str:
    if isinstance(function, KeywordRouter):
        return keyword_router.__name__
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
