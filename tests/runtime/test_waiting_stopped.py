"""What is handed to `wait` in a scope that is stopped already is given up without a warning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from effectful_agents.errors import Cancelled
from effectful_agents.runtime import StopScope, wait
from effectful_agents.runtime.bridge import bridged


async def pieces() -> AsyncIterator[int]:
    yield 1


async def nothing() -> None:
    raise AssertionError("it must not begin")


@pytest.mark.parametrize("make", [lambda: anext(pieces()), nothing, lambda: asyncio.sleep(0)])
@pytest.mark.filterwarnings("error")
def test_what_has_not_begun_is_closed(make):
    def work() -> None:
        with StopScope() as scope:
            scope.stop(Cancelled)
            wait(make())

    async def main() -> None:
        with pytest.raises(Cancelled):
            await bridged(work)

    asyncio.run(main())
