"""Offering the functions of a skill's lexical scope as tools, declared or not."""

from __future__ import annotations

import inspect
import logging
import types
from collections.abc import Callable
from typing import Any

from effectful_agents.errors import ConfigurationError
from effectful_agents.generated import is_generated
from effectful_agents.handlers.legibility.lexical import LexicalToolExtractor
from effectful_agents.types import Tool
from effectful_agents.types.tool import is_method
from effectful_agents.types.walk import standing_for

__all__ = ["ImplicitToolExtractor"]

_log = logging.getLogger(__name__)

# What makes the framework itself is not what a program offers.
_FRAMEWORK = ("effectful_agents", "effectful")


class ImplicitToolExtractor(LexicalToolExtractor):
    """The tools that you are offered are those which the code around this skill has in view, declared as tools or not.

    They are the tools and skills of the enclosing functions and of the module, the methods of the skill's own agent,
    and those of other agents in view; and besides, the functions and methods there that are public, have a docstring,
    and say the types of everything they take and return.

    So the choice tells you what the task is expected to need, and each tool's description is what you can rely on. What
    is not offered is not there: it is private, or has no documentation, or is not in view. Do not call it by name. If
    something seems to be missing, do what can be done without it and say what was missing.

    The tables of the lexical scope and of imported modules list the other names of the same scope.
    """

    # In the place of `LexicalToolExtractor`. A function is wrapped with `Tool.define`, once, whatever skill sees it.
    #
    # Args:
    #     predicate: Whether a function that would be offered may be; None takes all of them.
    #     json_only: As `LexicalToolExtractor` has it; of functions, those without a schema are left out in silence.

    widens = True

    def __init__(self, predicate: Callable[[types.FunctionType], bool] | None = None, json_only: bool = True) -> None:
        super().__init__(json_only)
        self.predicate = predicate

    def wrap(self, function: types.FunctionType) -> Tool | None:
        if not _is_published(function) or (self.predicate is not None and not self.predicate(function)):
            return None
        try:
            tool = standing_for(function)
            tool.__signature__  # noqa: B018 - evaluates its annotations
        except ConfigurationError as error:
            _log.debug("the function `%s` is not offered to the model: %s", function.__name__, error)
            return None
        return tool

    @property
    def _key(self) -> Any:
        return *super()._key, self.predicate


def _is_published(function: types.FunctionType) -> bool:
    """Whether a function was meant for others: its name is public, and it says what it does and with what types."""
    if function.__name__.startswith(("_", "<")) or not inspect.getdoc(function):
        return False
    # What a model has defined in a session is for its code; what it leaves on an agent is offered by any extractor.
    if is_generated(function):
        return False
    module = function.__module__
    if isinstance(module, str) and module.partition(".")[0] in _FRAMEWORK:
        return False
    try:
        signature, inner = inspect.signature(function), inspect.unwrap(function)
    except RecursionError:
        raise
    except Exception:  # what somebody wrote into its attributes is no signature; on some Pythons it is evaluated
        return False
    # What a generator is wrapped in, as a context manager is, gives no value for a model either.
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        return False
    parameters = list(signature.parameters.values())
    if parameters and is_method(function):
        del parameters[0]
    annotations = [signature.return_annotation, *(parameter.annotation for parameter in parameters)]
    return inspect.Parameter.empty not in annotations
