"""A checker of each kind, kept for a module of tests: what it has seen makes the next check fast."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def installed(checker):
    return checker()
