"""The battery of the profile "governance": docs/profiles/governance.md."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import NotHandled, Risk, Skill, Tool, handler
from effectful_agents.errors import GovernanceRefused
from effectful_agents.handlers.durability import HistoryBuilder, TenacityRetryer
from effectful_agents.handlers.legibility import LexicalToolExtractor
from effectful_agents.handlers.loop import AgentLoop
from effectful_agents.handlers.policy import DecisionLog, Governance, composition_manifest
from effectful_agents.handlers.policy.rules import ArgumentRule, Refuse, Rule
from effectful_agents.runtime import Layers
from effectful_agents.testing import ScriptedModel, calls
from tests.profiles.ways import WAYS

PAID: list[tuple[str, int]] = []


@Tool.define(risk=Risk.HARD_WRITE)
def pay(to: str, amount: int) -> str:
    """Pay an amount in euros."""
    PAID.append((to, amount))
    return "paid"


@Skill.define
def clerk(request: str) -> str:
    """{request}"""
    raise NotHandled


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


AT_MOST = ArgumentRule(pay, schema={"properties": {"amount": {"maximum": 100}}}, name="at most 100")
POLITE = Rule("polite", ingress=lambda text: text.replace("idiot", "colleague"))
DRAFTS = Rule("no account numbers", egress=lambda text: Refuse("No account numbers.") if "IBAN" in text else None)


def profile(*rules: Rule, **options: Any) -> Layers:
    return Layers(
        AgentLoop(turns=4, system_prompt="brief"),
        LexicalToolExtractor(),
        HistoryBuilder(),
        TenacityRetryer(),
        Governance(rules, **options),
    )


def test_the_manifest_has_the_stages_and_the_rules_in_order():
    manifest = composition_manifest(clerk, stack=profile(AT_MOST, POLITE, DRAFTS))
    assert manifest.stages == ("governance.egress", "governance.ingress", "governance.tool_call")
    assert [row["precondition"] for row in manifest.preconditions] == ["at most 100", "polite", "no account numbers"]
    assert manifest.enforcement == "decided by Governance"
    assert manifest.digest == composition_manifest(clerk, stack=profile(AT_MOST, POLITE, DRAFTS)).digest
    assert manifest.digest != composition_manifest(clerk, stack=profile(POLITE, AT_MOST, DRAFTS)).digest


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_call_names_its_rule_and_does_not_happen(way):
    model = ScriptedModel(calls("pay", to="Ann", amount=500), "no")
    with handler(model), handler(profile(AT_MOST)):
        assert WAYS[way](clerk, "Pay Ann.") == "no"
    assert PAID == []
    assert "rule: at most 100" in model.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("way", WAYS)
def test_an_amended_text_is_what_the_model_is_asked(way):
    model = ScriptedModel("ok")
    with handler(model), handler(profile(POLITE)):
        WAYS[way](clerk, "You idiot.")
    assert model.requests[0]["messages"][-1]["content"] == "You colleague."


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_draft_does_not_leave(way):
    log = DecisionLog()
    with handler(ScriptedModel("Your IBAN is 7.")), handler(profile(DRAFTS, decisions=log.add)):
        with pytest.raises(GovernanceRefused) as refused:
            WAYS[way](clerk, "?")
    assert refused.value.rule == "no account numbers"
    assert [(record.stage, record.decision.rule) for record in log.records if record.stage != "effect"] == [
        ("egress", "no account numbers")
    ]


# Negative controls


@pytest.mark.parametrize("way", WAYS)
def test_without_the_rule_each_of_these_happens(way):
    model = ScriptedModel(calls("pay", to="Ann", amount=500), "Your IBAN is 7.")
    with handler(model), handler(profile()):
        assert WAYS[way](clerk, "You idiot.") == "Your IBAN is 7."
    assert PAID == [("Ann", 500)]
    assert model.requests[0]["messages"][-1]["content"] == "You idiot."


def test_a_call_that_the_rule_allows_is_made():
    with handler(ScriptedModel(calls("pay", to="Ann", amount=100), "ok")), handler(profile(AT_MOST, POLITE, DRAFTS)):
        clerk("Pay Ann.")
    assert PAID == [("Ann", 100)]


def test_a_reflector_that_raises_is_no_refusal():
    log = DecisionLog()
    with handler(ScriptedModel("fine")), handler(profile(reflector=lambda value: 1 / 0, decisions=log.add)):
        assert clerk("?") == "fine"
    assert log.records[-1].decision.reason_code == "reflector_error"
