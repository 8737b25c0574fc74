"""The error tree: every error survives a pickle, and what the model is told of one is the same everywhere."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents import errors
from effectful_agents.errors import describe_exception

MESSAGE: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{"}}],
}
CALL = MESSAGE["tool_calls"][0]
DECODED = types.SimpleNamespace(name="add", id="c1")
DECISION = types.SimpleNamespace(message="not today")

SAMPLES: list[BaseException] = [
    errors.AgentsError("all", retryable=True, retry_after=2.5),
    errors.ConfigurationError("x"),
    errors.OptionError("x"),
    errors.DefinitionError("x"),
    errors.MissingHandlerError("completion", "Install one."),
    errors.MissingDependencyError("x"),
    errors.EncodingError("x"),
    errors.HistoryError("x"),
    errors.StateError("x", agent_id="a", field="f"),
    errors.ModelAccessError("x"),
    errors.ModelForbidden("x"),
    errors.SeamVersionError("x"),
    errors.ToolCallDecodingError(
        ValueError("bad"), MESSAGE, CALL, [errors.ToolCallDecodingError(KeyError("other"), MESSAGE, CALL)]
    ),
    errors.ResultDecodingError(ValueError("bad"), MESSAGE),
    errors.ToolCallExecutionError(OSError(2, "no file"), DECODED),
    errors.TypeCheckerError("mypy broke off"),
    errors.CodeStopped("seconds", 5, "Do less at once."),
    errors.LimitExceeded("turns", 50, messages=[MESSAGE], advice="Stop."),
    errors.PeerError("x", peer="files", retryable=True),
    errors.Denied(DECISION),
    errors.StepDenied(DECISION),
    errors.GovernanceRefused("egress"),
    errors.UncertainEffect("s1", detail="half done"),
    errors.ReplayDivergence("x"),
    errors.JournalError("x"),
    errors.RunInUse("x"),
    errors.LeaseLost("x"),
    errors.CassetteError("x", path="c.json"),
    errors.UnrecordedRequest("x", path="c.json"),
    errors.StorageError("x", path="a.db", retryable=True),
    errors.PromptError("x"),
    errors.UnknownPromptError("x", ["y"], skill="z"),
    errors.ProviderError("x", status=503, provider="acme", retry_after=1.0),
    errors.RequestTimeoutError("x", status=408),
    errors.NetworkError("x"),
    errors.RefusalError("x", provider="acme"),
    errors.ContextLengthError("x", prompt_tokens=9, limit=8, provider="acme"),
    errors.Signal("x"),
    errors.TokenError("x"),
    errors.TokenTampered("x"),
    errors.TokenScopeMismatch("x"),
    errors.TokenExpired("x"),
    errors.TokenUsed("x"),
    errors.TokenUnknown("x"),
    errors.QuestionChanged("x"),
    errors.AnswerError("x"),
    errors.Suspended("x", question=["send", {"to": "ann"}], token="t"),
    errors.Cancelled("x"),
]


def contents(error: Any) -> Any:
    """All that an error says, with the exceptions in it told by their class and text."""

    def plain(value: Any) -> Any:
        if isinstance(value, BaseException):
            return contents(value)
        return [plain(one) for one in value] if isinstance(value, list | tuple) else value

    fields = {name: plain(value) for name, value in vars(error).items()}
    return type(error), str(error), plain(error.args), fields


def test_there_is_a_sample_of_every_error():
    public = {cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, BaseException)}
    assert {type(sample) for sample in SAMPLES} == {cls for cls in public if not inspect.isabstract(cls)}
    assert {cls.__name__ for cls in public} <= set(errors.__all__)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_a_pickle(sample, protocol):
    again = pickle.loads(pickle.dumps(sample, protocol))
    assert contents(again) == contents(sample)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_an_error_can_be_copied(sample, duplicate):
    assert contents(duplicate(sample)) == contents(sample)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_keeps_the_notes_of_others_in_a_pickle(sample):
    error = copy.deepcopy(sample)
    error.add_note("seen by the night shift")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["seen by the night shift"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda error: type(error).__name__)
def test_only_signals_pass_a_handler_of_exceptions(sample):
    assert isinstance(sample, Exception) != isinstance(sample, errors.Signal)


def test_the_drawing_of_the_tree_is_the_tree():
    drawn = re.findall(r"^( {4,})(\w+)(?: \(|  )", errors.__doc__ or "", re.MULTILINE)
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for indentation, name in drawn:
        path[len(indentation) // 2 - 2 :] = [name]
        parents[name] = path[-2] if len(path) > 1 else None
    assert set(parents) == {name for name in errors.__all__ if name[0].isupper()}
    for name, parent in parents.items():
        if parent is not None:
            assert issubclass(getattr(errors, name), getattr(errors, parent)), name


# What the model is told


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def from_file(path: Path, code: str) -> BaseException:
    """What a module at a path raises when it is executed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return raised(lambda: exec(compile(code, str(path), "exec"), {}))


@given(st.text(st.characters(categories=["L", "Z", "P"])), st.integers(0x100000, 2**64))
def test_no_address_is_told(text, address):
    """As they are written on each system: `0x7f…`, and on Windows `0x000001F…`."""
    told = describe_exception(ValueError(f"{text} <object at 0x{address:x}>, 0x{address:016X}"))
    assert f"{address:x}" not in told.lower()


def test_an_object_in_the_text_is_told_the_same_in_every_process():
    class Thing:
        pass

    def told() -> str:
        return describe_exception(ValueError(Thing(), [Thing()]))

    kept = [Thing() for _ in range(10)]  # so that the next ones lie elsewhere
    first = told()
    kept += [Thing() for _ in range(10)]
    assert told() == first
    assert "Thing object at" in first


def test_the_trace_names_files_without_their_folders_and_is_the_same_wherever_they_lie(tmp_path):
    code = "def inner():\n    raise LookupError('gone')\n\ninner()\n"
    one, other = (from_file(tmp_path / folder / "tools.py", code) for folder in ("one", "another"))
    assert describe_exception(one) == describe_exception(other)
    assert str(tmp_path) not in describe_exception(one)
    assert 'File "tools.py", line 2, in inner' in describe_exception(one)


def test_the_trace_leaves_out_frames_that_are_no_business_of_the_users(tmp_path):
    from effectful_agents.messages.mending import mended

    told = describe_exception(raised(lambda: mended([None])))  # ty: ignore
    assert "mending" not in told
    assert "test_errors.py" in told
    assert "HistoryError: message 0" in told.splitlines()[-1]
    installed = from_file(tmp_path / "site-packages" / "lib.py", "raise ValueError('deep')\n")
    assert "lib.py" not in describe_exception(installed)


@given(st.sampled_from([ValueError, KeyError, OSError, RuntimeError]), st.text(), st.booleans())
def test_telling_is_deterministic_and_ends_with_the_exception(cls, text, trace):
    error = raised(lambda: (_ for _ in ()).throw(cls(text)))
    told = describe_exception(error, include_traceback=trace)
    assert told == describe_exception(error, include_traceback=trace)
    assert cls.__name__ in told.split("\n")[-1] or cls.__name__ in told
    assert ("Traceback" in told.split("\n")[0]) == trace


class Hostile(Exception):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def __str__(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [None, 7, b"x", ValueError("no"), RecursionError(), Hostile(None)])
def test_an_exception_that_cannot_be_shown_is_told_all_the_same(answer):
    told = describe_exception(Hostile(answer))
    assert told.startswith("Hostile: (its text cannot be shown")


@pytest.mark.parametrize("answer", ["", "two\nlines", "no \x00 text"])
def test_any_text_is_told(answer):
    assert describe_exception(Hostile(answer)) == (f"Hostile: {answer}" if answer else "Hostile")


def test_text_that_no_encoding_can_write_is_replaced():
    """As in results of tools: a provider is sent UTF-8, and there is none for half a character."""
    assert describe_exception(ValueError("half \ud83d")).encode("utf-8")


@pytest.mark.parametrize(
    "error",
    [
        errors.ToolCallDecodingError(Hostile(None), MESSAGE, CALL),
        errors.ResultDecodingError(Hostile(None), MESSAGE),
        errors.ToolCallExecutionError(Hostile(None), DECODED),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_hostile_exception_can_be_wrapped_and_fed_back(error):
    assert "Hostile" in str(error)
    assert "Hostile" in error.to_feedback_message()["content"]


def test_a_recursion_without_end_is_told_in_few_lines():
    def down(depth: int) -> int:
        return down(depth + 1)

    error = raised(lambda: down(0))
    assert isinstance(error, RecursionError)
    assert len(describe_exception(error).splitlines()) < 100


@pytest.mark.parametrize(
    ("status", "again"), [(None, True), (200, False), (400, False), (404, False), (429, True), (500, True), (599, True)]
)
def test_a_provider_error_knows_whether_asking_again_may_help(status, again):
    assert errors.ProviderError("x", status=status).retryable is again
    assert errors.ProviderError("x", status=status, retryable=not again).retryable is not again
    assert not errors.RefusalError("x", status=status).retryable
