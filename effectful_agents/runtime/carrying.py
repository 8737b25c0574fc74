"""Where the current interpretation is kept, and the checks that make it safe to keep it there.

The released `effectful` keeps its interpretation in thread-local state, so a handler is lost in `asyncio.to_thread` and
leaks from one task into the next. Importing this module replaces that state by two context variables.

Nothing in effectful binds `get_runtime` when it is imported, so one assignment reaches all of it.
"""

import contextvars
import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import effectful
from effectful.internals import runtime as effectful_runtime
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.errors import ConfigurationError

if TYPE_CHECKING:
    # Effectful's protocol does not admit a dictionary: its methods take `key` by name as well.
    Interpretation = Mapping[Any, Callable[..., Any]]
else:
    from effectful.ops.types import Interpretation

_WRITTEN_FOR = "0.4"

_NOTHING_HANDLED: Mapping[EffectfulOperation, Callable[..., Any]] = {}

current: contextvars.ContextVar[Interpretation] = contextvars.ContextVar(
    "effectful_agents_interpretation", default=_NOTHING_HANDLED
)
"""The interpretation that operations are looked up in. Mappings in it are never changed, only replaced."""

evaluated: contextvars.ContextVar[MutableMapping[int, Any] | None] = contextvars.ContextVar(
    "effectful_agents_evaluated", default=None
)
"""What effectful's `evaluate` has already evaluated. It holds for one interpretation only."""


class _Runtime:
    """Stands in for effectful's thread-local runtime object."""

    @property
    def interpretation(self) -> Interpretation:
        return current.get()

    @interpretation.setter
    def interpretation(self, value: Interpretation) -> None:
        current.set(value)

    @property
    def cache(self) -> MutableMapping[int, Any] | None:
        return evaluated.get()

    @cache.setter
    def cache(self, value: MutableMapping[int, Any] | None) -> None:
        evaluated.set(value)


def _installed_version() -> str:
    # `importlib.metadata` takes longer to load than all the rest of this package.
    for folder in effectful.__path__:
        for name in os.listdir(os.path.dirname(folder)):
            if name.startswith("effectful-") and name.endswith(".dist-info"):
                return name.removeprefix("effectful-").removesuffix(".dist-info")
    from importlib import metadata  # noqa: PLC0415 - see above

    return metadata.version("effectful")


def _check_version() -> None:
    version = _installed_version()
    if version.split(".")[:2] != _WRITTEN_FOR.split("."):
        raise ConfigurationError(
            f"`effectful_agents` was written for effectful {_WRITTEN_FOR}.x and found {version}; "
            f'install "effectful=={_WRITTEN_FOR}.*"'
        )


def _carry_in_context() -> None:
    """Make effectful use the context variables, unless that would hide handlers that are installed now."""
    if effectful_runtime.get_interpretation():
        raise ConfigurationError(
            "`effectful_agents` was imported inside an installed effectful `handler`, which would be lost; "
            "import `effectful_agents` before the first `with handler(...)`"
        )
    runtime = _Runtime()
    effectful_runtime.get_runtime = lambda: runtime  # ty: ignore[invalid-assignment]  # it was a cached function


_check_version()
_carry_in_context()


def interpretation() -> Interpretation:
    """The interpretation that is current here: what each operation does, as a mapping that is not to be changed."""
    return current.get()
