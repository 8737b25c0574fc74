"""Limits for each minute, and budgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectful_agents.errors import Denied, ProviderError
from effectful_agents.harness.serving.gateway.clients import Client
from effectful_agents.harness.serving.gateway.spending import Ledger, Meter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(1, 5), st.lists(st.floats(0, 40), max_size=30))
def test_no_minute_has_more_requests_than_are_allowed(limit, waits):
    clock = Clock()
    meter = Meter(Client(name="ann", requests_per_minute=limit), Ledger(), clock)
    admitted: list[float] = []
    for wait in waits:
        clock.now += wait
        refused: list[ProviderError] = []
        try:
            meter.admit()
        except ProviderError as error:
            refused.append(error)
        else:
            admitted.append(clock.now)
        assert all(one.status == 429 and one.retryable and 0 < (one.retry_after or 0) <= 60 for one in refused)
    for at in admitted:
        assert sum(at - 60 < other <= at for other in admitted) <= limit


def test_a_client_that_waits_as_long_as_it_is_told_is_let_in():
    clock = Clock()
    meter = Meter(Client(name="ann", requests_per_minute=2), Ledger(), clock)
    meter.admit()
    clock.now = 10
    meter.admit()
    with pytest.raises(ProviderError) as caught:
        meter.admit()
    clock.now += caught.value.retry_after or 0
    assert clock.now == 60
    meter.admit()


def test_tokens_of_a_minute_are_limited():
    clock = Clock()
    meter = Meter(Client(name="ann", tokens_per_minute=100), Ledger(), clock)
    meter.admit_completion()
    meter.spend(150, 0.0)
    with pytest.raises(ProviderError, match="tokens_per_minute"):
        meter.admit_completion()
    clock.now = 60.5
    meter.admit_completion()


@pytest.mark.parametrize("limit", [{"budget_tokens": 100}, {"budget_usd": 0.01}])
def test_a_budget_ends_and_outlives_the_process(tmp_path, limit):
    client = Client(name="ann", **limit)
    for expected in (0, 60):
        ledger = Ledger(tmp_path / "spent.db")
        meter = Meter(client, ledger)
        assert ledger.spent("ann")[0] == expected
        meter.admit_completion()
        meter.spend(60, 0.006)
        ledger.close()
    ledger = Ledger(tmp_path / "spent.db")
    with pytest.raises(Denied, match="budget") as caught:
        Meter(client, ledger).admit_completion()
    assert caught.value.decision.reason_code == "budget"
    Meter(Client(name="bob", **limit), ledger).admit_completion()
    ledger.close()


def test_nothing_is_let_through_where_nothing_is_allowed():
    with pytest.raises(ProviderError):
        Meter(Client(name="ann", requests_per_minute=0), Ledger()).admit()
    with pytest.raises(Denied):
        Meter(Client(name="ann", budget_tokens=0), Ledger()).admit_completion()
