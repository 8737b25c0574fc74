"""Effectful's symbolic side, terms and what walks them, accepts our operations."""

import functools
from typing import Annotated

import pytest
from effectful.ops import semantics
from effectful.ops.semantics import evaluate, fvsof, typeof
from effectful.ops.syntax import Scoped, defdata, defop
from effectful.ops.types import Operation as EffectfulOperation
from effectful.ops.types import Term

from effectful_agents.runtime import NotHandled, Operation, fwd, handler


class Skill(Operation):
    pass


@Operation.define
def add(x: int, y: int) -> int:
    raise NotHandled


@Skill.define
def pick[T](x: bool, a: T, b: T) -> T:
    raise NotHandled


class Box:
    @Skill.define
    def get(self, index: int) -> str:
        raise NotHandled


def test_an_operation_without_a_rule_becomes_a_term_and_is_evaluated() -> None:
    term = add(1, add(2, 3))
    assert isinstance(term, Term)
    assert str(term) == "add(1, add(2, 3))"
    assert typeof(term) is int
    assert add in fvsof(term)
    assert evaluate(term, intp={add: lambda x, y: x + y}) == 6
    with handler({add: lambda x, y: x + y}):
        assert evaluate(term) == 6
    with handler({add: lambda x, y: fwd()}):
        assert str(evaluate(term)) == "add(1, add(2, 3))"


def test_types_are_inferred_through_type_variables() -> None:
    assert typeof(pick(True, 1, 2)) is int
    assert typeof(pick(True, "a", "b")) is str


def test_variables_are_renamed_and_bound() -> None:
    x, y = Operation.define(int, name="x"), defop(int, name="y")
    term = add(x(), y())
    assert {x, y, add} <= set(fvsof(term))
    assert str(term) == "add(x(), y())"
    with handler({x: lambda: 1, y: lambda: 2, add: lambda a, b: a + b}):
        assert evaluate(term) == 3
    assert str(evaluate(term, intp={x: y})) == "add(y(), y())"
    with handler({x: y}):
        assert str(evaluate(term)) == "add(y(), y())"


def test_a_binder_binds() -> None:
    @Operation.define
    def bind[S, T, A, B](
        variable: Annotated[EffectfulOperation[[], S], Scoped[A]], body: Annotated[T, Scoped[A | B]]
    ) -> Annotated[T, Scoped[B]]:
        raise NotHandled

    x = Operation.define(int, name="x")
    term = bind(x, add(x(), 1))
    assert x not in fvsof(term)
    assert add in fvsof(term)


def test_a_fresh_operation_has_no_rule() -> None:
    fresh = Skill.define(add)
    assert isinstance(fresh, Skill)
    assert fresh != add
    assert str(fresh(1, 2)) == "add(1, 2)"
    box = Box()
    for define in (Operation.define, defop):
        unbound = define(box.get)
        assert not hasattr(unbound, "__self__")
        assert str(unbound(1)) == "get(1)"
        assert str(unbound.__signature__) == "(index: int) -> str"


@pytest.mark.parametrize("through_class", [True, False])
def test_a_bound_operation_becomes_a_term_of_itself(through_class: bool) -> None:
    box = Box()
    term = Box.get(box, 1) if through_class else box.get(1)
    assert isinstance(term, Term)
    assert term.op == box.get
    assert tuple(term.args) == (1,)
    assert typeof(term) is str
    assert evaluate(term, intp={box.get: str}) == "1"
    assert evaluate(term, intp={Box.get: lambda self, index: f"{self is box} {index}"}) == "True 1"


def test_a_term_as_receiver_stays_an_argument() -> None:
    boxes = Operation.define(Box, name="boxes")

    class Boxed(Box):
        @Skill.define
        def open(self) -> int:
            return 5

    term = boxes()
    applied = Box.get(term, 1)
    assert isinstance(applied, Term)
    assert applied.op is Box.get
    box = Box()
    assert evaluate(applied, intp={boxes: lambda: box, Box.get: lambda self, index: self}) is box
    assert Box.get.__get__(term)(1).op is Box.get


def test_an_operation_of_a_class_of_terms_is_not_bound() -> None:
    @defdata.register(Box)
    class BoxTerm(Term[Box], Box):
        def __init__(self, kind: type, op: EffectfulOperation, *args: object, **kwargs: object) -> None:
            self._parts = op, args, kwargs

        @property
        def op(self) -> EffectfulOperation:
            return self._parts[0]

        @property
        def args(self) -> tuple:
            return self._parts[1]

        @property
        def kwargs(self) -> dict:
            return self._parts[2]

        @Skill.define
        def peek(self) -> int:
            return len(self.args)

    box = Operation.define(Box, name="box")()
    assert isinstance(box, BoxTerm)
    assert (box.peek(), BoxTerm.peek(box)) == (0, 0)
    assert box.get(1).op is Box.get
    assert Box.get(box, 1).op is Box.get


def test_apply_replaces_evaluation() -> None:
    @Operation.define
    def known(x: int) -> int:
        return x

    with handler({EffectfulOperation.__apply__: defdata}):
        term = known(known(1))
    assert str(term) == "known(known(1))"
    with semantics.handler({EffectfulOperation.__apply__: defdata}):
        assert str(known(1)) == "known(1)"


def test_other_things_that_may_be_defined() -> None:
    class Describer:
        @Operation.define
        @functools.singledispatchmethod
        def describe(self, value: object) -> str:
            return "something"

        @describe.register
        def _(self, value: int) -> str:
            return "a number"

    assert (Describer().describe(1), Describer().describe("")) == ("a number", "something")
    assert Operation.define(len)([1, 2]) == 2
    assert Operation.define(list[int], name="xs").__name__ == "xs"
    assert Operation.define(functools.partial(max, 1), name="at_least")(0) == 1
