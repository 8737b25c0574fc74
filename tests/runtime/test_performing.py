"""Performing operations: which handler answers, what `fwd` reaches, and how layers combine."""

import functools
import gc
import inspect
import types
import weakref
from typing import Any

import pytest
from effectful.ops import semantics
from effectful.ops.types import Operation as EffectfulOperation

from effectful_agents.runtime import (
    Interpretation,
    Layers,
    NotHandled,
    ObjectInterpretation,
    Operation,
    can_forward,
    coproduct,
    forward_through,
    fwd,
    handler,
    implements,
    interpretation,
)


class Tool(Operation):
    pass


class Skill(Tool):
    pass


@Operation.define
def add(x: int, y: int = 1) -> int:
    return x + y


@Operation.define
def now() -> int:
    return 7


@Skill.define
def skill(self: int, operation: int = 0, skill: int = 0) -> int:
    """Its parameters have the names that dispatch uses itself."""
    return self + operation + skill


HANDLERS = pytest.mark.parametrize("install", [handler, semantics.handler], ids=["ours", "effectful's"])


def test_one_fwd_for_all() -> None:
    assert fwd is semantics.fwd
    with pytest.raises(RuntimeError, match="handler"):
        fwd()


@HANDLERS
def test_fwd_without_arguments_passes_those_of_the_call_on(install: Any) -> None:
    with install({add: lambda x, y=1: fwd() * 10}), install({add: lambda x, y=1: fwd(x, y=100)}):
        assert add(1, 2) == 1010
        assert add(1, y=2) == 1010
    with install({now: lambda: fwd() + 1}), install({now: lambda: fwd() + 1}):
        assert now() == 9


def test_a_default_rule_has_nothing_to_forward_to() -> None:
    @Operation.define
    def lost() -> int:
        return fwd()

    with handler({lost: lambda: fwd()}), pytest.raises(RuntimeError, match="context of a handler"):
        lost()


@HANDLERS
def test_an_operation_may_handle_another(install: Any) -> None:
    @Operation.define
    def fixed() -> int:
        return 0

    with install({now: lambda: 1}), install({now: fixed}), install({fixed: lambda: fwd() + 5}):
        assert now() == 5


@HANDLERS
def test_fwd_may_be_handled_itself(install: Any) -> None:
    def handled(x: int) -> int:
        with install({fwd: lambda *args: args}):
            return fwd(x, 3)

    with install({add: handled}):
        assert add(1) == (1, 3)


def test_an_entry_of_the_interpretation_called_by_hand_forwards_to_nothing() -> None:
    with handler({add: lambda x: x if x > 5 else fwd()}):
        entry = interpretation()[add]
        assert entry(6) == 6
        with pytest.raises(RuntimeError, match="context of a handler"):
            entry(1)


@HANDLERS
def test_an_operation_without_parameters_is_forwarded_in_another_operations_handler(install: Any) -> None:
    with install({add: lambda x, y=1: now()}), install({now: lambda: fwd() + 1}):
        assert add(1) == 8


def test_parameters_may_have_any_names() -> None:
    def apply(operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        return fwd() + 100

    assert skill(self=1, operation=2, skill=3) == 6
    with handler({Skill.__apply__: apply}), handler({skill: lambda **kwargs: fwd() * 10}):
        assert skill(self=1, operation=2, skill=3) == 60
    with handler({Skill.__apply__: apply}), handler({Tool.__apply__: apply}):
        assert skill(self=1, operation=2, skill=3) == 206


def test_apply_of_each_class_is_tried_from_the_most_special() -> None:
    def tagged(tag: str) -> Any:
        return lambda operation, /, *args: [tag, can_forward(), *_listed(fwd())]

    stack: Interpretation = {
        EffectfulOperation.__apply__: tagged("effectful"),
        Operation.__apply__: tagged("operation"),
        Skill.__apply__: tagged("skill"),
        Tool.__apply__: tagged("tool"),
    }
    with handler(stack):
        assert skill(1) == ["skill", True, "tool", True, "operation", True, "effectful", False, 1]
        assert add(1) == ["operation", True, "effectful", False, 2]
    with handler({Tool.__apply__: tagged("tool")}):
        assert skill(1) == ["tool", False, 1]
        assert add(1) == 2


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def test_apply_may_be_performed_and_may_forward_another_operation() -> None:
    @Skill.define
    def other(x: int) -> int:
        return x * 100

    assert Skill.__apply__(skill, 1) == 1
    with handler({Skill.__apply__: lambda operation, /, *args: fwd(other, *args)}):
        assert Skill.__apply__(skill, 1) == 100
        assert skill(1) == 100


@HANDLERS
def test_can_forward_tells_a_further_handler_from_the_default_rule(install: Any) -> None:
    assert can_forward() is False
    seen: list[bool] = []

    def look(x: int, y: int = 1) -> int:
        seen.append(can_forward())
        return fwd()

    @Operation.define
    def plain(x: int) -> int:
        seen.append(can_forward())
        return x

    with install({add: look}), install({add: look}), install({plain: look}):
        add(1)
        assert seen == [True, False]
        plain(1)
    assert seen == [True, False, False, False]


@pytest.mark.parametrize("outer", [handler, semantics.handler])
@pytest.mark.parametrize("inner", [handler, semantics.handler])
@pytest.mark.parametrize("combine", [coproduct, semantics.coproduct])
@pytest.mark.parametrize("kind", [Operation, EffectfulOperation])
def test_can_forward_in_mixed_stacks(outer: Any, inner: Any, combine: Any, kind: Any) -> None:
    operation = kind.define(lambda x: x, name="operation")
    seen: list[bool] = []

    def look(x: int) -> int:
        seen.append(can_forward())
        return fwd()

    one = {operation: look}
    with outer(combine(one, one)), inner(combine(one, one)):
        assert operation(1) == 1
    assert seen == [True, True, True, False]


def test_layers_are_as_if_installed_one_after_the_other() -> None:
    def tagged(tag: str) -> Any:
        return lambda *args: [tag, *_listed(fwd())]

    a: Interpretation = {add: tagged("a"), now: tagged("a")}
    b: Interpretation = {now: tagged("b")}
    c: Interpretation = {add: tagged("c"), now: tagged("c")}
    layers = Layers(a, Layers(b), c)
    assert layers.layers == (a, b, c)
    assert repr(Layers({}, {})) == "Layers({}, {})"
    assert set(layers) == {add, now}
    assert len(layers) == 2
    assert isinstance(layers, Interpretation)
    assert layers[now].__signature__ == inspect.signature(c[now])
    with pytest.raises(KeyError):
        layers[skill]
    with handler(a), handler(b), handler(c):
        expected = add(1), now()
    assert expected == (["c", "a", 2], ["c", "b", "a", 7])
    for install in (handler, semantics.handler):
        with install(layers):
            assert (add(1), now()) == expected
        for combine in (coproduct, semantics.coproduct):
            with install(combine(a, Layers(b, c))):
                assert (add(1), now()) == expected
            with install(combine(Layers(a, b), c)), install({now: tagged("d")}):
                assert now() == ["d", "c", "b", "a", 7]


def test_the_current_interpretation_may_be_installed_again() -> None:
    with handler({add: lambda x: fwd() * 10}):
        here = interpretation()
        with handler(here):
            assert add(1) == 200
    with handler(here):
        assert add(1) == 20


def test_a_coproduct_wrapped_once_more_forwards_past_itself() -> None:
    both = semantics.coproduct({add: lambda x: fwd() * 10}, {add: lambda x: fwd() + 1})

    @functools.wraps(both[add])
    def wrapped(*args: Any) -> Any:
        return both[add](*args)

    with handler({add: lambda x: fwd() * 1000}), handler({add: wrapped}):
        assert add(1) == 20001


def test_a_function_that_seems_wrapped_without_end_is_a_function() -> None:
    class Endless:
        def __call__(self, x: int) -> int:
            return 5

        @property
        def __wrapped__(self) -> "Endless":
            return Endless()

    with handler({add: Endless()}):
        assert add(1) == 5


def test_object_interpretations_and_their_subclasses() -> None:
    class Counter(ObjectInterpretation):
        def __init__(self) -> None:
            self.calls = 0

        @implements(add)
        def count(self, x: int, y: int = 1) -> int:
            self.calls += 1
            return fwd()

    class Loud(Counter):
        @implements(now)
        def late(self) -> int:
            return 23

    counter = Loud()
    with handler(counter) as given:
        assert given is counter
        assert (add(1), now()) == (2, 23)
    assert counter.calls == 1


@pytest.mark.parametrize("wrong", [3, "text", Tool, ObjectInterpretation, None, [1]])
def test_only_mappings_are_installed(wrong: Any) -> None:
    with pytest.raises(TypeError, match="mapping from operations to functions"):
        handler(wrong)
    with pytest.raises(TypeError, match="mapping from operations to functions"):
        Layers(wrong)


def test_an_exception_passes_through_and_leaves_the_stack_as_it_was() -> None:
    def fail(x: int) -> int:
        raise LookupError

    def recover(x: int) -> int:
        try:
            return fwd()
        except LookupError:
            return fwd(x) if can_forward() and x > 100 else -1

    before = interpretation()
    with handler({add: fail}), handler({add: recover}):
        assert add(1) == -1
    with handler({add: fail}), pytest.raises(LookupError):
        add(1)
    assert interpretation() is before
    assert add(1) == 2
    assert can_forward() is False


def test_a_handler_may_forward_more_than_once_and_perform_its_own_operation() -> None:
    with handler({add: lambda x, y=1: fwd() + fwd() + (add(x - 1, y) if x > 1 else 0)}):
        assert add(2, 1) == 3 + 3 + 2 + 2


def test_a_handler_installed_while_handling_is_seen_by_what_is_forwarded() -> None:
    def outer(x: int) -> Any:
        return now()

    def inner(x: int) -> Any:
        with handler({now: lambda: 99}):
            return fwd()

    with handler({add: outer}), handler({add: inner}):
        assert add(1) == 99


@pytest.mark.parametrize("kind", [Operation, EffectfulOperation], ids=["ours", "effectful's"])
@pytest.mark.parametrize("outer", [handler, semantics.handler], ids=["ours", "effectful's"])
@HANDLERS
def test_what_is_forwarded_may_go_through_more_functions_first(install: Any, outer: Any, kind: Any) -> None:
    """As if their handlers stood right outside of the one that forwards."""

    @kind.define
    def show(text: str) -> str:
        return f"({text})"

    def first(text: str) -> str:
        return "1" + fwd(text + "a")

    def second(text: str) -> str:
        return "2" + fwd()

    chain: Any = Layers({show: second}, {show: first})[show]
    through = {show: lambda text: forward_through((first, second), text + "!")}
    with install(through):
        assert show("x") == "12(x!a)"
    with outer({show: lambda text: "o" + fwd()}), install(through):
        assert show("x") == "12o(x!a)"
        with handler({show: lambda text: "i" + fwd()}):
            assert show("x") == "i12o(x!a)"
    with outer({show: lambda text: "o" + fwd()}), install({show: lambda text: forward_through((chain,), text)}):
        assert show("x") == "12o(xa)"


def test_what_is_forwarded_through_may_end_there_or_raise() -> None:
    def fail(x: int, y: int) -> int:
        raise KeyError(x)

    def tried(x: int, y: int) -> int:
        with pytest.raises(KeyError):
            forward_through((fail,), x, y)
        return fwd() + forward_through((lambda x, y: 100,), x, y)

    with handler({add: tried}):
        assert add(1, 2) == 103
    with pytest.raises(RuntimeError, match="handler"):
        forward_through((lambda x: fwd(),), 1)


def test_an_interpretation_replaced_as_a_whole_may_hold_plain_functions_or_chains() -> None:
    from effectful.internals.runtime import interpreter

    with handler({add: lambda x, y: fwd() * 10}):
        chains = interpretation()
        with interpreter({add: lambda x, y: fwd() + 1}):
            assert add(1, 2) == 4
            assert now() == 7
        with interpreter(types.MappingProxyType(dict(chains))):
            assert add(1, 2) == 30
            with handler({add: lambda x, y: fwd() + 1}):
                assert add(1, 2) == 31
        assert add(1, 2) == 30


def test_not_handled_gives_a_term() -> None:
    @Operation.define
    def unknown(x: int) -> int:
        raise NotHandled

    with handler({unknown: lambda x: fwd() if x < 5 else x}):
        assert str(unknown(1)) == "unknown(1)"
        assert unknown(5) == 5


def test_installing_keeps_no_memory() -> None:
    class Held(ObjectInterpretation):
        @implements(add)
        def add(self, x: int) -> int:
            return fwd()

    gc.disable()
    try:
        held = Held()
        with handler(Layers(held, held)):
            assert add(1) == 2
        gone = weakref.ref(held)
        del held
        assert gone() is None, "nothing keeps what was installed, and no cycle waits for the collector"
    finally:
        gc.enable()
