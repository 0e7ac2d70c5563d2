"""One workload with several options side by side, as the Switcher's pages show it."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.plan import in_turns
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.run_messages import RunStarted, RunWorkload
from gpu_studio.model.run_queue import QueueStep, RunQueue, step_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.pages import PageId
    from gpu_studio.model.studio import Studio

_numbers = itertools.count(1)


class _Steps:
    """A plan of all runs, in turns where they may, whatever becomes of each."""

    def __init__(self, runs: Sequence[Run], workload: WorkloadDescription) -> None:
        by_request = {run.request.run_id: run for run in runs}
        groups = in_turns([run.request for run in runs], workload)
        self._groups = iter([[by_request[one.run_id] for one in group] for group in groups])

    def next_step(self, runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        group = next(self._groups, None)
        return step_of(group) if group is not None else None


class ComparisonModel(QObject):
    """Runs of one workload that differ in their options.

    Args:
        studio: the application's state.
        workload: the name of the workload.
        page: the page of the Switcher that shows it.

    Signals:
        description_changed(): an engine described the workload.
        runs_changed(): a run began, reported or ended.
    """

    description_changed = Signal()
    runs_changed = Signal()

    def __init__(
        self, studio: Studio, workload: str, page: PageId, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._board, self._pcs = studio.session, studio.board, studio.pcs
        self._snippets, self._page = studio.snippets, page
        self.workload = workload
        self.runs: list[Run] = []
        self._again: Callable[[], None] | None = None
        self._queue = RunQueue(self)
        self._queue.event_received.connect(self._receive)
        self._queue.finished.connect(self._finish)
        self._session.engine_described.connect(self._on_engine_described)
        self._board.changed.connect(self.description_changed)

    @property
    def description(self) -> WorkloadDescription | None:
        """The workload's description; None without an engine, or if the engine does not know it."""
        engine = self._session.description
        known = engine.workloads if engine else ()
        return next((one for one in known if one.name == self.workload), None)

    @property
    def what_is_missing(self) -> str:
        """The reason why the engine cannot answer yet; empty if it can."""
        return self._session.what_is_missing

    @property
    def devices(self) -> tuple[DeviceRow, ...]:
        """The devices that it can run on, the first usable card before the CPUs."""
        workload = self.description
        if workload is None:
            return ()
        rows = (*self._board.usable_cards, *self._board.cpus)
        return tuple(row for row in rows if row.address and workload.runs_on(row.address))

    @property
    def is_running(self) -> bool:
        """Whether a run is in progress or waiting."""
        return self._queue.state.is_busy

    @property
    def can_start(self) -> bool:
        """Whether the workload can run here and no run of this page is active."""
        workload = self.description
        return workload is not None and not workload.skipped and not self.is_running

    def combinations(self, chosen: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
        """Return every combination of the chosen values; other options keep their defaults."""
        names = [name for name, values in chosen.items() if values]
        return [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(chosen[name] for name in names))
        ]

    def start(
        self,
        identity: str,
        size: int,
        budget_s: float,
        chosen: Mapping[str, Sequence[str]],
    ) -> None:
        """Run every combination of options on a device.

        Args:
            identity: the device.
            size: of the batch.
            budget_s: of each run.
            chosen: the values of each option.
        """
        workload, address = self.description, self._board.address_of(identity)
        if not self.can_start or workload is None or address is None:
            return
        self._again = partial(self.start, identity, size, budget_s, chosen)
        requests = [
            RunWorkload(
                run_id=f"{self.workload}-{next(_numbers)}",
                workload=self.workload,
                device=address,
                size=size,
                dtype="float32" if "float32" in workload.dtypes else workload.dtypes[0],
                budget_s=budget_s,
                options=options,
            )
            for options in self.combinations(chosen)
        ]
        self.runs = [Run(request) for request in requests]
        self._queue.start(_Steps(self.runs, workload), self._pcs.session_of(address))
        self.runs_changed.emit()

    def run_again(self) -> None:
        """Run the same combinations again; does nothing while one runs, or before the first."""
        if self._again is not None:
            self._again()

    def stop(self) -> None:
        """Stop the current run and drop the waiting ones."""
        self._queue.stop()

    def _receive(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._snippets.show(event.snippet, self._page)
        self.runs_changed.emit()

    def _finish(self) -> None:
        for run in self.runs:
            run.apply(EngineEnded(exit_code=None, stopped=True))
        self.runs_changed.emit()

    def _on_engine_described(self) -> None:
        # The session sends waiting requests to the new engine; nothing to repeat here.
        self.description_changed.emit()
        self.runs_changed.emit()
