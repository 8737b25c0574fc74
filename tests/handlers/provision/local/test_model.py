"""The real model, inside this process."""

import concurrent.futures
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from effectful_agents.errors import (
    ConfigurationError,
    ContextLengthError,
    MissingHandlerError,
    ProviderError,
    RequestTimeoutError,
    ResultDecodingError,
)
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.handlers.provision.local.engine import engine_for
from effectful_agents.handlers.provision.local.weights import weights
from effectful_agents.messages import (
    Finish,
    Message,
    PromptProgress,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import fwd, handler
from effectful_agents.testing import says

pytestmark = pytest.mark.local_model


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def asked(text: str = "Name a colour.", **request: Any) -> Any:
    request.setdefault("max_tokens", 8)
    return completion(messages=[user(text)], **request)


def content(reply: Any) -> str:
    return reply["choices"][0]["message"]["content"]


def form(**properties: Any) -> Any:
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


# --- which requests it answers ----------------------------------------------------------------------------------------


def test_it_answers_requests_that_name_no_model_when_it_was_given_one():
    with handler(LocalModel()):
        reply = asked()
    assert reply["model"] == "local/smollm2"
    assert content(reply)


def test_without_a_model_of_its_own_it_answers_only_for_local_ones():
    elsewhere = says("elsewhere")
    with handler({send_request: lambda **request: elsewhere}), handler(LocalModel(None)):
        assert content(asked()) == content(asked(model="gpt-5-mini")) == "elsewhere"
        assert asked(model="local/smollm2")["model"] == "local/smollm2"


def test_a_request_that_nobody_answers_says_so():
    with handler(LocalModel(None)), pytest.raises(MissingHandlerError):
        asked(model="gpt-5-mini")


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_request_wins_over_the_constructor():
    with handler(LocalModel(max_tokens=3, temperature=0)):
        short, long = asked(max_tokens=None), asked(max_tokens=6)
    assert (short["usage"]["completion_tokens"], long["usage"]["completion_tokens"]) == (3, 6)
    assert short["choices"][0]["finish_reason"] == "length"


def test_a_setting_that_does_not_exist_is_an_error():
    with pytest.raises(ConfigurationError, match=r"no setting `temprature`; it has .*temperature"):
        LocalModel(temprature=0)


def test_the_same_request_gives_the_same_reply_and_another_seed_another():
    question = "Tell me a story about a fox."
    with handler(LocalModel(temperature=1.5)):
        first, again, other = asked(question), asked(question), asked(question, seed=7)
    assert content(first) == content(again) != content(other)


@pytest.mark.slow
def test_without_a_seed_replies_differ():
    with handler(LocalModel(seed=None, temperature=2.0)):
        replies = {content(asked("Tell me a story about a fox.", max_tokens=20)) for _ in range(3)}
    assert len(replies) > 1


def test_it_stops_at_a_stop_text():
    with handler(LocalModel(temperature=0)):
        assert " " not in content(asked("Count from one to ten.", stop=" ")).strip()


def test_several_replies_to_one_request_are_refused():
    with handler(LocalModel()), pytest.raises(ConfigurationError, match="one reply"):
        asked(n=2)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_has_the_form_that_was_asked_for_and_one_way_of_writing():
    digits = {"type": "string", "pattern": r"^\d{3}$"}
    number = {"type": "integer", "exclusiveMinimum": 40, "maximum": 43}
    tags = {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 2}
    with handler(LocalModel()):
        text = content(asked(response_format=form(digits=digits, number=number, tags=tags), max_tokens=60))
    value = json.loads(text)
    assert text == json.dumps(value)
    assert value["digits"].isdigit()
    assert 41 <= value["number"] <= 43


def test_a_grammar_that_cannot_be_made_is_an_error_not_prose():
    impossible = {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 2}
    with handler(LocalModel()), pytest.raises(ProviderError, match="no grammar") as raised:
        asked(response_format=form(value=impossible), max_tokens=200, stop=".")
    assert not raised.value.retryable


def test_an_attempt_to_mend_an_answer_does_not_repeat_it():
    dice = form(value={"type": "integer", "minimum": 1, "maximum": 6})
    messages = [user("Throw a dice.")]
    values = []
    with handler(LocalModel()):
        for _ in range(6):
            reply = completion(messages=messages, response_format=dice)
            message = reply["choices"][0]["message"]
            values.append(json.loads(message["content"])["value"])
            messages += [message, ResultDecodingError(ValueError("another one"), message).to_feedback_message()]
    assert sorted(values) == [1, 2, 3, 4, 5, 6]


def test_lone_surrogates_and_null_characters_do_no_harm():
    with handler(LocalModel()):
        assert asked("What is \ud800 and \x00 and \U0001f600?")["usage"]["prompt_tokens"]


# --- usage and limits -------------------------------------------------------------------------------------------------


def test_the_second_turn_reads_the_first_from_the_cache():
    messages = [user("Here is a word: " + "house " * 50)]
    with handler(LocalModel()):
        first = completion(messages=messages, max_tokens=8)
        messages += [first["choices"][0]["message"], user("And now?")]
        second = completion(messages=messages, max_tokens=8)
    one, two = Usage.from_wire(first["usage"]), Usage.from_wire(second["usage"])
    assert two.cache_read is not None
    assert one.input is not None
    assert two.cache_read >= one.input > (one.cache_read or 0)


def test_a_prompt_that_is_too_long_is_an_error_with_its_counts():
    with handler(LocalModel(context=512)), pytest.raises(ContextLengthError, match=r"context=2048") as raised:
        asked("word " * 600)
    assert raised.value.limit == 512
    assert raised.value.prompt_tokens is not None
    assert raised.value.prompt_tokens > 600
    assert not raised.value.retryable


@pytest.mark.slow
def test_time_that_is_over_is_an_error_and_the_next_request_works():
    with handler(LocalModel()):
        with pytest.raises(RequestTimeoutError, match=r"within 0\.01 s"):
            asked("word " * 3000, timeout=0.01)
        assert content(asked(timeout=300))


def test_a_file_that_llama_cpp_cannot_load_is_a_configuration_error(tmp_path):
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + b"\xff" * 64)
    with handler(LocalModel(f"local/{file}")):
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="cannot load"):
                asked()


def test_bad_settings_of_llama_cpp_are_errors_of_the_provider():
    with handler(LocalModel()), pytest.raises(ProviderError) as raised:
        asked(provider_options={"temperature": "hot"})
    assert raised.value.provider == "llama.cpp"


# --- what is told meanwhile -------------------------------------------------------------------------------------------


def test_events_tell_of_reading_and_writing():
    events: list[StreamEvent] = []
    with handler(LocalModel()), handler({emit: events.append}):
        reply = asked("thing " * 600)
    progress = [event for event in events if isinstance(event, PromptProgress) and event.stage == "reading"]
    assert len(progress) > 2
    assert progress[-1].done == progress[-1].total == reply["usage"]["prompt_tokens"]
    assert [event.done for event in progress] == sorted(event.done for event in progress)
    rest = [event for event in events if not isinstance(event, PromptProgress | TextDelta)]
    assert rest == [StreamStart("local/smollm2"), TextStart(), TextEnd(), Finish(reply)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == content(reply)


def test_loading_is_told_once():
    model = LocalModel(context=640)
    events: list[StreamEvent] = []
    with handler(model), handler({emit: events.append}):
        asked()
        asked()
    assert events.count(PromptProgress("loading")) == 1
    assert events[0] == PromptProgress("loading")


# --- interruption -----------------------------------------------------------------------------------------------------


class Stop(BaseException):
    pass


def stopping_at(kind: type[StreamEvent], number: int) -> Any:
    seen = []

    def stop(event: StreamEvent) -> None:
        seen.extend([event] if isinstance(event, kind) else [])
        if len(seen) == number:
            raise Stop
        fwd()

    return {emit: stop}


@pytest.mark.slow
def test_an_exception_while_the_prompt_is_read_stops_the_reading():
    prompt = "stop reading " * 1200
    with handler(LocalModel()):
        with handler(stopping_at(PromptProgress, 3)), pytest.raises(Stop):
            asked(prompt)
        assert content(asked())
        again = asked(prompt, max_tokens=1)
    # Had it been read to its end, all of it would come from the cache now.
    usage = Usage.from_wire(again["usage"])
    assert usage.cache_read is not None
    assert usage.input is not None
    assert usage.cache_read < usage.input - 1000


def test_an_exception_while_the_reply_is_written_stops_the_writing():
    with handler(LocalModel()):
        with handler(stopping_at(TextDelta, 2)), pytest.raises(Stop):
            asked("Write.", max_tokens=3000, ignore_eos=True)
        # It would take half a minute to write 3,000 tokens to the end.
        assert content(asked(timeout=15))


def test_calls_of_several_threads_are_answered_one_after_the_other():
    def ask(number: int) -> int:
        with handler(LocalModel()):
            reply = asked("Repeat the number.", response_format=form(value={"const": number}))
        return json.loads(content(reply))["value"]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [0, 1, 2, 3]


def run(program: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PREAMBLE + program], capture_output=True, text=True, **options)


PREAMBLE = """
import os, signal, sys, threading
from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.provision.local import LocalModel
from effectful_agents.messages import PromptProgress, TextDelta
from effectful_agents.operations.loop import completion, send_request
from effectful_agents.operations.steps import emit
from effectful_agents.runtime import handler

def ask(text, **request):
    return completion(messages=[{"role": "user", "content": text}], **{"max_tokens": 4, **request})
"""


@pytest.mark.slow
def test_ctrl_c_while_the_prompt_is_read_ends_the_program():
    done = run(
        """
def interrupt(event):
    if isinstance(event, PromptProgress) and event.stage == "reading" and event.done:
        print("reading", event.done, flush=True)
        signal.raise_signal(signal.SIGINT)

with handler(LocalModel()), handler({emit: interrupt}):
    ask("word " * 3900)
""",
        timeout=120,
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.stdout.count("reading") == 1


def test_ctrl_c_reaches_a_program_that_waits_for_the_next_piece():
    done = run(
        """
started = threading.Event()
threading.Thread(target=lambda: started.wait() and os.kill(os.getpid(), signal.SIGINT), daemon=True).start()
with handler(LocalModel()), handler({emit: lambda event: started.set() if isinstance(event, PromptProgress) else None}):
    ask("word " * 3900)
""",
        timeout=120,
    )
    assert "KeyboardInterrupt" in done.stderr


def test_a_program_may_end_while_another_thread_asks():
    done = run(
        """
writing = threading.Event()
def work():
    with handler(LocalModel()), handler({emit: lambda event: writing.set() if isinstance(event, TextDelta) else None}):
        ask("Write.", max_tokens=3000, ignore_eos=True)
threading.Thread(target=work, daemon=True).start()
writing.wait()
print("bye")
""",
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


@pytest.mark.skipif(not hasattr(sys.modules["os"], "fork"), reason="there is no fork here")
def test_a_forked_process_is_told_to_be_started_in_another_way():
    done = run(
        """
import warnings
warnings.simplefilter("ignore")
with handler(LocalModel()):
    ask("hi")
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        try:
            ask("hi")
        except ConfigurationError as error:
            print(error, flush=True)
        os._exit(0)  # as multiprocessing does
""",
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "spawn" in done.stdout


def test_nothing_is_printed(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\xff" * 64)
    done = run(
        r"""
patterns = {name: {"type": "string", "pattern": pattern, "maxLength": 4}
    for name, pattern in {"a": r"^\d{3}$", "b": "(?=x)y", "c": "abc", "d": r"^\p{L}$"}.items()}
schema = {"type": "object", "properties": patterns | {"e": {"type": "string", "format": "email", "maxLength": 4}}}
form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
with handler(LocalModel()):
    ask("hi")
    ask("hi", response_format=form, max_tokens=60)
    for request in ({"text": "word " * 6000}, {"text": "hi", "model": "local/broken.gguf"}):
        try:
            ask(**request)
        except Exception:
            pass
""",
        timeout=120,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_port_that_llama_cpp_opens_is_closed_by_a_key():
    model = LocalModel()
    with handler(model):
        asked()
    address = engine_for(weights("local/smollm2"), model.context, model.threads).address
    for path in ("/v1/models", "/props", "/slots", "/v1/chat/completions", "/completion"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}{path}")
        refused.value.close()
        assert refused.value.code == 401
