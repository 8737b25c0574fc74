"""The models among which `Fallback` chooses, and how a request becomes one for each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from effectful_agents.errors import OptionError
from effectful_agents.messages import Response
from effectful_agents.messages.exchange import settings_of_a_service
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.runtime import Interpretation, Layers, forward_through, fwd, handler

__all__ = ["Alternative", "Model", "alternative"]


class Model:
    """A model by its name, with settings of its own.

    Args:
        name: The name, for whoever answers requests here: LiteLLM, an `HttpModel`, a `LocalModel`.
        **settings: Settings of its requests. Those that a request has already win.

    Raises:
        OptionError: The name is no text, or empty.

    >>> Model("anthropic/claude-sonnet-4-5", temperature=0)
    Model('anthropic/claude-sonnet-4-5', temperature=0)
    """

    name: str
    settings: Mapping[str, Any]

    def __init__(self, name: str, /, **settings: Any) -> None:
        if not isinstance(name, str) or not name:
            raise OptionError(f"`{name!r}` is no name of a model.")
        self.name = name
        self.settings = {**settings, "model": name}

    def __repr__(self) -> str:
        # A key does not belong in a log.
        secret = settings_of_a_service(self.settings)
        shown = [f"{name}={'…' if name in secret else repr(value)}" for name, value in self.settings.items()]
        return f"Model({', '.join([repr(self.name), *shown[:-1]])})"


@dataclasses.dataclass(eq=False)
class Alternative:
    """One of the models that may answer a request.

    Attributes:
        name: How it is called in errors, and what a request names that is for it.
        functions: What a request goes through on its way to it.
        handlers: What is installed while it is asked.
        named: What a request says that is for it.
        is_configured: Whether it is the one that a request goes to as it is.
        rests: From when on, and until when, it is not to be asked.
    """

    name: str
    functions: tuple[Callable[..., Response], ...] = ()
    handlers: Interpretation = dataclasses.field(default_factory=dict)
    named: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    is_configured: bool = False
    rests: tuple[float, float] | None = None

    def ask(self, request: Mapping[str, Any], *, is_meant: bool) -> Response:
        """Forward a request to it, from a handler of `completion`.

        Args:
            request: The request.
            is_meant: Whether it is the one that the request is meant for. What a service is reached with, such as a
                key, is for that one alone; any other has its own.
        """
        if is_meant:
            with handler(self.handlers):
                return forward_through((*self.functions, _onward), **{**self.named, **request})
        not_its_own = {"model", *settings_of_a_service(request)}
        leaving: dict[str, Any] = {}

        def leave(**sent: Any) -> Response:
            leaving.update(sent)
            return fwd()

        def reach(**filled: Any) -> Response:
            # What handlers further out have filled in meanwhile is for that one too.
            others = settings_of_a_service(filled)
            kept = {name: value for name, value in filled.items() if name not in others}
            return fwd(**kept, **settings_of_a_service(leaving))

        with handler(self.handlers), handler({send_request: reach}):
            cleared = {name: value for name, value in request.items() if name not in not_its_own}
            return forward_through((*self.functions, leave), **{**self.named, **cleared})


def _onward(**_: Any) -> Response:
    return fwd()


def alternative(given: str | Model | Interpretation | None) -> Alternative:
    """What `Fallback` was given, as one of its models.

    Raises:
        OptionError: It is none of what there can be.
    """
    if given is None:
        return Alternative("the configured model", is_configured=True)
    if isinstance(given, str):
        given = Model(given)
    if isinstance(given, Model):
        settings = given.settings
        return Alternative(given.name, (lambda **request: fwd(**{**settings, **request}),))
    if isinstance(given, Mapping):
        return _of_handler(given)
    hint = "; make an instance of it" if isinstance(given, type) else ""
    raise OptionError(f"`{given!r}` is no model: name one, or give `Model(name, …)` or a handler that answers{hint}.")


def _of_handler(given: Interpretation) -> Alternative:
    if completion not in given and send_request not in given:
        raise OptionError(f"`{given!r}` answers no requests: it handles neither `completion` nor `send_request`.")
    layers = given.layers if isinstance(given, Layers) else (given,)
    models = [getattr(layer, "model", None) for layer in layers]
    model = next((one for one in models if isinstance(one, str)), None)
    functions = (given[completion],) if completion in given else ()
    # Not installed: requests that handlers further out make meanwhile are not for this model.
    others = {operation: function for operation, function in given.items() if operation is not completion}
    # A request that names no model would be given that of a handler further out, and be for that one.
    named = {} if model is None and functions else {"model": model}
    return Alternative(model or _kinds(layers), functions, others, named)


def _kinds(layers: tuple[Interpretation, ...]) -> str:
    return " and ".join(type(layer).__name__ for layer in layers)
