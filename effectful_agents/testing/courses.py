"""Random courses of events on a store: what the suites of several kinds of stores share. Needs hypothesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

__all__ = ["run_courses"]


def run_courses(course: type[Any], contract: Any, folder: Path) -> None:
    """Try random courses of events.

    Args:
        course: The state machine, made with the two that follow.
        contract: Opens the stores.
        folder: Where each course gets a folder of its own.
    """

    class Course(course):
        def __init__(self) -> None:
            super().__init__(contract, folder)

    run_state_machine_as_test(
        Course,
        settings=settings(
            max_examples=contract.examples,
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
