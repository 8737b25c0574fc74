"""What the process of isolated code may do when the code is past every guard, and what the program makes of it."""

from __future__ import annotations

import json
import os
import sys

import pytest

from effectful_agents.handlers.execution import crossing, processes
from effectful_agents.handlers.execution.isolation import Answer, BadAnswer, IsolatedRun
from effectful_agents.handlers.execution.limits import Limits

# Each sets `got` if it worked. They run as plain Python in a process that was confined.
HARM = {
    "read a file that everybody may read": "got = open('/etc/passwd').read()",
    "write a file": "got = os.open('/tmp/harm', os.O_WRONLY | os.O_CREAT)",
    "make a directory": "os.mkdir('/tmp/harm-of-a-test'); got = 1",
    "list a directory": "got = os.listdir('/')",
    "ask about a file": "got = os.stat('/etc/passwd')",
    "start a process": "got = os.fork()",
    "start a program": "os.execv('/bin/true', ['true'])",
    "start a thread": "import _thread; got = _thread.start_new_thread(lambda: None, ())",
    "reach the network": "import socket; got = socket.socket()",
    "signal the program": "os.kill(os.getppid(), 0); got = 1",
    "signal everybody": "os.kill(-1, 0); got = 1",
    "trace the program": "import ctypes; got = ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0",
    "become root": "os.setuid(0); got = 1",
    "raise a limit": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); got = 1",
    "make a pipe": "got = os.pipe()",
    "copy a descriptor": "got = os.dup(1)",
    "find a descriptor": "got = [fd for fd in range(3, 4096) if _is_open(fd)]",
    "read the environment": "got = dict(os.environ)",
    "take much memory": "got = bytearray(10 ** 9)",
}
_HOSTILE = """
import sys; sys.path[:] = {path!r}
import os, json, ctypes, socket, resource, _thread
from effectful_agents.handlers.execution.confinement import confine
def _is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
confine(5, 300_000_000)
got = None
done = {{}}
for name, source in {harm!r}.items():
    names = {{"os": os, "_is_open": _is_open, "got": None}}
    try: exec(source, names)
    except BaseException as error: pass
    done[name] = bool(names["got"])
try: os.write(1, b"R" + json.dumps(done).encode())
except OSError: pass
os._exit(0)
"""


def _python(source: str) -> list[str]:
    return [sys.executable, "-I", "-B", "-c", source]


def _asked(source: str, seconds: float | None = 5.0, size: int = 100_000) -> bytes:
    return processes.ask(_python(source), b"question", ready=b"R", seconds=seconds, size=size)


@pytest.fixture(scope="module")
def harm_done() -> dict[str, bool]:
    read, write = os.pipe()  # a descriptor of the program's that a child could inherit
    os.set_inheritable(write, True)
    try:
        return json.loads(_asked(_HOSTILE.format(path=sys.path, harm=HARM)))
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.skipif(sys.platform != "linux", reason="the system limits no calls")
@pytest.mark.parametrize("name", HARM)
def test_code_that_has_got_out_of_the_policy_does_no_harm(name, harm_done):
    assert harm_done[name] is False


def test_a_descriptor_that_is_closed_gives_no_room_for_another():
    source = _HOSTILE.format(path=sys.path, harm={}).replace("os._exit(0)", "") + (
        "os.close(0)\ntry: os.open('/etc/passwd', 0)\nexcept OSError: os._exit(7)\n"
    )
    with pytest.raises(processes.Ended) as ended:
        _asked(source)
    assert ended.value.status == 7


# --- a process that lies ------------------------------------------------------------------------------------------

LIES = {
    "nothing": ("", processes.Ended),
    "not ready": ("os.write(1, b'X')", processes.Ended),
    "a crash": ("os.write(1, b'R'); os.abort()", processes.Ended),
    "gigabytes": ("os.write(1, b'R')\nwhile True: os.write(1, b'x' * 65536)", processes.TooMuch),
    "an answer and then no end": ("os.write(1, b'Ryes'); os.close(1); time.sleep(60)", processes.TooLong),
    "silence": ("os.write(1, b'R'); time.sleep(60)", processes.TooLong),
    "a question that it does not read": ("os.write(1, b'R'); os.close(0); time.sleep(60)", processes.TooLong),
    "a child that holds the pipe": (
        "os.write(1, b'R')\nif os.fork() == 0: time.sleep(60)\nos._exit(0)",
        processes.TooLong,
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_process_that_does_not_answer_as_it_should_is_ended_and_leaves_nothing(name):
    source, error = LIES[name]
    before = set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()
    with pytest.raises(error):
        _asked(f"import os, time\n{source}", seconds=0.2)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    if before:
        assert set(os.listdir("/proc/self/fd")) == before


GOOD = {
    "printed": "",
    "error": None,
    "stopped": None,
    "trace": "",
    "deleted": [],
    "bound": crossing.dump({}),
    "kept": {},
}
FORGED = {
    "no table": b"[1, 2",
    "no answer": crossing.dump([1]),
    "too little": crossing.dump({"printed": ""}),
    "too much": crossing.dump({**GOOD, "more": 1}),
    "a limit that is a module": crossing.dump({**GOOD, "stopped": ["contextvars", "seconds", 1]}),
    "a limit that is a class": crossing.dump({**GOOD, "stopped": ["Run", "seconds", 1]}),
    "a limit with another value": crossing.dump({**GOOD, "stopped": ["OutOfTime", "seconds", "x"]}),
    "the builtins": crossing.dump({**GOOD, "bound": crossing.dump({"__builtins__": {}})}),
    "a name that is none": crossing.dump({**GOOD, "bound": crossing.dump({"a b": 1})}),
    "names that are numbers": crossing.dump({**GOOD, "bound": crossing.dump({1: 1})}),
    "what it deletes is a text": crossing.dump({**GOOD, "deleted": "abc"}),
    "more output than allowed": crossing.dump({**GOOD, "printed": "x" * 2_000_000}),
    "an error of three parts": crossing.dump({**GOOD, "error": ["A", "b", "c"]}),
    "a kind that is no text": crossing.dump({**GOOD, "kept": {"f": 1}}),
    "nested": b"[" * 100_000,
    "a deep tuple": json.dumps([[0], [*[["tuple", [[i + 1]]] for i in range(5000)], ["tuple", []]]]).encode(),
    "a wide tuple": json.dumps([[0], [*[["tuple", [[i + 1], [i + 1]]] for i in range(60)], ["tuple", []]]]).encode(),
    "a tuple in itself": b'[[0],[["tuple",[[0]]]]]',
    "a row that there is not": b"[[7],[]]",
    "a class of another kind": b'[[0],[["Popen","x"]]]',
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_answer_is_refused(name):
    with pytest.raises(crossing.NotData):
        Answer.read(FORGED[name], Limits())


def test_keys_that_all_lie_in_one_place_are_refused():
    keys = [hex(number * ((1 << 61) - 1)) for number in range(1, 5000)]
    table = [[0], [["set", [[number + 1] for number in range(len(keys))]], *[["int", key] for key in keys]]]
    with pytest.raises(crossing.NotData, match="alike"):
        crossing.load(json.dumps(table).encode())


def test_what_cannot_be_read_is_an_error_of_the_code():
    class TakenOver(IsolatedRun):
        def command(self) -> list[str]:
            return _python("import os; os.write(1, b'Rnonsense')")

    with pytest.raises(BadAnswer, match="no answer that can be used"):
        TakenOver(Limits()).eval(compile("1", "<x>", "eval"), {})
