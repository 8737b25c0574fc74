"""What a list of runs says about each, kept up to date with every record, so that no journal is read for it."""

from __future__ import annotations

import dataclasses

from effectful_agents.messages import Usage
from effectful_agents.operations.recorded import reply_of
from effectful_agents.operations.records import Phase, Record, RunInfo, RunStatus

__all__ = ["RunSummary"]

_STEPS = frozenset({"model", "tool", "delegate", "record", "approval"})


@dataclasses.dataclass
class RunSummary:
    """What is known about a run without its journal.

    It has the fields of `RunInfo`, but for those that no record tells.

    >>> summary = RunSummary()
    >>> summary.add(Record(run_id="r", step_id="000001-tool", phase=Phase.ATTEMPTED, kind="tool", at=5.0))
    >>> summary.info("r").last_step, summary.steps, summary.created
    ('000001-tool', 1, 5.0)
    """

    status: RunStatus = RunStatus.INTERRUPTED
    skill: str = ""
    steps: int = 0
    last_step: str = ""
    created: float | None = None
    updated: float = 0.0
    error: str = ""
    models: dict[str, Usage] = dataclasses.field(default_factory=dict)
    """Tokens by the name of the model that replied."""

    def add(self, record: Record, *, is_new_step: bool = True) -> None:
        """Take the next record of the run.

        Args:
            record: The record.
            is_new_step: Whether it is the first of its step.
        """
        self.created = record.at if self.created is None else self.created
        self.updated = max(self.updated, record.at)
        if record.kind == "run":
            self._open_or_close(record)
        elif record.kind == "call" and "/" not in record.step_id:
            self.skill = self.skill or record.name
        elif record.kind in _STEPS:
            self.steps += is_new_step
            self.last_step = record.step_id
        if record.kind == "model" and record.phase is Phase.COMPLETED:
            model, usage = reply_of(record.body)
            self.models[model] = self.models.get(model, Usage()) + usage
        if "settled" in record.body and self.status in (RunStatus.UNCERTAIN, RunStatus.FAILED):
            # What had stopped it has been answered: it waits to be resumed.
            self.status, self.error = RunStatus.INTERRUPTED, ""

    def info(self, run_id: str, holder: str = "") -> RunInfo:
        """The run as one of a list.

        Args:
            run_id: The run.
            holder: Who has it now; empty where nobody does.
        """
        return RunInfo(
            run_id=run_id,
            status=RunStatus.RUNNING if holder else self.status,
            skill=self.skill,
            steps=self.steps,
            last_step=self.last_step,
            created=self.created or 0.0,
            updated=self.updated,
            holder=holder,
            error=self.error,
            usage=dataclasses.asdict(sum(self.models.values(), Usage())),
            models={model: dataclasses.asdict(usage) for model, usage in self.models.items()},
        )

    def _open_or_close(self, record: Record) -> None:
        closed = record.phase is Phase.COMPLETED
        status = str(record.body.get("status"))
        # A later version may know of more.
        self.status = RunStatus(status) if closed and status in set(RunStatus) else RunStatus.INTERRUPTED
        self.error = str(record.body.get("error") or "") if closed else ""
