"""The pytest plugin, run on small suites of its users."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import effectful_agents.testing.plugin  # noqa: F401 - or each of the suites below imports the package anew

PROGRAM = '''
import pytest
from effectful_agents import NotHandled, Skill, handler, harness

@Skill.define
def capital(country: str) -> str:
    """The capital of {country}."""
    raise NotHandled

@Skill.define
async def later(country: str) -> str:
    """The capital of {country}."""
    raise NotHandled

STACK = harness(model="gpt-5-mini", system_prompt="brief")
'''


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a suite in this process; returns the counts of what became of its tests, and what was printed."""
    monkeypatch.delenv("EFFECTFUL_AGENTS_FORBID_MODELS", raising=False)

    def run(tests: str, *options: str, **counts: int) -> str:
        pytester.makepyfile(program=PROGRAM, test_it="from program import *\n" + tests)
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", *options)
        result.assert_outcomes(**counts)
        return str(result.stdout)

    return run


# --- the scripted model -----------------------------------------------------------------------------------------------


def test_a_scripted_model_answers(run):
    run(
        """
        def test_sync(scripted_model):
            scripted_model.add("Oslo", "Lima")
            with handler(STACK):
                assert [capital("Norway"), capital("Peru")] == ["Oslo", "Lima"]
            assert scripted_model.requests[0]["model"] == "gpt-5-mini"

        @pytest.mark.anyio
        async def test_async(scripted_model):
            scripted_model.add("Oslo")
            with handler(STACK):
                assert await later("Norway") == "Oslo"
            assert len(scripted_model.requests) == 1

        @pytest.fixture
        def stack():
            with handler(STACK):
                yield

        class TestInAClass:
            def test_outside_of_other_fixtures(self, stack, scripted_model):
                scripted_model.add("Oslo")
                assert capital("Norway") == "Oslo"
                assert scripted_model.requests[0]["model"] == "gpt-5-mini"
        """.replace("\n        ", "\n"),
        "-p",
        "anyio",
        "-k",
        "not trio",
        passed=3,
        deselected=1,
    )


def test_a_scripted_model_answers_in_test_cases_of_unittest(run):
    run(
        """
        import unittest

        @pytest.mark.usefixtures("scripted_model")
        class TestPlain(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def with_script(self, scripted_model):
                scripted_model.add("Oslo")

            def test_it(self):
                with handler(STACK):
                    self.assertEqual(capital("Norway"), "Oslo")

        class TestLater(unittest.IsolatedAsyncioTestCase):
            @pytest.fixture(autouse=True)
            def with_script(self, scripted_model):
                self.model = scripted_model

            def setUp(self):
                self.model.add("Oslo", "Lima")
                with handler(STACK):
                    self.first = capital("Norway")

            async def asyncTearDown(self):
                with handler(STACK):
                    assert await later("Peru") == "Lima"

            def test_sync(self):
                self.assertEqual(self.first, "Oslo")

            async def test_async(self):
                self.assertEqual(self.first, "Oslo")
        """.replace("\n        ", "\n"),
        passed=3,
    )


def test_replies_that_are_left_fail_the_test(run):
    said = run(
        """
        def test_left(scripted_model):
            scripted_model.add("a", "b")

        def test_meant(scripted_model):
            scripted_model.add("a", "b")
            scripted_model.clear()

        def test_fails_anyway(scripted_model):
            scripted_model.add("a", "b")
            assert 1 == 2
        """.replace("\n        ", "\n"),
        passed=1,
        failed=2,
    )
    assert "2 replies are left in the script: the test asked the model 0 times" in said
    assert said.count("left in the script") <= 2  # once in the report, once in the summary


# --- cassettes --------------------------------------------------------------------------------------------------------

RECORDED = """
from effectful_agents.operations.loop import send_request
from effectful_agents.testing import says

def answer(**request):
    return says(request["messages"][-1]["content"][-9:])

REAL = {send_request: answer}
"""


def test_a_cassette_is_recorded_and_replayed(run, pytester: pytest.Pytester):
    tests = (
        RECORDED
        + """
@pytest.mark.parametrize("country", ["Norway", "a/b: ü?*", "x" * 200])
def test_it(cassette, country):
    with handler(STACK), handler(REAL):
        assert capital(country)[-5:] == f"{country}."[-5:]

class TestIt:
    @pytest.mark.cassette("shared.json", ignore=["model"])
    def test_marked(self):
        with handler(STACK), handler(REAL):
            assert capital("Peru") == "The capital of Peru."[-9:]

@pytest.mark.anyio
async def test_later(cassette):
    with handler(STACK), handler(REAL):
        assert await later("Chile")
"""
    )
    only = ("-k", "not trio")
    said = run(tests, *only, failed=5, deselected=1)
    assert "there is no cassette" in said
    run(tests, "--cassette-mode=record", *only, passed=5, deselected=1)
    files = {path.relative_to(pytester.path).as_posix() for path in pytester.path.rglob("*.json")}
    assert "cassettes/shared.json" in files
    assert "cassettes/test_it/test_it[Norway].json" in files
    assert "cassettes/test_it/test_later[asyncio].json" in files
    assert len(files) == 5
    assert all(name.isascii() and len(name) < 170 for name in files)
    replayed = tests.replace("return says", "raise ZeroDivisionError")
    run(replayed, *only, passed=5, deselected=1)


def test_a_test_that_fails_forgets_no_recording(run, pytester: pytest.Pytester):
    tests = (
        RECORDED
        + """
def test_it(cassette):
    with handler(STACK), handler(REAL):
        capital("Norway")
        {then}
        capital("Peru")
"""
    )
    run(tests.replace("{then}", ""), "--cassette-mode=record", passed=1)
    file = pytester.path / "cassettes/test_it/test_it.json"
    assert "Peru" in file.read_text()
    run(tests.replace("{then}", "assert False"), "--cassette-mode=rewrite", failed=1)
    assert "Peru" in file.read_text()
    run(tests.replace("{then}", "return"), "--cassette-mode=rewrite", passed=1)
    assert "Peru" not in file.read_text()


def test_rewriting_keeps_what_other_tests_recorded_in_the_same_file(run, pytester: pytest.Pytester):
    tests = (
        RECORDED
        + """
@pytest.mark.cassette("shared.json")
class TestShared:
    def test_a(self):
        with handler(STACK), handler(REAL):
            assert "Norway" in capital("Norway") and "Peru" in capital("Peru")
            capital("Peru")

    def test_b(self):
        with handler(STACK), handler(REAL):
            assert "Peru" in capital("Peru") and "Chile" in capital("Chile")
"""
    )
    run(tests, "--cassette-mode=record", passed=2)
    for only in ((), ("-k", "test_a"), ("-k", "test_b")):
        counts = {"passed": 2} if not only else {"passed": 1, "deselected": 1}
        run(tests, "--cassette-mode=rewrite", *only, **counts)
        run(tests, passed=2)
    assert all(name in (pytester.path / "cassettes/shared.json").read_text() for name in ("Norway", "Peru", "Chile"))


def test_how_cassettes_work_can_be_a_setting(run, pytester: pytest.Pytester):
    pytester.makeini("[pytest]\ncassette_mode = record\n")
    tests = (
        RECORDED
        + """
def test_setting(cassette):
    assert cassette.mode == "record"

@pytest.mark.cassette(mode="rewrite")
def test_marker(cassette):
    assert cassette.mode == "rewrite"
"""
    )
    run(tests, passed=2)
    pytester.makeini("[pytest]\ncassette_mode = once\n")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR


# --- real models ------------------------------------------------------------------------------------------------------

FORBIDDEN = """
import os, threading
from effectful_agents.errors import MissingHandlerError, ModelForbidden
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.operations.loop import completion
from effectful_agents.testing import Cassette, ScriptedModel

def ask():
    return completion(messages=[])
"""


def test_real_models_can_be_forbidden(run):
    tests = (
        FORBIDDEN
        + """
@pytest.mark.forbid_models
def test_forbidden():
    with handler(STACK), pytest.raises(ModelForbidden, match=r"by the test `test_it.py::test_forbidden`"):
        capital("Norway")
    errors = []
    def in_thread():
        try:
            ask()
        except ModelForbidden as error:
            errors.append(error)
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert errors

@pytest.mark.forbid_models
def test_doubles_may_be_asked(tmp_path, scripted_model):
    scripted_model.add("Oslo")
    with handler(STACK):
        assert capital("Norway") == "Oslo"

@pytest.mark.forbid_models
class TestThese:
    def test_each(self):
        pytest.raises(ModelForbidden, ask)

    @pytest.mark.allow_models
    def test_but_one(self):
        pytest.raises(MissingHandlerError, ask)

def test_unmarked():
    pytest.raises(MissingHandlerError, ask)
    assert "EFFECTFUL_AGENTS_FORBID_MODELS" not in os.environ
"""
    )
    run(tests, passed=5)


def test_real_models_can_be_forbidden_everywhere(run, pytester: pytest.Pytester, monkeypatch):
    tests = (
        FORBIDDEN
        + RECORDED
        + """
def test_forbidden():
    pytest.raises(ModelForbidden, ask)

@pytest.mark.allow_models
def test_allowed():
    pytest.raises(MissingHandlerError, ask)

def test_recording(cassette):
    with handler(STACK), handler(REAL):
        assert capital("Norway")
"""
    )
    pytester.makeini("[pytest]\nforbid_models = true\n")
    run(tests, "--cassette-mode=record", passed=3)
    pytester.makeini("[pytest]\n")
    monkeypatch.setenv("EFFECTFUL_AGENTS_FORBID_MODELS", "1")
    run(tests, passed=3)


def test_who_forbids_models_for_a_test_forbids_recording_too(run, monkeypatch):
    tests = (
        FORBIDDEN
        + RECORDED
        + """
@pytest.mark.forbid_models
def test_marked(cassette):
    with handler(STACK), handler(REAL):
        pytest.raises(ModelForbidden, capital, "Norway")
"""
    )
    run(tests, "--cassette-mode=record", passed=1)
    monkeypatch.setenv("EFFECTFUL_AGENTS_FORBID_MODELS", "1")
    run(tests.replace("@pytest.mark.forbid_models", ""), "--cassette-mode=record", passed=1)


# --- the start --------------------------------------------------------------------------------------------------------


def test_a_suite_without_agents_does_not_load_the_package(pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        import sys

        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("effectful_agents")
            assert not [name for name in sys.modules if name.startswith("effectful_agents")]
        """
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_workers_share_a_suite(pytester: pytest.Pytester):
    tests = "from program import *\n" + RECORDED
    tests += """
@pytest.mark.parametrize("number", range(8))
@pytest.mark.cassette("shared.json")
def test_it(number):
    with handler(STACK), handler(REAL):
        assert capital(f"land {number}") == f"f land {number}."[-9:]
"""
    pytester.makepyfile(program=PROGRAM, test_it=tests)
    pytester.runpytest_subprocess("-n2", "--cassette-mode=record").assert_outcomes(passed=8)
    pytester.runpytest_subprocess("-n2").assert_outcomes(passed=8)
