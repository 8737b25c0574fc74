"""Every attempt to get out fails here and works elsewhere; every ordinary program runs as it does elsewhere."""

from __future__ import annotations

import contextlib
import io

import pytest

from tests.sandbox.corpus import ESCAPES, PROGRAMS, given
from tests.sandbox.running import printed, run, run_plainly

each_attempt = pytest.mark.parametrize("name", ESCAPES)
each_program = pytest.mark.parametrize("name", PROGRAMS)


def test_each_kind_of_attempt_has_three_variants():
    kinds = {name.rpartition(", ")[0] for name in ESCAPES}
    assert {f"{kind}, {variant}" for kind in kinds for variant in ("helper", "module", "data")} == set(ESCAPES)
    assert len(ESCAPES) >= 80
    assert len(PROGRAMS) >= 60


@each_attempt
def test_an_attempt_is_stopped(name):
    env = given()
    with pytest.raises(Exception):  # noqa: B017, PT011 - each says what is wrong with it in its own way
        run(ESCAPES[name], env)
    assert not env.get("got")


@each_attempt
@pytest.mark.filterwarnings("ignore")
def test_the_attempt_works_without_a_sandbox(name, monkeypatch):
    assert run_plainly(ESCAPES[name], monkeypatch, given()).get("got")


@each_program
@pytest.mark.filterwarnings("ignore:.* in a 'finally' block:SyntaxWarning")
def test_an_ordinary_program_prints_what_it_prints_elsewhere(name, monkeypatch):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run_plainly(PROGRAMS[name], monkeypatch)
    assert out.getvalue()
    assert printed(PROGRAMS[name]) == out.getvalue()
