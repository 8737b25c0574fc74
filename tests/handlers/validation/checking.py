"""What the tests of type checkers share."""

from __future__ import annotations

from typing import Any

import pytest

from effectful_agents import handler
from effectful_agents.encoding.splicing import SplicedRegion
from effectful_agents.handlers.validation import TyTypeChecker
from effectful_agents.handlers.validation.mypy import MypyTypeChecker
from effectful_agents.operations import code
from effectful_agents.types import Scope

checkers = pytest.mark.parametrize(
    "checker", [TyTypeChecker, pytest.param(MypyTypeChecker, marks=pytest.mark.slow)], scope="module"
)


def report(installed: Any, region: SplicedRegion | tuple[str], *, lenient: bool = False) -> str:
    """What is said of the code; empty where it passes."""
    with handler(installed):
        try:
            code.type_check(*region, lenient=lenient)
        except TypeError as error:
            return str(error)
    return ""


def scope(skill: Any, *args: Any, **more: Any) -> dict[str, Any]:
    return {**Scope.of_call(skill, skill.__signature__.bind(*args)), **more}
