"""How a script, or what it needs, fails: exit codes, tracebacks, and one clear line instead where that says it all."""

from __future__ import annotations

import http.server
import json
import os
import re
import sys
import threading
from collections.abc import Iterator

import pytest

from effectful_agents.harness.launcher import main

MODEL = ("--model", "gpt-5-mini")  # so that nothing is said about the default

ASK = """
@Skill.define
def ask() -> str:
    '''Ask.'''
    raise NotHandled

print(ask())
"""


@pytest.fixture
def fail(script, launch):
    """A function that runs a source under the launcher; it must not end well."""

    def source(text: str, *words: str, model: bool = False, **options: str):
        done = launch(script(text, model=model), *(words or MODEL), **options)
        assert done.returncode != 0
        return done

    return source


def one_line(done) -> str:
    """The one line on stderr."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def frames(text: str) -> list[str]:
    """The functions of a traceback."""
    return re.findall(r'^  File "[^"]*", line \d+, in (\S+)$', text, flags=re.MULTILINE)


# Exit codes


@pytest.mark.parametrize(
    ("ending", "code", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(None)", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(True)", 1, ""),
        ("sys.exit('no luck')", 1, "no luck\n"),
        ("sys.exit(['no', 'luck'])", 1, "['no', 'luck']\n"),
        ("raise SystemExit(5)", 5, ""),
        ("raise KeyboardInterrupt", 130, "error: interrupted.\n"),
        ("import os; os._exit(6)", 6, ""),
    ],
)
def test_the_exit_code_is_that_of_the_script(ending, code, said, script, tmp_path, launch, here, capsys):
    name = script(f"import sys\n{ending}")
    if "_exit" in ending:
        done = launch(name, *MODEL)
        assert (done.returncode, done.stderr) == (code, said)
        return
    assert main([str(tmp_path / name), *MODEL]) == code
    assert capsys.readouterr().err == said


def test_the_process_ends_with_that_code(script, launch):
    assert launch(script("import sys; sys.exit(3)"), *MODEL).returncode == 3
    done = launch(script("import sys; sys.exit('no luck')"), *MODEL)
    assert (done.returncode, done.stderr) == (1, "no luck\n")


# Tracebacks


def test_a_traceback_is_the_one_of_python_alone(script, launch):
    name = script(
        """
        def broken(x):
            return 1 / x

        try:
            broken(0)
        except ZeroDivisionError as error:
            raise ValueError("no number") from error
        """
    )
    ours, theirs = launch(name, *MODEL), launch(name, program=[sys.executable])
    assert ours.returncode == theirs.returncode == 1
    assert ours.stderr == theirs.stderr
    assert frames(ours.stderr) == ["<module>", "broken", "<module>"]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("x = 1\nif x\n    pass", "script.py"),
        ("x = 1\n  y = 2", "script.py"),
        ("import broken", "broken.py"),
        ("raise ExceptionGroup('two', [ValueError(1), TypeError(2)])", "script.py"),
        ("import sys; sys.excepthook = lambda *seen: print('hooked', seen[0].__name__); 1 / 0", "script.py"),
        ("def deep(): deep()\ntry: deep()\nexcept RecursionError as e: raise ValueError from None", "script.py"),
    ],
    ids=["syntax", "indentation", "syntax of another", "group", "hook", "none"],
)
def test_other_endings_are_those_of_python_alone_too(source, name, script, launch):
    script("x = = 1", "broken.py")
    script(source)
    ours, theirs = launch("script.py", *MODEL), launch("script.py", program=[sys.executable])
    assert ours.returncode == theirs.returncode == 1
    assert ours.stdout == theirs.stdout
    assert name in ours.stderr or ours.stdout
    assert ours.stderr == theirs.stderr


def test_a_traceback_through_a_skill_begins_in_the_script(fail):
    source = """
        class Interrupted(BaseException):
            pass

        @Tool.define
        def weather(city: str) -> str:
            '''The weather.'''
            raise Interrupted("in the tool")

        @Skill.define
        def ask() -> int:
            '''How warm is it?'''
            raise NotHandled

        def program():
            with handler(ScriptedModel(calls("weather", city="Oslo"))):
                ask()

        program()
    """
    done = fail(source, model=True)
    assert done.returncode == 1
    assert frames(done.stderr)[:2] == ["<module>", "program"]
    assert frames(done.stderr)[-1] == "weather"
    assert "launcher.py" not in done.stderr
    assert "in the tool" in done.stderr.splitlines()[-1]


def test_an_answer_that_never_fits_is_a_traceback_from_the_script_on(fail):
    source = """
        @Skill.define
        def ask() -> int:
            '''How warm is it?'''
            raise NotHandled

        with handler(ScriptedModel("warm", "warm")):
            ask()
    """
    done = fail(source, *MODEL, "--num-retries", "2", model=True)
    assert frames(done.stderr)[-1] != "<module>"
    assert "launcher.py" not in done.stderr
    assert "ResultDecodingError" in done.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("@Skill.define\ndef ask(x) -> str:\n    '''{x}'''\n", "`ask`"),
        ("@Skill.define\ndef ask() -> str:\n    '''{thema}'''\n", "`{thema}`"),
    ],
)
def test_a_wrong_definition_is_shown_where_it_stands(source, said, fail):
    done = fail(source, model=True)
    assert frames(done.stderr)[0] == "<module>"
    assert "launcher.py" not in done.stderr
    assert said in done.stderr.splitlines()[-1]


# One line; those who load LiteLLM see what users see: Python's own choice of warnings


def test_a_script_that_is_not_there(launch):
    for words in (["absent.py"], ["absent.py", *MODEL, "--turns", "3", "word"], ["."]):
        done = launch(*words)
        assert done.returncode == 2
        assert f"`{words[0]}`" in one_line(done)


def test_a_script_that_cannot_be_read(script, launch, tmp_path):
    path = tmp_path / script("print('ran')")
    path.chmod(0)
    # Whoever may read everything cannot read this one.
    name = "script.py" if os.geteuid() else "/proc/self/mem"
    done = launch(name, *MODEL)
    assert done.returncode == 2
    assert f"`{name}`" in one_line(done)


def test_no_script_at_all(launch):
    done = launch()
    assert done.returncode == 2
    assert "SCRIPT" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("local/absent.gguf", "absent.gguf"),
        ("local/other", "local/smollm2"),
        ("local/script.py", "local/script.py"),
        ("local/no.gguf", "GGUF"),
    ],
)
def test_a_local_model_that_is_not_there(model, said, fail, tmp_path):
    (tmp_path / "no.gguf").write_bytes(b"not one")
    done = fail(ASK, "--model", model, model=True)
    assert done.returncode == 1
    assert said in one_line(done)


@pytest.mark.local_model
def test_a_broken_file_of_a_model(fail, tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    done = fail(ASK, "--model", "local/broken.gguf", model=True)
    assert done.returncode == 1
    assert "broken.gguf" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.local_model
def test_a_prompt_that_is_too_long_for_the_model(fail):
    done = fail(ASK, "--model", "local/smollm2", "--set", "context=256", "--system-prompt", "full", model=True)
    assert done.returncode == 1
    assert "256" in one_line(done)


def test_llama_cpp_is_not_installed(fail, tmp_path):
    done = fail("import sys; sys.modules['xllamacpp'] = None\n" + ASK, "--model", "local/smollm2", model=True)
    assert done.returncode == 1
    assert "pip install" in one_line(done)


def test_the_limit_on_turns(fail):
    source = """
        @Tool.define
        def weather() -> str:
            '''The weather.'''
            return "sunny"

        @Skill.define
        def ask() -> int:
            '''How warm is it?'''
            raise NotHandled

        with handler(ScriptedModel(*[calls("weather")] * 9)):
            ask()
    """
    done = fail(source, *MODEL, "--turns", "3", model=True)
    assert done.returncode == 1
    assert "`turns` of 3" in one_line(done)


@pytest.mark.slow
def test_a_provider_that_is_down(fail):
    words = ["--model", "openai/x", "--base-url", "http://127.0.0.1:1", "--num-retries", "0", "--set", "api_key=k"]
    done = fail(ASK, *words, model=True, PYTHONWARNINGS="")
    assert done.returncode == 1
    assert "openai" in one_line(done).lower()


@pytest.mark.slow
def test_a_model_that_nobody_knows(fail):
    done = fail(ASK, "--model", "nobody-knows-this", model=True, PYTHONWARNINGS="")
    assert done.returncode == 1
    assert "nobody-knows-this" in one_line(done)


@pytest.mark.slow
def test_a_key_that_is_missing(fail):
    done = fail(ASK, "--model", "gpt-5-mini", model=True, OPENAI_API_KEY="", PYTHONWARNINGS="")
    assert done.returncode == 1
    assert "OPENAI_API_KEY" in one_line(done)


@pytest.mark.slow
def test_a_provider_that_refuses_the_key(fail, provider):
    provider.status, provider.reply = 401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}
    done = fail(
        ASK, "--model", "openai/x", "--base-url", provider.url, "--set", "api_key=wrong", model=True, PYTHONWARNINGS=""
    )
    assert done.returncode == 1
    assert "key" in one_line(done)
    assert "wrong" not in done.stderr
    assert len(provider.requests) == 1


@pytest.mark.slow
def test_a_provider_that_answers_gets_all_settings(script, launch, provider):
    words = ["--temperature", "0.5", "--max-tokens", "7", "--seed", "3", "--set", "top_p=0.5", "--set", "api_key=k"]
    name = script(ASK, model=True)
    done = launch(name, "--model", "openai/x", "--base-url", provider.url, *words, PYTHONWARNINGS="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello!\n", "")
    (request,) = provider.requests
    assert {**request, "model": "x", "temperature": 0.5, "max_tokens": 7, "seed": 3, "top_p": 0.5} == request


class Provider(http.server.ThreadingHTTPServer):
    """A service on this machine that replies to every request with the same."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.status = 200
        message = {"role": "assistant", "content": "Hello!"}
        self.reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "x",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        self.requests = []


class Exchange(http.server.BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        self.server.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = json.dumps(self.server.reply).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
