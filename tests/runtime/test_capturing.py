"""What is printed goes to the buffers of the context that it is printed in, and all else where it went before."""

from __future__ import annotations

import contextvars
import io
import sys
import threading

from effectful_agents.runtime.capturing import captured


def test_what_is_printed_in_the_block_is_captured_and_only_that(capsys):
    out, err = io.StringIO(), io.StringIO()
    print("before")
    with captured(out, err):
        print("inside")
        print("wrong", file=sys.stderr)
    print("after")
    assert (out.getvalue(), err.getvalue()) == ("inside\n", "wrong\n")
    assert capsys.readouterr() == ("before\nafter\n", "")


def test_the_error_output_is_left_alone_where_no_buffer_is_given(capsys):
    with captured(io.StringIO()):
        print("wrong", file=sys.stderr)
    assert capsys.readouterr().err == "wrong\n"


def test_the_inner_block_has_what_is_printed_in_it():
    outer, inner = io.StringIO(), io.StringIO()
    with captured(outer):
        print(1)
        with captured(inner):
            print(2)
        print(3)
    assert (outer.getvalue(), inner.getvalue()) == ("1\n3\n", "2\n")


def test_another_thread_prints_where_it_would_have_printed(capsys):
    out = io.StringIO()
    with captured(out):
        thread = threading.Thread(target=contextvars.Context().run, args=(print, "other"))
        thread.start()
        thread.join()
        print("mine")
    assert out.getvalue() == "mine\n"
    assert capsys.readouterr().out == "other\n"


def test_blocks_of_threads_may_end_in_any_order():
    stream = sys.stdout
    first_open, second_open, first_closed = threading.Event(), threading.Event(), threading.Event()
    found: dict[str, str] = {}

    def first() -> None:
        out = io.StringIO()
        with captured(out):
            first_open.set()
            assert second_open.wait(10)
            print("first")
        found["first"] = out.getvalue()
        first_closed.set()

    def second() -> None:
        out = io.StringIO()
        assert first_open.wait(10)
        with captured(out):
            second_open.set()
            assert first_closed.wait(10)
            print("second")
        found["second"] = out.getvalue()

    threads = [threading.Thread(target=contextvars.Context().run, args=(run,)) for run in (first, second)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {"first": "first\n", "second": "second\n"}
    assert sys.stdout is stream


def test_an_error_leaves_the_streams_as_they_were():
    stream = sys.stdout
    try:
        with captured(io.StringIO()):
            raise ValueError
    except ValueError:
        pass
    assert sys.stdout is stream
