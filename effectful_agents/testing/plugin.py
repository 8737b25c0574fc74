"""What the pytest plugin needs of the package; the plugin itself is `pytest_effectful_agents`."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any

from effectful_agents.runtime import Interpretation, Layers, handler
from effectful_agents.runtime.installed import installed
from effectful_agents.testing.scripted import ScriptedModel

__all__ = ["answering", "in_its_context", "installed_for_test", "problem_of_script"]


@contextlib.contextmanager
def installed_for_test(
    double: Interpretation, failure: Callable[[], BaseException | None] = lambda: None
) -> Generator[None]:
    """Install what a fixture gives; a test that failed leaves the block with its failure."""
    error = None
    try:
        with handler(double):
            yield
            error = failure()
            if error is not None:
                raise error
    except BaseException as raised:
        if raised is not error:
            raise


def answering(function: Callable[..., Any], doubles: Iterable[Interpretation]) -> Callable[..., Any]:
    """A test function in which all these are installed.

    A fixture installs them in the context of pytest. An asynchronous test may run in another one.
    """
    doubles = list(doubles)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def test(*args: Any, **kwargs: Any) -> Any:
            with handler(_missing(doubles)):
                return await function(*args, **kwargs)

        return test
    return function


@contextlib.contextmanager
def in_its_context(case: object, doubles: Iterable[Interpretation]) -> Generator[None]:
    """Install all these where an asynchronous test case of `unittest` runs: in a context from before the fixtures."""
    context = getattr(case, "_asyncioTestContext", None)
    if not isinstance(context, contextvars.Context):
        yield
        return
    answers = handler(context.run(_missing, doubles))
    context.run(answers.__enter__)
    try:
        yield
    finally:
        context.run(answers.__exit__, None, None, None)


def _missing(doubles: Iterable[Interpretation]) -> Layers:
    here = installed()
    return Layers(*(double for double in doubles if not any(layer is double for layer in here)))


def problem_of_script(double: object) -> str:
    """What is wrong at the end of a test: a scripted model has replies left. Empty where nothing is."""
    if not isinstance(double, ScriptedModel) or not double.remaining:
        return ""
    left = "a reply is" if double.remaining == 1 else f"{double.remaining} replies are"
    asked = "once" if len(double.requests) == 1 else f"{len(double.requests)} times"
    return (
        f"{left} left in the script: the test asked the model {asked}. Where that is meant, end with "
        "`scripted_model.clear()`."
    )
