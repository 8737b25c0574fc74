"""Defining skills: what is checked, and what a definition sees."""

from __future__ import annotations

import functools

import pytest

from effectful_agents import NotHandled, Skill, Tool, handler, harness
from effectful_agents.errors import ConfigurationError, DefinitionError, MissingHandlerError
from effectful_agents.testing import ScriptedModel

LIMIT = 3


def asked(model: ScriptedModel) -> str:
    """The last user message of the last request."""
    return next(m["content"] for m in reversed(model.requests[-1]["messages"]) if m["role"] == "user")


def test_a_skill_needs_a_docstring():
    with pytest.raises(DefinitionError, match="`nothing` has no docstring"):

        @Skill.define
        def nothing(text: str) -> str:
            raise NotHandled


@pytest.mark.parametrize("missing", ["parameter", "return"])
def test_every_annotation_is_needed(missing):
    def bare(text) -> str:
        """{text}"""

    def unreturned(text: str):
        """{text}"""

    with pytest.raises(DefinitionError, match="`text`" if missing == "parameter" else "`return`"):
        Skill.define(bare if missing == "parameter" else unreturned)


def test_a_field_that_names_nothing_is_refused_by_skill_and_field():
    with pytest.raises(DefinitionError, match=r"`\{thema\}` in the docstring of the skill `poem`"):

        @Skill.define
        def poem(theme: str) -> str:
            """Write about {thema}."""


@pytest.mark.parametrize("template", ["{}", "{0}", "{theme", "{theme:{width}}"])
def test_fields_without_a_name_open_braces_and_nested_fields_are_checked(template):
    def poem(theme: str) -> str: ...

    poem.__doc__ = template
    with pytest.raises(DefinitionError, match="poem"):
        Skill.define(poem)


def test_literal_braces_are_escaped():
    @Skill.define
    def poem(theme: str) -> str:
        """Write {{JSON}} about {theme}."""

    with handler(harness(eval_provider="none")), handler(ScriptedModel("ok")) as model:
        poem("rain")
    assert asked(model).endswith("Write {JSON} about rain.")


def test_examples_must_be_constant():
    with pytest.raises(DefinitionError, match="examples must be constant"):

        @Skill.define
        def add(a: int) -> int:
            """Add one.

            >>> add({a})
            2
            """


def test_constant_examples_are_part_of_the_prompt():
    @Skill.define
    def add(a: int) -> int:
        """Add one to {a}.

        >>> add(1)
        2
        """

    with handler(harness(eval_provider="none")), handler(ScriptedModel(2)) as model:
        assert add(1) == 2
    assert ">>> add(1)" in asked(model)


def test_fields_see_globals_enclosing_locals_and_what_is_bound_later():
    word = "one"

    @Skill.define
    def poem() -> str:
        """Write about {word}, {later} and {LIMIT}."""
        raise NotHandled

    later = "two"
    with handler(harness(eval_provider="none")), handler(ScriptedModel("a", "b")) as model:
        poem()
        assert asked(model).endswith("Write about one, two and 3.")
        word = "eleven"
        poem()
        assert asked(model).endswith("Write about eleven, two and 3.")
    assert (word, later) == ("eleven", "two")


def test_a_name_that_is_bound_later_but_not_yet_is_told_at_the_call():
    def make():
        @Skill.define
        def poem() -> str:
            """Write about {later}."""
            raise NotHandled

        if LIMIT > 100:
            later = 1
            return later
        return poem

    with handler(harness(eval_provider="none")), handler(ScriptedModel("a")), pytest.raises(Exception, match="later"):
        make()()


def test_a_decorator_of_the_users_own_keeps_the_scope():
    tone = "dry"

    def polite(function):
        return Skill.define(function)

    @polite
    def poem() -> str:
        """Write in a {tone} tone."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel("ok")) as model:
        poem()
    assert asked(model).endswith("in a dry tone.")
    assert tone


def test_a_skill_called_without_a_model_says_which_line_to_write():
    @Skill.define
    def poem() -> str:
        """Write."""
        raise NotHandled

    with pytest.raises(MissingHandlerError, match=r"with handler\(harness\("):
        poem()


def test_an_empty_body_is_never_run():
    @Skill.define
    def poem() -> str:
        """Write."""

    with pytest.raises(MissingHandlerError):
        poem()


def test_an_annotation_that_names_nothing_is_told_by_name():
    @Skill.define
    def poem(theme: Unknown) -> str:  # noqa: F821
        """Write about {theme}."""

    with (
        handler(harness(eval_provider="none")),
        handler(ScriptedModel("ok")),
        pytest.raises(DefinitionError, match="`Unknown`"),
    ):
        poem("x")


def test_forward_references_to_local_and_later_classes_resolve():
    @Skill.define
    def make() -> list[Local]:
        """Make one."""
        raise NotHandled

    import dataclasses

    @dataclasses.dataclass
    class Local:
        size: int

    with handler(harness(eval_provider="none")), handler(ScriptedModel([{"size": 2}])):
        assert make() == [Local(2)]


def test_a_parameter_may_have_any_name():
    @Skill.define
    def odd(skill: str, op: str, args: str, kwargs: str) -> str:
        """{skill} {op} {args} {kwargs}"""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel("ok")) as model:
        assert odd(skill="a", op="b", args="c", kwargs="d") == "ok"
    assert asked(model).endswith("a b c d")


def test_generic_skills_decode_what_the_arguments_say():
    @Skill.define
    def pick[T](items: list[T]) -> T:
        """Pick one of {items}."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel(2, "b")):
        assert pick([1, 2]) == 2
        assert pick(["a", "b"]) == "b"


def test_a_handler_of_one_skill_replaces_it():
    @Skill.define
    def poem(theme: str) -> str:
        """Write about {theme}."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel()), handler({poem: lambda theme: theme.upper()}):
        assert poem("rain") == "RAIN"


def test_wrong_arguments_are_a_type_error_before_a_model_is_asked():
    @Skill.define
    def poem(theme: str) -> str:
        """Write about {theme}."""
        raise NotHandled

    with handler(harness(eval_provider="none")), handler(ScriptedModel()), pytest.raises(TypeError, match="theme"):
        poem()


def test_a_term_as_argument_is_refused():
    from effectful_agents.runtime import Operation

    @Operation.define
    def free() -> str:
        raise NotHandled

    @Skill.define
    def poem(theme: str) -> str:
        """Write about {theme}."""
        raise NotHandled

    with (
        handler(harness(eval_provider="none")),
        handler(ScriptedModel()),
        pytest.raises(ConfigurationError, match="uninterpreted term"),
    ):
        poem(free())


def test_options_of_a_tool_are_kept_and_checked():
    from effectful_agents import Risk

    @Tool.define(risk=Risk.HARD_WRITE, effect="keyed", concurrent=True, timeout=2.5, name="mail")
    def send(to: str) -> None:
        """Send."""

    assert (send.risk, send.effect, send.idempotent, send.concurrent, send.timeout, send.__name__) == (
        Risk.HARD_WRITE,
        "keyed",
        False,
        True,
        2.5,
        "mail",
    )
    for options in ({"effect": "twice"}, {"effect": "once", "idempotent": True}, {"timeout": 0}):
        with pytest.raises(DefinitionError, match="other"):

            @Tool.define(**options)
            def other() -> None:
                """Do."""


def test_tools_stay_ordinary_functions():
    @Tool.define
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    @functools.lru_cache
    def cached(x: int) -> int:
        return double(x)

    assert double(2) == cached(2) == 4
    assert double.__doc__ == "Double."


@pytest.mark.parametrize("kind", [int, list[str], int | None])
def test_a_type_that_is_given_for_a_variable_is_the_type_of_the_answer(kind):
    @Skill.define
    def read[T](text: str, kind: type[T]) -> list[T]:
        """Read {text}."""
        raise NotHandled

    assert read.result_type("1", kind) == list[kind]
    assert read.result_type(text="1", kind=kind) == list[kind]
    assert "T" in str(read.result_type("1", kind=None))
