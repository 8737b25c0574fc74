"""A script runs under the launcher as it runs by itself."""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = ("--model", "gpt-5-mini")  # so that nothing is said about the default


@pytest.fixture
def run(script, launch):
    """A function that runs a source under the launcher and gives what it printed; it must end well and in silence."""

    def source(text: str, *words: str, model: bool = False, **options: str) -> str:
        done = launch(script(text, model=model), *MODEL, *words, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return source


@pytest.fixture
def as_python(launch):
    """A function that runs a script by Python alone."""
    return functools.partial(launch, program=[sys.executable])


# What it sees


def test_it_sees_what_it_sees_under_python_alone(script, launch, as_python):
    name = script(
        """
        import sys
        from pathlib import Path
        def f(x: int) -> None: ...
        print(__name__, __file__, __doc__, __spec__, __package__)
        print(sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())
        print(f.__annotations__, f.__module__, type(__builtins__))
        """
    )
    ours, theirs = launch(name, *MODEL, "a", "--b"), as_python(name, "a", "--b")
    assert (ours.returncode, ours.stderr) == (0, "")
    assert ours.stdout == theirs.stdout


def test_a_script_in_another_folder_finds_the_modules_beside_it(script, launch, tmp_path):
    script("NUMBER = 42", "folder/beside_the_script.py")
    name = script("import sys, beside_the_script; print(beside_the_script.NUMBER, sys.argv[0])", "folder/script.py")
    script("raise SystemExit('the wrong one')", "beside_the_script.py")
    done = launch(name, *MODEL)
    assert (done.stdout, done.stderr) == (f"42 {name}\n", "")
    assert launch(str(tmp_path / name), *MODEL).stdout == f"42 {tmp_path / name}\n"


def test_a_link_to_a_script_finds_what_is_beside_the_script(script, launch, tmp_path):
    script("NUMBER = 42", "folder/beside_the_script.py")
    script("import beside_the_script; print(beside_the_script.NUMBER)", "folder/script.py")
    (tmp_path / "link.py").symlink_to("folder/script.py")
    assert launch("link.py", *MODEL).stdout == "42\n"


def test_where_python_was_told_to_add_no_folder_nothing_else_is_lost(script, launch, tmp_path):
    (tmp_path / "library").mkdir()
    script("NUMBER = 42", "library/in_the_library.py")
    name = script("import in_the_library; print(in_the_library.NUMBER)")
    done = launch(name, *MODEL, PYTHONSAFEPATH="1", PYTHONPATH=str(tmp_path / "library"))
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_it_may_go_to_another_folder(script, launch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    name = script(
        """
        import inspect, os, sys
        os.chdir("elsewhere")
        def broken():
            raise ValueError("from afar")  # this line is shown
        print(inspect.getsource(broken))
        broken()
        """,
        "folder/script.py",
    )
    done = launch(name, *MODEL)
    assert "this line is shown" in done.stdout
    assert "this line is shown" in done.stderr
    assert done.returncode == 1


def test_it_reads_its_input(run):
    assert run("import sys; print(input().upper()); print(sys.stdin.read().upper())", stdin="a\nb") == "A\nB\n"


@pytest.mark.parametrize(
    "source",
    [
        codecs.BOM_UTF8 + "print('häßlich')".encode(),
        "# -*- coding: latin-1 -*-\nprint('häßlich')".encode("latin-1"),
        b"#!/usr/bin/env python\n# coding: utf-8\r\nprint('h\xc3\xa4\xc3\x9flich')\r\n",
    ],
    ids=["byte order mark", "cookie", "line ends"],
)
def test_it_is_read_in_its_own_encoding(source, tmp_path, launch):
    (tmp_path / "script.py").write_bytes(source)
    done = launch("script.py", *MODEL, PYTHONIOENCODING="utf-8")
    assert (done.stdout, done.stderr) == ("häßlich\n", "")


def test_no_future_of_the_launcher_reaches_it(run):
    assert run("def f(x: int): ...\nprint(f.__annotations__)") == "{'x': <class 'int'>}\n"
    postponed = "from __future__ import annotations\ndef f(x: int): ...\nprint(f.__annotations__)"
    assert run(postponed) == "{'x': 'int'}\n"


# What it does


def test_its_classes_can_be_pickled(run):
    source = """
        import dataclasses, pickle, copy
        @dataclasses.dataclass
        class Point:
            x: int
        print(pickle.loads(pickle.dumps(Point(3))), dataclasses.fields(Point)[0].type)
    """
    assert run(source) == "Point(x=3) <class 'int'>\n"


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_it_starts_processes_of_its_own(method, run):
    if sys.platform == "win32":
        pytest.skip("has no fork")
    source = f"""
        import dataclasses, multiprocessing, sys

        @dataclasses.dataclass
        class Point:
            x: int

        def double(point):
            return Point(2 * point.x)

        print("loaded as", __name__, flush=True)
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                print(pool.map(double, [Point(1), Point(2)]))
    """
    loaded = "loaded as __main__\n" + ("loaded as __mp_main__\n" if method == "spawn" else "")
    assert run(source) == loaded + "[Point(x=2), Point(x=4)]\n"


def test_what_is_left_for_the_end_happens_there(run):
    source = """
        import atexit, pickle, sys, threading

        class Point:
            pass

        def later(what):
            pickle.dumps(Point())
            print(what)

        atexit.register(later, "exit")
        main = threading.main_thread()
        threading.Thread(target=lambda: (main.join(), later("thread"))).start()
        sys.stdout.write("not flushed, ")
    """
    assert run(source) == "not flushed, thread\nexit\n"


def test_what_ends_with_exit_is_flushed_too(script, launch):
    done = launch(
        script("import atexit, sys; atexit.register(print, 'exit'); print('a', end=' '); sys.exit(3)"), *MODEL
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "a exit\n", "")


def test_its_warnings_are_shown_as_python_shows_them(script, launch):
    name = script("import warnings; warnings.warn('of the script'); print('ran')")
    done = launch(name, *MODEL, PYTHONWARNINGS="default")
    assert done.stdout == "ran\n"
    assert f"{os.sep}{name}:1: UserWarning: of the script" in done.stderr


def test_its_skills_are_answered_under_the_stack(run):
    source = """
        @Tool.define
        def weather(city: str) -> str:
            '''The weather.'''
            return "sunny"

        @Skill.define
        def ask(city: str) -> int:
            '''How warm is it in {city}?'''
            raise NotHandled

        with handler(ScriptedModel(calls("weather", city="Oslo"), "warm", 21)) as model:
            print(ask("Oslo"))
        print([len(request["messages"]) for request in model.requests])
    """
    assert run(source, model=True) == "21\n[2, 4, 6]\n"


def test_the_source_of_the_script_is_shown_to_the_model_and_not_where_it_lies(run, tmp_path):
    source = """
        # A comment of the script.
        @Skill.define
        def ask() -> str:
            '''Ask.'''
            raise NotHandled

        with handler(ScriptedModel("ok")) as model:
            ask()
        print(model.requests[0]["messages"][0]["content"])
    """
    text = run(source, model=True)
    assert "## Module __main__" in text
    assert "# A comment of the script." in text
    assert str(tmp_path) not in text


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_the_interrupt_key_ends_it(script, tmp_path):
    name = script("import sys; print('ready', flush=True); sys.stdin.read()")
    command = [sys.executable, "-m", "effectful_agents.harness", name, *MODEL]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown == "error: interrupted.\n"


def test_a_script_is_found_from_where_one_stands(script, launch, tmp_path):
    name = script("print('ran')", "folder/script.py")
    relative = os.path.relpath(tmp_path / name, tmp_path / "folder")
    assert launch(relative, *MODEL, cwd=Path(tmp_path / "folder")).stdout == "ran\n"


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_it_is_shown_what_the_model_does_and_nothing_stays(script, tmp_path):
    import pty

    name = script(
        """
        @Skill.define
        def is_even(number: int) -> bool:
            '''Is {number} even?'''
            raise NotHandled

        print(type(is_even(4)).__name__)
        """,
        model=True,
    )
    command = [sys.executable, "-m", "effectful_agents.harness", name]
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=its) as process:
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
            while piece := os.read(ours, 4096):
                shown += piece
        os.close(ours)
        assert process.stdout is not None
        assert process.stdout.read() == b"bool\n"
    assert process.returncode == 0
    note, display = shown.decode().split("\r\n", 1)
    assert "local/smollm2" in note
    assert any(word in display for word in ("loading the model", "reading", "writing"))
    assert display.endswith("\x1b[1A\x1b[2K")
