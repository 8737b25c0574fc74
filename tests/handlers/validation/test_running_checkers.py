"""How a checker is run: with the files of the program, beside its threads and processes, and when it fails."""

from __future__ import annotations

import gc
import importlib
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import handler, propagate
from effectful_agents.encoding.splicing import (
    ModuleSource,
    splice_snippet,
)
from effectful_agents.errors import MissingDependencyError, TypeCheckerError
from effectful_agents.handlers.validation import TyTypeChecker, ty_server
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from effectful_agents.operations import code
from tests.handlers.validation.checking import checkers, report, scope

# What belongs to the user's program


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose modules import each other."""
    folder = tmp_path / "booking_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "hall.py").write_text(
        "from __future__ import annotations\nfrom booking_of_a_test import desk\n"
        "def find(seat: desk.Seat) -> int:\n    return 1\n"
    )
    (folder / "desk.py").write_text(
        "# mypy: ignore-errors\n# type: ignore\nfrom effectful_agents import Skill, NotHandled\nfrom . import hall\n"
        "class Seat:\n    pass\n"
        "@Skill.define\ndef pick(text: str) -> Seat:\n    '''{text}'''\n    raise NotHandled\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("booking_of_a_test.desk")
    for name in [name for name in sys.modules if name.startswith("booking_of_a_test")]:
        del sys.modules[name]


@checkers
def test_the_module_is_the_one_that_others_import(installed, package):
    env = scope(package.pick, "x")
    assert report(installed, splice_snippet("hall.find(Seat())", package.pick, env), lenient=True) == ""
    told = report(installed, splice_snippet("hall.find(3)", package.pick, env), lenient=True)
    assert "line 1: " in told
    assert str(Path(package.__file__).parent) not in told


def test_a_file_that_was_changed_is_read_again(package):
    checker, env = TyTypeChecker(), scope(package.pick, "x")
    region = splice_snippet("hall.find(3)", package.pick, env)
    assert report(checker, region, lenient=True) != ""
    hall = Path(package.__file__).with_name("hall.py")
    hall.write_text("def find(seat: int) -> int:\n    return 1\n")
    assert report(checker, region, lenient=True) == ""


def test_a_module_of_an_installed_package_is_checked_as_well(tmp_path):
    for folder in (".venv/lib/site-packages", "node_modules", "build"):
        path = tmp_path / folder / "mine.py"
        path.parent.mkdir(parents=True)
        path.write_text("")
        assert "line 1: " in report(TyTypeChecker(), (ModuleSource("x: int = 'a'\n", str(path)),))


def test_a_module_that_only_python_finds_is_no_fault(monkeypatch):
    monkeypatch.setitem(sys.modules, "made_while_running", type(sys)("made_while_running"))
    assert report(TyTypeChecker(), ("import made_while_running\n",)) == ""


def test_settings_of_the_user_do_not_count(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.ty.rules]\nall = "ignore"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert "line 1: " in report(TyTypeChecker(), (ModuleSource("x: int = 'a'\n", str(tmp_path / "a.py")),))


# The operation


def test_without_a_checker_everything_passes():
    code.type_check("x: int = 'a'\n")


@checkers
def test_only_the_lines_that_are_asked_for_are_reported(installed):
    source = "x: int = 'a'\ny: int = 1\nz: int = 'b'\n"
    assert report(installed, (source, 2, 2)) == ""
    told = report(installed, (source, 2, 3))
    assert "1 error" in told
    assert "line 2: " in told
    assert "2 errors" in report(installed, (source,))


@checkers
def test_what_is_no_python_is_a_fault(installed):
    for source in ("x = (1,\n", "def f(:\n    pass\n", "x = 'a\n"):
        assert "line 1" in report(installed, (source,)) or "line 2" in report(installed, (source,))


@checkers
def test_other_letters_and_ends_of_lines_are_counted_rightly(installed):
    told = report(installed, ("a = 'é\u2028\x0c'\r\nb = '🙂'; c: int = 'é'\r\n",))
    assert "line 2: " in told
    assert "\n    b = '🙂'; c: int = 'é'\n" in told


def test_a_long_report_is_cut():
    told = report(TyTypeChecker(), ("\n".join(f"x{n}: int = 'a'" for n in range(30)),))
    assert "30 errors" in told
    assert told.endswith("… and 20 more.")
    assert len(told) < 3000
    long = report(TyTypeChecker(), ("\n".join(f"x{n}: int = {'a' * 5000!r}" for n in range(30)),))
    assert len(long) < 15_000


def test_rules_that_are_ignored_count_where_it_is_strict():
    checker = TyTypeChecker(lenient_ignored_rules=("invalid-assignment",))
    assert report(checker, ("x: int = 'a'\n",), lenient=True) == ""
    assert report(checker, ("x: int = 'a'\n",)) != ""


def test_two_checkers_are_both_asked():
    class Never(TyTypeChecker):
        def _check(self, *args: Any) -> None:
            raise TypeError("never")

    with handler(Never()), handler(TyTypeChecker()), pytest.raises(TypeError, match="never"):
        code.type_check("x = 1\n")


# The checker itself


@checkers
def test_no_files_are_left_behind(checker, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ty_server._keeper.stop()
    own = checker()
    assert report(own, ("x: int = 1\n",)) == ""
    assert report(own, ("x: int = 'a'\n",)) != ""
    del own
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_died_is_started_again():
    assert report(TyTypeChecker(), ("x: int = 1\n",)) == ""
    server = ty_server._keeper._server
    assert server is not None
    server._process.kill()
    assert report(TyTypeChecker(), ("y: int = 'a'\n",)) != ""


@pytest.mark.slow
def test_a_server_that_is_stuck_is_given_up(monkeypatch):
    assert report(TyTypeChecker(), ("x: int = 1\n",)) == ""
    server = ty_server._keeper._server
    assert server is not None
    server._process.send_signal(19)  # SIGSTOP
    monkeypatch.setattr(ty_server, "_SECONDS", 5.0)
    assert report(TyTypeChecker(), ("y: int = 'a'\n",)) != ""


def test_a_checker_that_does_not_run_is_an_error_and_no_pass(monkeypatch):
    ty_server._keeper.stop()
    monkeypatch.setattr(ty_server, "program_of", lambda name: "/bin/false")
    with handler(TyTypeChecker()), pytest.raises(TypeCheckerError, match="ty does not start") as caught:
        code.type_check("x = 1\n")
    assert isinstance(caught.value, RuntimeError)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with handler(MypyTypeChecker()), pytest.raises(TypeCheckerError, match="mypy"):
        code.type_check("x = 1\n")


def test_a_comment_that_turns_the_check_off_is_an_error_and_no_pass():
    with handler(TyTypeChecker()), pytest.raises(TypeCheckerError, match="no line of this module"):
        code.type_check("# ty: ignore\nx: int = 'a'\n")


def test_a_checker_that_is_missing_says_what_to_install(monkeypatch):
    ty_server._keeper.stop()
    monkeypatch.setattr("importlib.metadata.Distribution.discover", lambda **options: iter([]))
    monkeypatch.setattr("shutil.which", lambda name: None)
    with handler(TyTypeChecker()), pytest.raises(MissingDependencyError, match="pip install ty"):
        code.type_check("x = 1\n")
    with handler(MypyTypeChecker()), pytest.raises(MissingDependencyError, match="mypy"):
        code.type_check("x = 1\n")


def test_threads_share_a_server_and_get_their_own_answers():
    found: dict[int, bool] = {}

    def check(n: int) -> None:
        try:
            code.type_check(f"x{n}: int = {1 if n % 2 else repr('a')}\n")
            found[n] = True
        except TypeError as error:
            found[n] = f"x{n}" not in str(error)

    with handler(TyTypeChecker()):
        threads = [threading.Thread(target=propagate(check), args=(n,)) for n in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert found == {n: n % 2 == 1 for n in range(6)}


PROGRAM = """
import os, sys
from effectful_agents import NotHandled, Skill, handler
from effectful_agents.encoding.splicing import splice_snippet
from effectful_agents.handlers.validation import TyTypeChecker
from effectful_agents.operations import code
from effectful_agents.types import Scope
import beside

class Seat:
    row = 1

@Skill.define
def pick(text: str) -> Seat:
    '''{text}'''
    raise NotHandled

def check(snippet):
    try:
        code.type_check(*splice_snippet(snippet, pick, Scope.of_call(pick, pick.__signature__.bind("x"))), lenient=True)
        print("passed")
    except TypeError as error:
        print(error)

with handler(TyTypeChecker()):
    check("beside.find(Seat().row)")
    for snippet in sys.argv[1:]:
        check(snippet)
    sys.stdout.flush()
    child = os.fork()
    if not child:
        check("pick(text).nothing")
        sys.exit()
    os.waitpid(child, 0)
    check("beside.find(pick(text).row) + 1")
"""


def test_a_script_says_the_same_in_every_process(tmp_path):
    outputs = []
    for name, history in (("one", []), ("two", ["beside.find(1)", "text.nothing", "text = 2"])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "beside.py").write_text("def find(row: int) -> int:\n    return row\n")
        (folder / "script.py").write_text(PROGRAM)
        run = subprocess.run(
            [sys.executable, "-W", "error", str(folder / "script.py"), *history],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert run.stderr == ""
        outputs.append(run.stdout)
    assert outputs[0].startswith("passed\nthe code does not pass")
    assert outputs[0].endswith("\npassed\n")
    assert outputs[1].endswith(outputs[0].removeprefix("passed\n"))


NAMED = """
from effectful_agents import NotHandled, Skill, handler
from effectful_agents.encoding.splicing import splice_snippet
from effectful_agents.handlers.validation import TyTypeChecker
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from effectful_agents.operations import code
from effectful_agents.types import Scope

@Skill.define
def pick(text: str) -> int:
    '''{text}'''
    raise NotHandled

with handler(CHECKER()):
    for snippet in ("len(text)", "text.nothing"):
        try:
            env = Scope.of_call(pick, pick.__signature__.bind("x"))
            code.type_check(*splice_snippet(snippet, pick, env), lenient=True)
            print("passed")
        except TypeError as error:
            print(str(error).splitlines()[0])
"""
mypy_is_slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("checker", "script"),
    [("TyTypeChecker", "ty.py"), pytest.param("MypyTypeChecker", "mypy.py", marks=mypy_is_slow)],
)
def test_a_script_may_be_called_as_the_checker_is(tmp_path, checker, script):
    (tmp_path / script).write_text(NAMED.replace("CHECKER", checker))
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert run.stdout.splitlines() == ["passed", "the code does not pass the type check: 1 error."]
    assert run.stderr == ""


@pytest.mark.slow
def test_a_module_of_the_user_is_not_the_one_that_mypy_needs(tmp_path, monkeypatch):
    for name in ("mypy", "json", "sysconfig", "typing_extensions"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert report(MypyTypeChecker(), ("x: int = 1\n",)) == ""
    assert "line 1: " in report(MypyTypeChecker(), ("x: int = 'a'\n",))
