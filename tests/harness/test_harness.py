"""`harness(...)` as a value: installed in every way, more than once, inside itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping

import pytest
from effectful.ops.semantics import handler as librarys_handler  # noqa: TID251 - the harness works with it too

from effectful_agents import NotHandled, Skill, acall, coproduct, fwd, handler, harness
from effectful_agents.errors import MissingHandlerError, ResultDecodingError
from effectful_agents.operations.loop import call_agent, completion
from effectful_agents.runtime import interpretation
from effectful_agents.testing import ScriptedModel


@Skill.define
def greet(name: str) -> str:
    """Greet {name}."""
    raise NotHandled


def is_uninstalled() -> bool:
    try:
        greet("Ann")
    except MissingHandlerError:
        return True
    return False


# Ways to install it


def test_making_one_installs_nothing():
    before = interpretation()
    harness()
    assert interpretation() is before
    assert is_uninstalled()


def test_it_is_an_interpretation():
    made = harness()
    assert isinstance(made, Mapping)
    assert {call_agent, completion} <= set(made)
    assert len(made) == len(list(made))


def test_it_goes_into_our_handler():
    with handler(harness()), handler(ScriptedModel("Hello!")):
        assert greet("Ann") == "Hello!"
    assert is_uninstalled()


def test_it_goes_into_the_librarys_own_handler():
    with librarys_handler(harness()), librarys_handler(ScriptedModel("Hello!", "Hi!")):
        assert greet("Ann") == "Hello!"
        with handler(harness()):
            assert greet("Ann") == "Hi!"
    assert is_uninstalled()


def test_it_is_a_context_manager_that_gives_itself():
    made = harness()
    with made as given, handler(ScriptedModel("Hello!")):
        assert given is made
        assert greet("Ann") == "Hello!"
    assert is_uninstalled()


def test_it_leaves_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), harness():
        raise ZeroDivisionError
    assert is_uninstalled()


def test_it_decorates_a_function():
    @harness()
    @handler(ScriptedModel("Hello!", "Hi!"))
    def program(name: str) -> str:
        """Say hello."""
        return greet(name)

    assert (program.__name__, program.__doc__) == ("program", "Say hello.")
    assert [program("Ann"), program(name="Bob")] == ["Hello!", "Hi!"]
    assert is_uninstalled()


def test_it_decorates_a_coroutine_function():
    @harness()
    async def program() -> str:
        with handler(ScriptedModel("Hello!")):
            return await acall(greet, "Ann")

    async def main() -> tuple[str, bool]:
        waiting = program()
        outside = is_uninstalled()
        return await waiting, outside

    assert asyncio.run(main()) == ("Hello!", True)


def test_it_does_not_decorate_a_generator_function():
    def program():
        yield greet("Ann")

    with pytest.raises(TypeError, match="generator function"):
        harness()(program)


def test_it_does_not_decorate_an_asynchronous_generator_function():
    async def program():
        yield greet("Ann")

    with pytest.raises(TypeError, match="generator function"):
        harness()(program)


def test_it_combines_with_other_interpretations():
    both = coproduct(harness(), ScriptedModel("Hello!"))
    with handler(both):
        assert greet("Ann") == "Hello!"


# More than once


def test_it_can_be_installed_again():
    made = harness()
    for reply in ("one", "two"):
        with made, handler(ScriptedModel(reply)):
            assert greet("Ann") == reply
        with handler(made), handler(ScriptedModel(reply)):
            assert greet("Ann") == reply
    assert is_uninstalled()


def test_it_can_be_installed_inside_itself():
    made = harness()
    with made, handler(ScriptedModel("one", "two", "three")) as model:
        with made:
            with made:
                assert greet("Ann") == "one"
            assert greet("Ann") == "two"
        assert greet("Ann") == "three"
    assert is_uninstalled()
    assert len(model.requests) == 3


def test_each_task_has_its_own_installation():
    made = harness()

    async def one(reply: str) -> str:
        with made, handler(ScriptedModel(reply)):
            return await acall(greet, "Ann")

    async def main() -> list[str]:
        return await asyncio.gather(*(one(str(number)) for number in range(5)))

    assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]
    assert is_uninstalled()


def test_attempts_do_not_multiply_when_harnesses_are_nested():
    @Skill.define
    def count() -> int:
        """Count."""
        raise NotHandled

    model = ScriptedModel(*["no number"] * 20)
    with harness(num_retries=3), harness(num_retries=2), handler(model), pytest.raises(ResultDecodingError):
        count()
    assert len(model.requests) == 2


def test_an_inner_harness_takes_another_model():
    with handler(ScriptedModel("one", "two", "three")) as model, harness(model="outer", temperature=0.2):
        greet("Ann")
        with harness(model="inner"):
            greet("Ann")
        greet("Ann")
    assert [request["model"] for request in model.requests] == ["outer", "inner", "outer"]


def test_what_is_installed_inside_sees_the_whole_call():
    seen = []

    def watch(skill, /, *args, **kwargs):
        seen.append((skill, args, kwargs))
        return fwd()

    with harness(), handler(ScriptedModel("Hello!")), handler({call_agent: watch}):
        greet(name="Ann")
    assert seen == [(greet, (), {"name": "Ann"})]


# The package and the function


def test_the_package_is_the_function():
    import effectful_agents.harness as package
    from effectful_agents.harness import harness as function

    assert harness is not None
    with package(), handler(ScriptedModel("Hello!")):
        assert greet("Ann") == "Hello!"
    with function(), handler(ScriptedModel("Hello!")):
        assert greet("Ann") == "Hello!"


@pytest.mark.parametrize(
    "imports",
    [
        "from effectful_agents import harness",
        "import effectful_agents.harness; from effectful_agents import harness",
        "from effectful_agents.harness import harness; import effectful_agents.harness.stack",
        "import effectful_agents.harness.launcher; from effectful_agents import harness",
        "from effectful_agents.harness.stack import Harness; from effectful_agents import harness",
    ],
)
def test_a_harness_is_made_in_whatever_order_it_was_imported(imports):
    code = f"""
{imports}
from effectful_agents import NotHandled, Skill, handler
from effectful_agents.testing import ScriptedModel
@Skill.define
def greet(name: str) -> str:
    '''Greet {{name}}.'''
    raise NotHandled
with handler(harness()), handler(ScriptedModel("Hello!")):
    print(greet("Ann"))
import effectful_agents
print(type(effectful_agents.harness()).__name__)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Hello!\nHarness\n"


def test_no_retries_means_none_on_the_way_either():
    model = ScriptedModel("ok", "ok")
    with handler(model):
        for number in (0, 3):
            with handler(harness(num_retries=number)):
                completion(messages=[{"role": "user", "content": "?"}])
    assert [request["num_retries"] for request in model.requests] == [0, 3]


def test_what_a_local_model_is_loaded_with_is_no_setting_of_a_request():
    model = ScriptedModel("ok")
    with handler(model), handler(harness(model="local/smollm2", context=2048, temperature=0)):
        completion(messages=[{"role": "user", "content": "?"}])
    assert model.requests[0]["temperature"] == 0
    assert "context" not in model.requests[0]
