"""The laws of a single handler: it minds its own operations, lets errors pass, and leaves as it came."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from effectful_agents import ObjectInterpretation, fwd, handler
from effectful_agents.errors import (
    Cancelled,
    ConfigurationError,
    LimitExceeded,
    NetworkError,
    RefusalError,
    Suspended,
)
from effectful_agents.handlers.durability import SQLitePersister, transaction
from effectful_agents.handlers.execution import BuiltinExecutor, RestrictedPythonExecutor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.memory import MemoryKeeper
from effectful_agents.handlers.policy import AskInTerminal, HumanInteraction
from effectful_agents.handlers.provision.litellm import LiteLLMConfigurer
from effectful_agents.operations.loop import completion
from effectful_agents.operations.world import fresh_id
from effectful_agents.runtime import Layers, Operation, interpretation
from effectful_agents.testing import SchemaModel, ScriptedModel
from tests.laws.operations import PERFORM, operations_of_the_package
from tests.laws.programs import PROGRAMS, Guide, ask, outcome
from tests.laws.registry import NEEDED, SAMPLES, Surroundings

PLACES = {cls: place for place, cls in enumerate(SAMPLES)}

each_handler = pytest.mark.parametrize("cls", SAMPLES, ids=lambda cls: cls.__name__)

ERRORS = [
    *(ValueError("x"), RuntimeError("x"), ConfigurationError("x"), LimitExceeded("turns", 1), NetworkError("x")),
    *(RefusalError("x"), KeyboardInterrupt(), SystemExit(1), GeneratorExit(), Suspended("x"), Cancelled("x")),
]
each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


def sample(cls: type, folder: Path) -> ObjectInterpretation[Any, Any]:
    return SAMPLES[cls](Surroundings(folder, ("reply",) * 9))


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda cls: cls.__name__)
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ObjectInterpretation[Any, Any]:
    """A sample that all errors pass through, one after the other: mypy is slow with what it has not seen before."""
    return SAMPLES[request.param](Surroundings(tmp_path_factory.mktemp("kept"), ("reply",) * 99))


def stack_with(cls: type, around: Surroundings) -> list[Any]:
    """The handlers that a call needs, and this one where it usually stands."""
    classes = sorted({*NEEDED, cls}, key=PLACES.__getitem__)
    return [SAMPLES[one](around) for one in classes]


FORWARDING_NOTHING = (
    *(
        ScriptedModel,
        SchemaModel,
        AgentLoop,
        LiteLLMConfigurer,
        BuiltinExecutor,
        RestrictedPythonExecutor,
        SQLitePersister,
    ),
    MemoryKeeper,
    *(AskInTerminal, HumanInteraction),
)
"""These answer some of their operations all alone."""


def raised_by(program: Callable[[], Any]) -> BaseException | None:
    """The exception that comes out of a program."""
    try:
        program()
    except BaseException as error:
        return error
    return None


@Operation.define
def greet(name: str) -> str:
    """An operation that no handler of the package knows."""
    return f"hello {name}"


def test_every_operation_of_the_package_is_tried():
    assert operations_of_the_package() == set(PERFORM)


# A handler changes nothing in a program that does not perform its operations


@each_handler
def test_operations_that_it_does_not_handle_go_past_it(cls, tmp_path):
    it = sample(cls, tmp_path)
    for operation, perform in PERFORM.items():
        if operation in it or operation in ON_ENTERING:
            continue
        seen: list[Any] = []
        answer = object()

        def note(*args: Any, _seen: list[Any] = seen, _answer: object = answer, **kwargs: Any) -> Any:
            _seen.append((args, kwargs))
            return _answer

        with handler({operation: note}):
            alone = perform()
            with handler(it):
                assert perform() is answer is alone
        without_it, under_it = seen
        assert under_it == without_it


@each_handler
def test_operations_of_others_are_performed_as_without_it(cls, tmp_path):
    def louder(name: str) -> str:
        return fwd().upper()

    def program() -> list[str]:
        with handler({greet: louder}):
            inside = greet("ann")
        return [greet("bob"), inside]

    expected = program()
    with handler(sample(cls, tmp_path)):
        assert program() == expected
    with handler({greet: louder}), handler(sample(cls, tmp_path)):
        assert greet("cid") == "HELLO CID"
    with handler(sample(cls, tmp_path)), handler({greet: louder}):
        assert greet("cid") == "HELLO CID"


@each_handler
def test_it_writes_nothing_while_it_is_not_asked(cls, tmp_path):
    around = Surroundings(tmp_path, ("reply",))
    made = SAMPLES[cls](around)
    there = set(tmp_path.iterdir())
    assert not there or cls is SQLitePersister  # which says at once where its file cannot be
    with handler(made):
        greet("ann")
    assert set(tmp_path.iterdir()) == there
    assert around.terminal.getvalue() == ""


# An error passes through, and leaves the stack as it was


ON_ENTERING = {fresh_id}
"""What is performed when a handler is installed: a journal asks for the name of its run."""


@each_handler
@each_error
def test_an_error_of_the_program_passes_through(cls, error, tmp_path):
    before = interpretation()
    with pytest.raises(type(error)) as raised, handler(sample(cls, tmp_path)):
        raise error
    assert raised.value is error
    assert interpretation() is before


@each_error
def test_an_error_of_an_operation_passes_through(kept, error):
    """Whatever it forwards to, or performs itself, raises."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    before = interpretation()
    for operation, perform in PERFORM.items():
        if operation not in kept:
            continue
        with handler(dict.fromkeys(PERFORM.keys() - ON_ENTERING, fail)), transaction(), handler(kept):
            inside = interpretation()
            assert raised_by(perform) is error or isinstance(kept, FORWARDING_NOTHING)
            assert interpretation() is inside
        assert interpretation() is before


@each_handler
@each_error
def test_an_error_of_the_model_passes_through_a_whole_stack(cls, error, tmp_path):
    guide, before = Guide(), interpretation()
    replies = ("Hello.", error, "Hello again.")
    with handler(Layers(*stack_with(cls, Surroundings(tmp_path, replies)))):
        inside = interpretation()
        guide.tell("Hi")
        remembered = json.dumps(guide.__history__)
        with pytest.raises(type(error)) as raised:
            guide.tell("Well?")
        assert interpretation() is inside
        assert json.dumps(guide.__history__) == remembered
        assert guide.tell("Still there?") == "Hello again."
    assert raised.value is error
    assert interpretation() is before


# Installing and leaving restores exactly what was there


@each_handler
def test_leaving_restores_what_was_there(cls, tmp_path):
    it = sample(cls, tmp_path)
    for outside in ({}, {greet: lambda name: "outside"}, sample(cls, tmp_path)):
        with handler(outside):
            before = interpretation()
            with handler(it):
                assert interpretation() is not before
                with handler(it):
                    pass
            assert interpretation() is before


@each_handler
def test_what_is_left_out_of_order_takes_only_itself_away(cls, tmp_path):
    around = Surroundings(tmp_path)
    programs = [name for name in PROGRAMS if PROGRAMS[name].replies is not None][:4]
    expected = [outcome(PROGRAMS[name], NEEDED) for name in programs]
    got = []
    for name in programs:
        before = interpretation()
        it = handler(SAMPLES[cls](around))
        model = ScriptedModel(*(PROGRAMS[name].replies or ()))
        others = handler(Layers(model, *(SAMPLES[one](around) for one in NEEDED[1:])))
        guide = Guide()
        it.__enter__()
        others.__enter__()
        it.__exit__(None, None, None)
        try:
            value = repr(PROGRAMS[name].run(guide))
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
        others.__exit__(None, None, None)
        assert interpretation() == before
        got.append((value, json.dumps(model.requests), json.dumps(guide.__history__)))
    assert got == [(one.value, one.requests, one.history) for one in expected]


@each_handler
def test_it_is_the_same_as_a_decorator(cls, tmp_path):
    it, before = sample(cls, tmp_path), interpretation()
    seen: list[Any] = []

    @handler(it)
    def program() -> str:
        seen.append(interpretation())
        return greet("ann")

    assert [program(), program()] == ["hello ann", "hello ann"]
    assert seen[0] is not before
    assert interpretation() is before


@each_handler
def test_an_instance_serves_one_program_after_the_other(cls, tmp_path):
    """What a handler keeps from one program must not change the next."""
    stack = stack_with(cls, Surroundings(tmp_path, ("Hello.",) * 9))
    model = next(one for one in stack if isinstance(one, ScriptedModel))
    for _ in range(3):
        with handler(Layers(*stack)):
            assert ask("?") == "Hello."
    first, *others = (json.dumps(request) for request in model.requests)
    assert others == [first, first]


@dataclasses.dataclass
class Interrupted(Exception):
    """What a model raises in the middle of a stream of work."""


@each_handler
def test_it_works_again_after_an_error(cls, tmp_path):
    stack = stack_with(cls, Surroundings(tmp_path, ("Hello.", Interrupted(), "Hello.")))
    values = []
    for _ in range(3):
        with contextlib.suppress(Interrupted), handler(Layers(*stack)):
            values.append(ask("?"))
    assert values == ["Hello.", "Hello."]
    assert completion not in interpretation()
