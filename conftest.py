"""How many processes share the tests."""

import pytest

# For the tests of the plugin. pytest takes it in the outermost `conftest.py` only.
pytest_plugins = ["pytester"]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Let xdist take one process a core for all tests, and none for those that somebody names.

    A few tests are over before a second process has started, a debugger needs this one, and `bench` measures nothing
    while other tests run beside it.
    """
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    # `-n auto` on the command line is somebody's wish; `logical` stands in pyproject.toml.
    return None if everything or config.option.numprocesses == "auto" else 0
