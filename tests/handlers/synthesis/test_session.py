"""A session by itself: one namespace, and the output of each piece of code."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading

import pytest

from effectful_agents import handler
from effectful_agents.errors import MissingHandlerError
from effectful_agents.generated import generated_name
from effectful_agents.handlers.execution import BuiltinExecutor
from effectful_agents.handlers.synthesis import ReplSession
from effectful_agents.operations import code


@pytest.fixture(autouse=True)
def _executor():
    with handler(BuiltinExecutor()):
        yield


def run(session: ReplSession, source: str) -> str:
    filename = generated_name(source, "snippet")
    return session.exec_code(code.compile(code.parse(source, filename), filename))


def test_names_stay_from_one_piece_to_the_next():
    session = ReplSession({})
    run(session, "import math\ndef half(n):\n    return n / 2\nx = 4")
    assert run(session, "print(half(x), math.pi > 3)") == "2.0 True\n"


def test_it_begins_with_the_names_that_it_is_given_and_leaves_those_alone():
    names = {"n": 1}
    session = ReplSession(names)
    assert run(session, "print(n)\nn = 2\nm = 3") == "1\n"
    assert names == {"n": 1}
    assert (session.locals["n"], session.bindings) == (2, {"n": 2, "m": 3})


def test_a_session_that_has_run_nothing_has_bound_nothing():
    assert ReplSession({"n": 1}).bindings == {}


def test_annotations_do_not_reach_those_of_the_module():
    annotations: dict[str, object] = {}
    run(ReplSession({"__annotations__": annotations}), "x: int = 1")
    assert annotations == {}


def test_each_run_gives_its_own_output_and_the_session_keeps_all_of_it():
    session = ReplSession({})
    assert run(session, "print('one')") == "one\n"
    assert run(session, "print('two')") == "two\n"
    assert session.stdout.getvalue() == "one\ntwo\n"


def test_the_error_output_comes_behind_the_standard_output():
    source = "import sys\nprint('err', file=sys.stderr)\nprint('out')"
    assert run(ReplSession({}), source) == "out\nerr\n"


def test_the_value_of_an_expression_is_not_shown():
    assert run(ReplSession({}), "1 + 1") == ""


def test_what_was_bound_before_an_error_stays_and_what_was_printed_is_not_returned():
    session = ReplSession({})
    with pytest.raises(ZeroDivisionError):
        run(session, "x = 1\nprint('lost')\n1 / 0")
    assert run(session, "print(x)") == "1\n"
    assert session.stdout.getvalue() == "lost\n1\n"


def test_only_pieces_without_an_error_are_in_its_history():
    session = ReplSession({})
    run(session, "x = 1")
    with pytest.raises(NameError):
        run(session, "y")
    run(session, "z = 2")
    assert session.prior_snippets == ["x = 1", "z = 2"]


def test_code_cannot_end_the_program():
    with pytest.raises(RuntimeError, match="cannot end the program"):
        run(ReplSession({}), "import sys\nsys.exit(3)")


def test_a_keyboard_interrupt_is_for_the_program():
    with pytest.raises(KeyboardInterrupt):
        run(ReplSession({}), "raise KeyboardInterrupt")


def test_nothing_is_run_in_a_closed_session_and_what_it_made_goes_on():
    session = ReplSession({})
    run(session, "n = 2\ndef double():\n    return 2 * n")
    double = session.locals["double"]
    session.close()
    with pytest.raises(MissingHandlerError, match="has ended"):
        run(session, "n = 3")
    assert double() == 4


# Output


def test_another_thread_prints_where_it_always_did(capsys):
    begun, go_on = threading.Event(), threading.Event()
    found: list[str] = []
    context = contextvars.copy_context()

    def work() -> None:
        found.append(run(ReplSession({"begun": begun, "go_on": go_on}), "begun.set()\ngo_on.wait()\nprint('mine')"))

    thread = threading.Thread(target=context.run, args=(work,))
    thread.start()
    begun.wait()
    print("others")
    go_on.set()
    thread.join()
    assert found == ["mine\n"]
    assert capsys.readouterr().out == "others\n"


def test_two_tasks_have_an_output_each(capsys):
    async def main() -> list[str]:
        sessions = [ReplSession({}), ReplSession({})]

        async def work(number: int) -> str:
            output = ""
            for step in range(3):
                await asyncio.sleep(0)
                output += run(sessions[number], f"print({number}, {step})")
            return output

        return await asyncio.gather(work(0), work(1))

    assert asyncio.run(main()) == [f"{n} 0\n{n} 1\n{n} 2\n" for n in (0, 1)]
    assert capsys.readouterr().out == ""


def test_a_run_inside_a_run_has_its_own_output():
    inner = ReplSession({})
    outer = ReplSession({"inside": lambda: run(inner, "print('inner')")})
    assert run(outer, "print('before')\nfound = inside()\nprint('after')") == "before\nafter\n"
    assert outer.locals["found"] == "inner\n"


def test_the_streams_of_the_process_are_back_afterwards():
    streams = sys.stdout, sys.stderr
    run(ReplSession({}), "print(1)")
    with pytest.raises(ZeroDivisionError):
        run(ReplSession({}), "1 / 0")
    assert (sys.stdout, sys.stderr) == streams


def test_code_may_redirect_its_output_itself():
    source = (
        "import contextlib, io\nbuffer = io.StringIO()\n"
        "with contextlib.redirect_stdout(buffer):\n    print('in')\nprint('out', buffer.getvalue())"
    )
    assert run(ReplSession({}), source) == "out in\n\n"


def test_a_stream_behaves_as_one():
    source = "import sys\nsys.stdout.writelines(['a', 'b'])\nsys.stdout.flush()\nprint(sys.stdout.writable())"
    assert run(ReplSession({}), source) == "abTrue\n"


def test_code_without_a_known_source_runs_and_is_not_in_the_history():
    session = ReplSession({})
    assert session.exec_code(compile("print(1)", "<text>", "exec")) == "1\n"
    assert session.prior_snippets == []
