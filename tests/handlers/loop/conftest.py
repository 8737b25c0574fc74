"""What tests of the loop share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio


@pytest.fixture(params=["asyncio", "trio"])
def go(request: Any) -> Any:
    """A function that runs an asynchronous function in an event loop."""
    return (lambda main: asyncio.run(main())) if request.param == "asyncio" else trio.run
