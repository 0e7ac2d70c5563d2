"""Replays a recording as if its runs ran now, and makes one of the runs of this window."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject

from gpu_studio.core.benchmark.recording import (
    RecordedPc,
    header_of,
    is_recordable,
    recording_of,
    system_name,
)
from gpu_studio.core.device_name import is_cpu, name_at
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload  # noqa: TC001  # msgspec reads them
from gpu_studio.core.texts import listed
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.run_queue import RunSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.engine import Engine, EngineEnvironment
    from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio

RECORDING_ENDING = ".jsonl"
OWN_PACE = 1.0
AT_ONCE = math.inf


class _FixedRuns(msgspec.Struct, frozen=True):
    """A `plan.RunPlan` of a fixed list of runs."""

    runs: tuple[RunWorkload, ...]

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the runs, with ids counted from ``first_number``."""
        return [
            msgspec.structs.replace(run, run_id=f"run-{number}")
            for number, run in enumerate(self.runs, first_number)
        ]

    def next_requests(
        self, results: Sequence[RunFinished], first_number: int = 1
    ) -> list[RunWorkload]:
        """Return no further runs: all are known from the start."""
        return []


class RecordingPlayer(QObject):
    """Replays a recording."""

    def __init__(self, studio: Studio, benchmark: Benchmark, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._benchmark = studio, benchmark
        self._recording: Recording | None = None
        self._speed = OWN_PACE
        self._session = EngineSession(self._engine, self)
        studio.closing.connect(self._session.close)

    @property
    def can_play(self) -> bool:
        """Whether nothing else runs."""
        return self._studio.recorded_factory is not None and not self._benchmark.state.is_busy

    def play(self, recording: Recording, speed: float = OWN_PACE) -> None:
        """Replay all runs of a recording, labeled as recorded; does nothing during runs.

        Args:
            recording: read from a file.
            speed: a factor of the original speed; `AT_ONCE` never waits.
        """
        if not self.can_play:
            return
        self._recording, self._speed = recording, speed
        self._session.restart()
        names = {run.request.device: run.device_name for run in recording.runs}
        self._benchmark.start(
            _FixedRuns(tuple(run.request for run in recording.runs)),
            RunSource(self._session, recording.label, names),
        )

    def _engine(self, _environment: EngineEnvironment) -> Engine:
        """Return an engine that replays the recording."""
        factory = self._studio.recorded_factory
        assert factory is not None
        assert self._recording is not None
        return factory(self._recording, self._speed)


def recording_from(
    studio: Studio,
    runs: Sequence[Run],
    recorded_at: str,
    frames: Mapping[str, Sequence[FramesOpened | FrameReady]] | None = None,
) -> bytes:
    """Return the runs of this window as the contents of a recording.

    Args:
        studio: its engine and devices are named in the file.
        runs: replayed runs and runs that never began are left out.
        recorded_at: now, in ISO 8601.
        frames: the frames to keep (`core.race.side.kept_frames`); None leaves all out.

    Raises:
        StudioError: there are no runs to record.
    """
    ours = [run for run in runs if is_recordable(run)]
    pcs = list(dict.fromkeys(studio.pcs.of(run.request.device) for run in ours))
    described = next((pc.session.description for pc in pcs), None)
    if studio.adapters in pcs or described is None:
        described = studio.adapters.described
    found = {pc.name: pc.sensors.inventory for pc in pcs}
    known = [(name, inventory) for name, inventory in found.items() if inventory is not None]
    if not ours or described is None or not known:
        reason = (
            "None of these runs was made on this PC. A replayed recording already has its file."
            if not ours
            else "PyTorch and the devices are not known yet."
        )
        raise StudioError(FailureKind.NOT_SAVED, reason)
    cards = [
        name_at(card.pc, run.result.device_name if run.result else card.name)
        for run in ours
        if not is_cpu(run.request.device) and (card := studio.board.at(run.request.device))
    ]
    drivers = dict.fromkeys(one.driver.version for _, one in known if one.driver.version)
    recorded = RecordedPc(
        processor=listed(name_at(name, one.cpu.name) for name, one in known),
        system=listed(dict.fromkeys(pc.doctor.system or system_name() for pc in pcs)),
        cards=tuple(dict.fromkeys(cards)),
        driver_version=listed(drivers) if cards and drivers else None,
        is_simulated=studio.cards_are_simulated and bool(cards),
    )
    header = header_of(recorded, described, recorded_at)
    return recording_of(header, described, ours, frames)
