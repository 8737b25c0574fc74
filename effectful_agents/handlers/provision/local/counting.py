"""Counting tokens with a local model's own tokenizer and chat template.

The binding of llama.cpp gives out no tokenizer. But a prompt that is too long is refused within milliseconds, before
anything of it is read, and the refusal says how many tokens it has. So what is to be counted is sent together with a
filler that is too long for the context by itself, and the filler's tokens are taken off. The prefix that the model
keeps between turns is not touched by it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence

from effectful_agents.errors import ContextLengthError
from effectful_agents.handlers.provision.local.engine import Engine

__all__ = ["prompt_tokens", "text_tokens"]

type _Chat = Sequence[Mapping[str, str]]


def prompt_tokens(engine: Engine, context: int, messages: _Chat) -> int | None:
    """The tokens of the prompt that plain messages make, those around the messages included.

    Args:
        engine: The model.
        context: The tokens that it can read.
        messages: The messages.

    Returns:
        As many as a reply to them would report; None where the model does not tell.

    Raises:
        ProviderError: The chat template refused the messages.
    """
    once, twice = _of_fillers(engine, context)
    with_filler = _refused(engine, [*messages, _filler(context)])
    return None if with_filler is None or once is None or twice is None else with_filler - (twice - once)


def text_tokens(engine: Engine, context: int, text: str) -> int | None:
    """The tokens of a text alone; None where the model does not tell."""
    alone = _with_text(engine, context, "")
    with_text = _with_text(engine, context, text)
    return None if with_text is None or alone is None else with_text - alone


def _filler(context: int) -> dict[str, str]:
    return {"role": "user", "content": "a " * context}


@functools.lru_cache(maxsize=16)
def _of_fillers(engine: Engine, context: int) -> tuple[int | None, int | None]:
    """The tokens of a prompt of one filler, and of one of two: each adds the difference to a prompt."""
    filler = _filler(context)
    return _refused(engine, [filler]), _refused(engine, [filler, filler])


def _with_text(engine: Engine, context: int, text: str) -> int | None:
    return _refused(engine, [{"role": "user", "content": text}, _filler(context)])


def _refused(engine: Engine, messages: _Chat) -> int | None:
    request = {"messages": [dict(message) for message in messages], "stream": True, "max_tokens": 1}
    try:
        # Should a tokenizer make so few tokens of the filler that it is read after all, the first report ends that.
        with contextlib.closing(engine.stream({**request, "return_progress": True})) as pieces:
            next(pieces, None)
    except ContextLengthError as error:
        return error.prompt_tokens
    return None
