"""Operations as methods: what is bound, to what, and what of it is kept."""

import copy
import dataclasses
import functools
import inspect
import pickle
from typing import Any, Self

import pytest

from effectful_agents.runtime import Operation, can_forward, fwd, handler


class Skill(Operation):
    """A class of operations with options and something that it computes."""

    def __init__(self, default: Any, name: str | None = None, *, risk: str = "read") -> None:
        super().__init__(default, name)
        self.risk = risk

    @functools.cached_property
    def parameters(self) -> list[str]:
        return list(self.__signature__.parameters)


class Bot:
    def __init__(self, name: str) -> None:
        self.name = name

    @Skill.define
    def ask(self, question: str, times: int = 1) -> str:
        """Ask it."""
        return f"{self.name}: {question}" * times

    @classmethod
    @Skill.define
    def outside(cls, value: int) -> str:
        return f"{cls.__name__} {value}"

    @Skill.define
    @classmethod
    def inside(cls, value: int) -> str:
        return f"{cls.__name__} {value}"

    @staticmethod
    @Skill.define
    def static_outside(value: int) -> int:
        return value + 1

    @Skill.define
    @staticmethod
    def static_inside(value: int) -> int:
        return value + 1


class Louder(Bot):
    @Skill.define
    def ask(self, question: str, times: int = 1) -> str:
        return super().ask(question, times).upper()


class Heir(Bot):
    """Takes `ask` over as it is."""


class Slotted:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @Skill.define
    def ask(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str

    @Skill.define
    def ask(self) -> str:
        return self.name


@dataclasses.dataclass(slots=True)
class SlottedData:
    """`dataclass` makes this class a second time."""

    name: str

    @Skill.define
    def ask(self) -> str:
        return self.name

    @Skill.define
    @classmethod
    def make(cls, name: str) -> Self:
        return cls(name)


@Skill.define
def free(x: int) -> int:
    return x + 1


bob = Bot("bob")


def test_a_bound_operation_is_like_a_bound_method() -> None:
    bound = bob.ask
    assert type(bound) is Skill
    assert bound.__self__ is bob
    assert bound.__func__ is Bot.ask
    assert bound.__name__ == "ask"
    assert bound.__qualname__ == "Bot.ask"
    assert bound.__doc__ == "Ask it."
    assert bound.__module__ == __name__
    assert str(inspect.signature(bound)) == "(question: str, times: int = 1) -> str"
    assert bound("hi", times=2) == "bob: hibob: hi"
    assert bound.__get__(Bot("other")) is bound


def test_the_class_gives_the_operation_itself() -> None:
    assert Bot.ask is vars(Bot)["ask"]
    assert Heir.ask is Bot.ask
    assert not hasattr(Bot.ask, "__self__")
    assert not hasattr(Bot.ask, "__func__")


def test_bound_operations_are_equal_by_operation_and_instance() -> None:
    assert bob.ask is not bob.ask
    assert bob.ask == bob.ask
    assert len({bob.ask, bob.ask}) == 1
    assert bob.ask != Bot("bob").ask
    assert bob.ask != Bot.ask
    assert bob.ask != "ask"
    louder = Louder("l")
    assert louder.ask != super(Louder, louder).ask


def test_attributes_are_shared_and_computed_ones_are_not() -> None:
    class Local:
        @Skill.define
        def act(self, x: int) -> int:
            return x

    operation: Any = Skill.define(lambda self, x: x, name="act", risk="write")
    assert operation.parameters == ["self", "x"]
    assert operation.__get__(Local()).risk == "write"
    assert operation.__get__(Local()).parameters == ["x"]


def test_an_operation_made_from_another_computes_anew() -> None:
    first: Any = Skill.define(lambda x: x, name="first", risk="write")
    assert first.parameters == ["x"]
    second: Any = Skill.define(functools.wraps(first)(lambda x, y: x), name="second")
    assert "parameters" not in vars(second)


@pytest.mark.parametrize("make", [Bot, Louder, Heir, Slotted, Frozen, SlottedData])
def test_nothing_is_stored_in_the_instance(make: Any) -> None:
    instance = make("x")
    before = dict(getattr(instance, "__dict__", {}))
    instance.ask if make not in (Bot, Louder, Heir) else instance.ask("q")
    with handler({instance.ask: lambda *args: "stub"}):
        assert instance.ask("q") == "stub"
    assert dict(getattr(instance, "__dict__", {})) == before


@pytest.mark.parametrize("make", [Slotted, SlottedData])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_of_an_instance_has_operations_of_its_own(make: Any, duplicate: Any) -> None:
    original = make("a")
    assert original.ask() == "a"
    other = duplicate(original)
    other.name = "b"
    assert (original.ask(), other.ask()) == ("a", "b")
    with handler({original.ask: lambda: "stub"}):
        assert (original.ask(), other.ask()) == ("stub", "b")


def test_an_instance_may_contain_itself_and_much_else() -> None:
    class Node:
        def __init__(self) -> None:
            self.me = self
            self.many = list(range(200_000))
            self.act_later = self.act

        @Operation.define
        def act(self) -> int:
            return len(self.many)

    node = Node()
    assert node.act() == 200_000
    other = copy.deepcopy(node)
    assert other.act_later.__self__ is other
    assert other.me is other


def test_an_unhashable_instance_has_bound_operations() -> None:
    @dataclasses.dataclass
    class Unhashable:
        x: int

        @Operation.define
        def act(self) -> int:
            return self.x

    first, second = Unhashable(1), Unhashable(1)
    with handler({first.act: lambda: 10}):
        assert (first.act(), second.act()) == (10, 1)


def test_operations_copy_as_atoms() -> None:
    assert copy.copy(free) is free
    assert copy.deepcopy([free, Bot.ask, Skill.__apply__]) == [free, Bot.ask, Skill.__apply__]
    assert copy.copy(bob.ask) == bob.ask
    bound = copy.deepcopy(bob.ask)
    assert bound.__self__ is not bob
    assert bound("hi") == "bob: hi"


def test_operations_pickle_by_name() -> None:
    operations = [free, Bot.ask, Bot.static_inside, Bot.static_outside, Bot.inside, Skill.__apply__]
    for protocol in range(4, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(operations, protocol)) == operations
    assert pickle.loads(pickle.dumps(bob.ask))("hi") == "bob: hi"
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Operation.define(lambda: 1))


def test_super_performs_the_operation_of_the_base_class() -> None:
    louder = Louder("l")
    assert louder.ask("hi") == "L: HI"
    with handler({Bot.ask: lambda self, question, times: f"stub for {self.name}"}):
        assert louder.ask("hi") == "STUB FOR L"
        assert Heir("h").ask("hi", 1) == "stub for h"


@pytest.mark.parametrize(
    "ask", [lambda bot: bot.ask("hi"), lambda bot: Bot.ask(bot, "hi"), lambda bot: bot.ask(question="hi")]
)
def test_calling_through_the_class_is_calling_the_bound_operation(ask: Any) -> None:
    seen: list[Any] = []

    def apply(operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        seen.append(operation)
        return fwd()

    with handler({Skill.__apply__: apply}):
        assert ask(bob) == "bob: hi"
        assert seen == [bob.ask]
        with handler({bob.ask: lambda question: f"bound, {fwd()}"}):
            assert ask(bob) == "bound, bob: hi"
            assert ask(Bot("eve")) == "eve: hi"


def test_a_handler_of_the_classes_operation_answers_for_all_instances() -> None:
    eve = Bot("eve")
    with handler({Bot.ask: lambda self, question: f"{self.name}?"}):
        assert (bob.ask("hi"), eve.ask("hi"), Bot.ask(eve, "hi")) == ("bob?", "eve?", "eve?")
        with handler({Skill.__apply__: lambda operation, /, *args: "applied"}):
            assert bob.ask("hi") == "bob?"
            with handler({eve.ask: lambda question: "eve alone"}):
                assert (bob.ask("hi"), eve.ask("hi")) == ("bob?", "eve alone")


def test_a_bound_operations_handler_forwards_to_the_class_then_to_apply_then_to_the_default_rule() -> None:
    def own(question: str) -> tuple[str, bool, Any]:
        return "own", can_forward(), fwd()

    def of_class(self: Bot, question: str) -> tuple[str, bool, Any]:
        return "class", can_forward(), fwd()

    def apply(operation: Any, /, *args: Any) -> tuple[str, bool, Any]:
        return "apply", can_forward(), fwd()

    with handler({bob.ask: own}):
        assert bob.ask("hi") == ("own", False, "bob: hi")
        with handler({Skill.__apply__: apply}):
            assert bob.ask("hi") == ("own", True, ("apply", False, "bob: hi"))
            with handler({Bot.ask: of_class}):
                assert bob.ask("hi") == ("own", True, ("class", False, "bob: hi"))


def test_the_instance_may_be_changed_on_the_way_to_the_default_rule() -> None:
    with handler({Bot.ask: lambda self, question: fwd(Bot("eve"), question)}):
        assert bob.ask("hi") == "eve: hi"


def test_class_methods_work_in_both_orders_of_the_decorators() -> None:
    assert (Bot.outside(1), Heir.outside(1), bob.outside(1)) == ("Bot 1", "Heir 1", "Bot 1")
    assert (Bot.inside(1), Heir.inside(1), bob.inside(1)) == ("Bot 1", "Heir 1", "Bot 1")
    assert isinstance(Bot.inside, Skill)
    assert Bot.inside == bob.inside != Heir.inside
    with handler({Heir.inside: lambda value: "stub"}):
        assert (Bot.inside(1), Heir.inside(1)) == ("Bot 1", "stub")
    with handler(
        {vars(Bot)["outside"].__func__: lambda cls, value: cls, vars(Bot)["inside"].__func__: lambda cls, value: cls}
    ):
        assert (Bot.outside(1), Heir.outside(1)) == (Bot, Heir)
        assert (Bot.inside(1), Heir.inside(1)) == (Bot, Heir)


def test_static_methods_work_in_both_orders_of_the_decorators() -> None:
    for operation in (Bot.static_outside, Bot.static_inside, bob.static_outside, bob.static_inside):
        assert isinstance(operation, Skill)
        assert operation(1) == 2
        with handler({operation: lambda value: fwd() * 10}):
            assert operation(1) == 20


def test_a_dataclass_made_twice_keeps_its_operations() -> None:
    assert SlottedData("x").ask() == "x"
    assert SlottedData.ask(SlottedData("y")) == "y"
    assert SlottedData.make("z").ask() == "z"
    with handler({SlottedData.ask: lambda self: "stub"}):
        assert SlottedData("x").ask() == "stub"


def test_an_operation_used_as_an_attribute_elsewhere_is_still_itself() -> None:
    class Holder:
        operation = free

    seen = []
    with handler({Skill.__apply__: lambda operation, /, *args: seen.append((operation, args))}):
        free(1)
    assert seen == [(free, (1,))]
    assert Holder.operation is free


def test_an_operation_set_on_a_class_later_binds_too() -> None:
    class Late:
        name = "late"

    Late.act = Operation.define(lambda self: self.name, name="act")  # ty: ignore[unresolved-attribute]
    late: Any = Late()
    assert late.act() == "late"
    with handler({late.act: lambda: fwd() + "!"}):
        assert late.act() == "late!"


def test_a_signature_that_takes_the_instance_among_others_stays_whole() -> None:
    class Variadic:
        @Operation.define
        def act(*everything: Any) -> int:
            return len(everything)

    assert Variadic().act(1, 2) == 3
    assert str(inspect.signature(Variadic().act)) == "(*everything: Any) -> int"


def test_what_is_bound_of_an_alias_is_equal_to_what_is_bound_of_its_original():
    bot, other = Bot("a"), Bot("b")
    bound = Bot.ask.alias().__get__(bot)
    assert bound == bot.ask
    assert bot.ask == bound
    assert hash(bound) == hash(bot.ask)
    assert bound not in (other.ask, Bot.ask, Bot("a").ask)
    with handler({bot.ask: lambda question, times=1: "handled"}):
        assert bound("?") == "handled"
    with handler({Bot.ask: lambda self, question, times=1: self.name}):
        assert bound("?") == "a"
