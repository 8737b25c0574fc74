"""The manifest of a stack tells rules apart that are made with other settings, and says none of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from effectful_agents import NotHandled, Skill, Tool
from effectful_agents.errors import ConfigurationError
from effectful_agents.handlers.policy import Governance, composition_manifest
from effectful_agents.handlers.policy.rules import ArgumentRule, HostRule, PathRule, Redaction, Rule, UntrustedContent
from effectful_agents.operations.policy import Disposition
from effectful_agents.types import Risk


@Tool.define
def look(amount: int, url: str = "") -> str:
    """Look."""
    return "x"


@Tool.define
def read() -> str:
    """Read."""
    return "x"


@Skill.define
def do(order: str) -> str:
    """{order}"""
    raise NotHandled


def few(arguments: object) -> bool:
    return True


def many(arguments: object) -> bool:
    return True


def at_most(amount: int) -> dict[str, object]:
    return {"properties": {"amount": {"maximum": amount}}}


KEY, OTHER_KEY = b"a secret of 16 bytes", b"another one of them."
PAIRS: dict[str, tuple[Callable[[], Rule], Callable[[], Rule]]] = {
    "hosts": (lambda: HostRule("a.example"), lambda: HostRule("b.example")),
    "arguments of hosts": (lambda: HostRule("a.example"), lambda: HostRule("a.example", arguments=["href"])),
    "schemes": (lambda: HostRule("a.example"), lambda: HostRule("a.example", schemes=["https"])),
    "folders": (lambda: PathRule("/srv/a"), lambda: PathRule("/srv/b")),
    "tools": (lambda: PathRule("/srv/a", tools=look, arguments=["url"]), lambda: PathRule("/srv/a", arguments=["url"])),
    "schema": (lambda: ArgumentRule(look, schema=at_most(1)), lambda: ArgumentRule(look, schema=at_most(2))),
    "predicate": (lambda: ArgumentRule(look, few, name="n"), lambda: ArgumentRule(look, many, name="n")),
    "sources": (lambda: UntrustedContent(look), lambda: UntrustedContent(read)),
    "risk": (lambda: UntrustedContent(look), lambda: UntrustedContent(look, risk=Risk.SOFT_WRITE)),
    "then": (lambda: UntrustedContent(look), lambda: UntrustedContent(look, then=Disposition.TERMINATE_RUN)),
    "restore": (lambda: Redaction(), lambda: Redaction(restore=True)),
    "kinds": (lambda: Redaction(), lambda: Redaction(["EMAIL"])),
    "patterns": (lambda: Redaction(patterns={"A": "a+"}), lambda: Redaction(patterns={"A": "b+"})),
    "key": (lambda: Redaction(), lambda: Redaction(key=KEY)),
    "functions": (lambda: Rule("r", ingress=few), lambda: Rule("r", ingress=many)),  # ty: ignore[invalid-argument-type]
}


def digest(rule: Rule) -> str:
    return composition_manifest(do, stack=Governance([rule])).digest


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_other_settings_are_another_digest_and_equal_ones_the_same(pair):
    one, other = pair
    assert digest(one()) == digest(one())
    assert digest(other()) == digest(other())
    assert digest(one()) != digest(other())


def test_another_reflector_is_another_digest():
    one, other = Governance(reflector=few), Governance(reflector=many)
    assert composition_manifest(stack=one).digest != composition_manifest(stack=other).digest


def test_a_secret_key_is_no_part_of_it():
    assert digest(Redaction(key=KEY)) == digest(Redaction(key=OTHER_KEY))


def test_what_a_rule_has_done_is_no_part_of_it():
    rule, redaction = UntrustedContent(look), Redaction()
    before = digest(rule), digest(redaction)
    rule.tool_result("x")
    redaction.ingress("ann@example.org")
    assert (digest(rule), digest(redaction)) == before


def test_no_setting_is_told():
    rules = [HostRule("a.example"), PathRule("/srv/a"), Redaction(patterns={"CUSTOMER": "7+"}, key=KEY)]
    told = composition_manifest(do, stack=Governance(rules)).to_json()
    for text in ("a.example", "/srv/a", "CUSTOMER", "7+", "a secret"):
        assert text not in told


def test_a_rule_of_the_programs_own_adds_what_it_is_made_with():
    class Below(Rule):
        def __init__(self, limit: int) -> None:
            super().__init__("below")
            self.limit = limit

        def ingress(self, text: str, /) -> None:
            return None

        def settings(self):
            return {**super().settings(), "limit": self.limit}

    assert digest(Below(1)) != digest(Below(2))
    assert digest(Below(1)) == digest(Below(1))


@pytest.mark.slow
def test_the_digest_is_the_same_in_another_process():
    script = (
        "from tests.handlers.policy.test_rule_settings import *\n"
        "print(*(digest(make()) for pair in PAIRS.values() for make in pair))"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert told == [digest(make()) for pair in PAIRS.values() for make in pair]


@pytest.mark.parametrize("what", [look, "do", few, None], ids=["tool", "text", "function", "nothing"])
def test_a_manifest_is_about_skills(what):
    with pytest.raises(ConfigurationError, match=r"made with `Skill\.define`"):
        composition_manifest(what)
