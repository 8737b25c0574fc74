"""The pytest plugin: a scripted model and a cassette as fixtures, and tests that may not ask real models.

It stands beside the package, since pytest imports it at every start: `effectful_agents` is imported when a test uses
a fixture of it. `docs/testing.md` shows how to use it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from effectful_agents.testing import Cassette, ScriptedModel

__all__ = ["cassette", "cassette_path", "scripted_model"]

_MODES = ("replay", "record", "rewrite")
_FORBIDS = "EFFECTFUL_AGENTS_FORBID_MODELS"
_MARKERS = (
    "cassette(path=None, *, mode=None, scrub=None, ignore=()): "
    "give recorded replies of models; what else is said goes to `effectful_agents.testing.Cassette`",
    "forbid_models: no real model may be asked",
    "allow_models: real models may be asked, though pytest's settings forbid them",
)
_DOUBLES = pytest.StashKey[list[Any]]()
_FAILURE = pytest.StashKey[BaseException | None]()
_RENEWED = pytest.StashKey[dict[Path, dict[str, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("effectful-agents")
    group.addoption(
        "--cassette-mode",
        choices=_MODES,
        help="replay never asks a model; record asks what is not recorded; rewrite asks everything anew",
    )
    parser.addini("cassette_mode", "what `--cassette-mode` is where it is not given", default="replay")
    parser.addini("forbid_models", "whether tests may not ask real models", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers, and look at the settings."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    if config.getini("cassette_mode") not in _MODES:
        raise pytest.UsageError(
            f"`cassette_mode` is one of {', '.join(_MODES)}, and not {config.getini('cassette_mode')}"
        )


# --- what a test may ask ----------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Forbid or allow real models, for the time of a test with its fixtures."""
    # A variable of the environment holds in threads and in processes that the test starts.
    before = os.environ.get(_FORBIDS)
    wanted = _is_forbidden(item)
    if wanted is not None:
        os.environ[_FORBIDS] = "1" if wanted else "0"
    try:
        return (yield)
    finally:
        if wanted is not None:
            if before is None:
                os.environ.pop(_FORBIDS, None)
            else:
                os.environ[_FORBIDS] = before


def _is_forbidden(item: pytest.Item) -> bool | None:
    """Whether a test may not ask real models; None where nothing of pytest's says so."""
    marks = [mark.name for mark in item.iter_markers() if mark.name in ("forbid_models", "allow_models")]
    if marks:
        return marks[0] == "forbid_models"  # the nearest one
    if not item.config.getini("forbid_models"):
        return None
    # Who records says so for this time; the setting is for all others. A marker or the variable is meant as it stands.
    return not (_has_cassette(item) and _cassette_mode(item) != "replay")


# --- doubles ----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Have the models of the fixtures answer in an asynchronous test too, which may run in a context of its own."""
    doubles = list(item.stash.get(_DOUBLES, ()))
    if not doubles:
        return (yield)
    from effectful_agents.testing.plugin import answering, in_its_context, problem_of_script  # noqa: PLC0415

    function = getattr(item, "obj", None)
    item.stash[_FAILURE] = None
    try:
        if function is not None:
            item.obj = answering(function, doubles)  # ty: ignore[missing-attribute]
        with in_its_context(getattr(item, "instance", None), doubles):
            result = yield
        for double in doubles:
            if problem := problem_of_script(double):
                pytest.fail(problem, pytrace=False)
        return result
    except BaseException as error:
        item.stash[_FAILURE] = error
        raise
    finally:
        if function is not None:
            item.obj = function  # ty: ignore[missing-attribute]


@pytest.fixture(autouse=True)
def _doubles_of_the_test(request: pytest.FixtureRequest) -> None:
    # First, so that they stand outside of what other fixtures install.
    for name in ("scripted_model", "cassette"):
        if name in request.fixturenames or (name == "cassette" and _has_cassette(request.node)):
            request.getfixturevalue(name)


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> Iterator[ScriptedModel]:
    """A `ScriptedModel` that answers in the whole test, in the place of whatever model is installed.

    It begins without a script: `scripted_model.add("Paris")`. The test fails when replies are left at its end;
    `scripted_model.clear()` says that they may be.
    """
    from effectful_agents.testing import ScriptedModel  # noqa: PLC0415 - at first use
    from effectful_agents.testing.plugin import installed_for_test  # noqa: PLC0415

    model = ScriptedModel()
    with _noted(request.node, model), installed_for_test(model):
        yield model


@pytest.fixture
def cassette_path(request: pytest.FixtureRequest) -> Path:
    """The file of the test's cassette: in `cassettes/` beside the test, by its module and its name.

    Override the fixture to keep cassettes elsewhere. A path that the marker gives is one in the same folder.
    """
    default = _default_path(request)
    mark = request.node.get_closest_marker("cassette")
    given = mark and (mark.args[0] if mark.args else mark.kwargs.get("path"))
    return default.parents[1] / given if given else default


@pytest.fixture
def cassette(request: pytest.FixtureRequest, cassette_path: Path) -> Iterator[Cassette]:
    """A `Cassette` that gives the recorded replies in the whole test; how it does is said by `--cassette-mode`."""
    from effectful_agents.testing import Cassette  # noqa: PLC0415 - at first use
    from effectful_agents.testing.plugin import installed_for_test  # noqa: PLC0415
    from effectful_agents.testing.shared import shared_cassette  # noqa: PLC0415

    mark = request.node.get_closest_marker("cassette")
    options = {name: value for name, value in mark.kwargs.items() if name not in ("path", "mode")} if mark else {}
    mode: Any = _cassette_mode(request.node)
    if cassette_path.parts[-2:] == _default_path(request).parts[-2:]:
        tape = Cassette(cassette_path, mode, **options)
    else:  # other tests may have the same
        files = request.config.stash.setdefault(_RENEWED, {})
        renewed = files.setdefault(cassette_path.resolve(), {})
        tape = shared_cassette(cassette_path, mode, owner=request.node.nodeid, renewed=renewed, **options)
    with _noted(request.node, tape), installed_for_test(tape, lambda: request.node.stash.get(_FAILURE, None)):
        yield tape


@contextlib.contextmanager
def _noted(item: pytest.Item, double: object) -> Generator[None]:
    doubles = item.stash.setdefault(_DOUBLES, [])
    doubles.append(double)
    try:
        yield
    finally:  # the test may be run again
        doubles.remove(double)


def _has_cassette(item: pytest.Item) -> bool:
    return item.get_closest_marker("cassette") is not None or "cassette" in getattr(item, "fixturenames", ())


def _cassette_mode(item: pytest.Item) -> str:
    mark = item.get_closest_marker("cassette")
    given = item.config.getoption("--cassette-mode") or (mark and mark.kwargs.get("mode"))
    return given or item.config.getini("cassette_mode")


def _default_path(request: pytest.FixtureRequest) -> Path:
    """A file that is that of one test alone."""
    return request.path.parent / "cassettes" / request.path.stem / f"{_file_name(request.node)}.json"


_LONGEST = 120


def _file_name(item: pytest.Item) -> str:
    """A name that any file system takes, and that no other test of the module has."""
    name = item.nodeid.partition("::")[2].replace("::", ".")
    plain = re.sub(r"[^A-Za-z0-9_.\[\]-]+", "-", name)
    if plain == name and len(name) <= _LONGEST:
        return name
    return f"{plain[:_LONGEST]}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
