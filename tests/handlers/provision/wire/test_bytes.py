"""What runs of the examples send, beside what clients written by hand send; and the page that says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.handlers.provision.http.server import Server
from tests.handlers.provision.wire import cost
from tests.handlers.provision.wire.examples import EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_brief_run_sends_hardly_more_than_a_client_written_by_hand(name: str, server: Server, tmp_path: Path):
    by_hand = cost.run_by_hand(server, name)
    ours = cost.run_example(server, name, tmp_path, "brief")
    assert ours.bytes <= 1.10 * by_hand.bytes


# What kind of thing `Annotated` is, which stands in the table of a scope, differs between versions of Python.
@pytest.mark.skipif(sys.version_info < (3, 13), reason="the page is made with Python 3.13")
@pytest.mark.local_model
def test_the_page_of_the_documentation_is_what_is_measured(server: Server, tmp_path: Path):
    text = cost.page(server, tmp_path)
    assert cost.PAGE.read_text(encoding="utf-8") == text, "run `uv run python -m tests.handlers.provision.wire.cost`"
