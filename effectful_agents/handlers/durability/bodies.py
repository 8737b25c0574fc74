"""The bodies of records as text, in the form in which every store of this package keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from effectful_agents.errors import JournalError
from effectful_agents.operations.records import Record

__all__ = ["body_of_text", "check_run", "text_of_body"]


def text_of_body(record: Record) -> str:
    r"""The body of a record as JSON of ASCII characters, in which lone surrogates survive any encoding.

    Raises:
        JournalError: The body is more than plain JSON.

    >>> from effectful_agents.operations.records import Phase
    >>> text_of_body(Record(run_id="r", step_id="", phase=Phase.COMPLETED, kind="run", body={"error": "\ud800"}))
    '{"error":"\\ud800"}'
    """
    try:
        return json.dumps(dict(record.body), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        step = record.step_id or "the run itself"
        raise JournalError(
            f"what happened in `{step}` cannot be written down, it is no plain JSON: {error}."
        ) from error


def body_of_text(text: str) -> dict[str, Any]:
    """The body that `text_of_body` wrote."""
    return json.loads(text)


def check_run(run_id: str, records: Sequence[Record]) -> None:
    """Refuse records of other runs than the one of a lease.

    Raises:
        JournalError: There is one.
    """
    other = next((record.run_id for record in records if record.run_id != run_id), None)
    if other is not None:
        raise JournalError(f"a lease of the run `{run_id}` writes no record of the run `{other}`.")
