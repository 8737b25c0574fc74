"""The names that a skill sees: those of the code around it, as they are at the moment of looking."""

from __future__ import annotations

import functools
import gc
import types
import weakref

from effectful_agents import NotHandled, Skill
from effectful_agents.types import LexicalContext, Scope

GLOBAL = "global"


def define(function):
    """Make a skill, as a decorator of the user's own."""
    return Skill.define(function)


def make_skill():
    enclosing = "enclosing"

    @Skill.define
    def ask(question: str, again: int = 2) -> str:
        """{question}"""
        raise NotHandled

    return ask, enclosing


# Lookup


def test_enclosing_names_and_those_of_the_module_are_seen():
    context = make_skill()[0].__context__
    assert context["enclosing"] == "enclosing"
    assert context["GLOBAL"] == "global"
    assert context["ask"] is not None
    assert "nothing" not in context
    assert context.get("nothing", 3) == 3


def test_inner_names_hide_outer_ones():
    GLOBAL = "hidden"

    def inner():
        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask

    context = inner().__context__
    assert context["GLOBAL"] == "hidden"
    assert dict(context.items())["GLOBAL"] == "hidden"
    assert GLOBAL == "hidden"


def test_it_is_a_mapping_that_is_one_with_itself():
    context = make_skill()[0].__context__
    assert len(context) == len(list(context)) == len(set(context)) == len(context.items())
    assert {name: context[name] for name in context} == dict(context.items())


def test_the_innermost_names_come_first():
    def outer():
        first = 1

        def inner():
            second = 2

            @Skill.define
            def ask() -> str:
                """Ask."""
                raise NotHandled

            return ask, second

        return inner()[0], first

    names = list(outer()[0].__context__)
    assert names.index("second") < names.index("first") < names.index("GLOBAL")


def test_a_value_is_that_of_the_moment():
    word = "one"

    @Skill.define
    def ask() -> str:
        """Ask."""
        raise NotHandled

    context = ask.__context__
    assert context["word"] == "one"
    word = "other"
    assert context["word"] == "other"
    later = "later"
    assert context["later"] == "later"
    del later
    assert "later" not in context
    assert word


def test_names_of_the_class_are_not_seen_as_in_python():
    class Bot:
        of_the_class = 1

        @Skill.define
        def ask(self) -> str:
            """Ask."""
            raise NotHandled

    assert "of_the_class" not in Bot.ask.__context__
    assert Bot.ask.__context__["Bot"] is Bot


def test_a_class_inside_of_a_class_sees_what_is_around_both():
    around = "around"

    class Outer:
        hidden = 1

        class Inner:
            @Skill.define
            def ask(self) -> str:
                """Ask."""
                raise NotHandled

    context = Outer.Inner.ask.__context__
    assert context["around"] == "around"
    assert "hidden" not in context
    assert around


def test_names_of_the_caller_are_not_seen():
    of_the_caller = "secret"
    skill, _ = make_skill()
    assert "of_the_caller" not in skill.__context__
    assert of_the_caller


def test_a_decorator_of_the_users_own_does_not_get_in_between():
    enclosing = "enclosing"

    def twice(function):
        in_the_decorator = 1

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        assert in_the_decorator
        return define(wrapper)

    @twice
    def ask() -> str:
        """Ask."""
        raise NotHandled

    assert ask.__context__["enclosing"] == "enclosing"
    assert "in_the_decorator" not in ask.__context__
    assert enclosing


def test_a_generic_skill_sees_what_is_around_it():
    enclosing = "enclosing"

    @Skill.define
    def pick[T](items: list[T]) -> T:
        """Pick."""
        raise NotHandled

    assert pick.__context__["enclosing"] == "enclosing"
    assert enclosing


def test_a_method_of_a_generic_class_sees_what_is_around_the_class():
    enclosing = "enclosing"

    class Box[T]:
        @Skill.define
        def pick(self, items: list[T]) -> T:
            """Pick."""
            raise NotHandled

    assert Box.pick.__context__["enclosing"] == "enclosing"
    assert enclosing


def test_each_call_of_a_recursive_function_has_its_own_names():
    def make(depth: int):
        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return [ask, *make(depth - 1)] if depth else [ask]

    assert [ask.__context__["depth"] for ask in make(3)] == [3, 2, 1, 0]


def test_a_function_that_is_made_elsewhere_sees_its_own_module():
    module = types.ModuleType("elsewhere")
    exec("NAME = 'elsewhere'\ndef ask() -> str:\n    '''Ask.'''", module.__dict__)
    here = "here"
    context = Skill.define(module.ask).__context__
    assert context["NAME"] == "elsewhere"
    assert "GLOBAL" not in context
    assert here


def test_a_callable_that_is_no_function_has_no_names_around_it():
    assert dict(LexicalContext.of(functools.partial(print)).items()).keys() <= {"__builtins__"}
    assert list(LexicalContext.of(len)) == list(LexicalContext.of(functools.partial(len)))


def test_a_captured_name_without_a_value_is_not_there():
    def make():
        @Skill.define
        def ask() -> str:
            """Ask."""
            return captured

        yield ask
        captured = "now"
        yield ask

    steps = make()
    ask = next(steps)
    assert "captured" not in ask.__context__
    next(steps)
    assert ask.__context__["captured"] == "now"


def test_what_will_be_bound_is_known():
    module = types.ModuleType("elsewhere")
    source = """
from effectful_agents import NotHandled, Skill
@Skill.define
def ask() -> str:
    '''{later} {Skill}'''
    raise NotHandled
known = [ask.__context__.will_bind(name) for name in ("ask", "later", "len", "never")]
later = 1
"""
    exec(compile(source, "elsewhere", "exec"), module.__dict__)
    # A builtin is no name that a prompt can show.
    assert module.known == [True, True, False, False]


def test_a_skill_does_not_outlive_its_scope():
    class Held: ...

    def make():
        held = Held()

        @Skill.define
        def ask() -> str:
            """Ask."""
            raise NotHandled

        return ask, weakref.ref(held)

    ask, held = make()
    assert held() is not None
    assert ask
    del ask
    gc.collect()
    assert held() is None


# The scope of one call


def test_arguments_come_before_what_is_around():
    skill, _ = make_skill()
    scope = Scope(skill, {"question": "?", "GLOBAL": "argument"}, skill.__context__)
    assert scope["question"] == "?"
    assert scope["GLOBAL"] == "argument"
    assert scope["enclosing"] == "enclosing"
    assert "nothing" not in scope
    assert list(scope)[:2] == ["question", "GLOBAL"]
    assert len(scope) == len(list(scope)) == len(set(scope))
    assert dict(scope.items())["GLOBAL"] == "argument"
