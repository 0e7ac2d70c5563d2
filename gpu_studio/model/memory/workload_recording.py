"""Records the memory of a workload in a separate engine, for the page “What if”."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.memory.replay.what_if_words import recorded_sentence
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRecorded, RecordMemory
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.oom_experiment import OomState

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.studio import Studio

_USUAL_DTYPE = "float32"


class WorkloadRecording(QObject):
    """Records one workload at a time, in the memory lab's engine: a new one, with nothing in it.

    Signals:
        changed(): what can be recorded, or how far a recording is.
        recorded(Path): a history is in this file.

    Attributes:
        notice: what happens, or how the last recording ended.
    """

    changed = Signal()
    recorded = Signal(object)

    def __init__(self, studio: Studio, memory: MemoryModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._experiment = studio, memory.experiment
        self._reply: Reply | None = None
        self._is_stopping = False
        self.notice = Notice()
        studio.board.changed.connect(self.changed)
        studio.session.state_changed.connect(self.changed)
        studio.session.engine_described.connect(self.changed)
        self._experiment.state_changed.connect(self.changed)

    @property
    def cards(self) -> tuple[DeviceRow, ...]:
        """The cards of this PC on which PyTorch can record: the history is a file there."""
        return tuple(row for row in self._studio.board.usable_here if not row.is_cpu)

    @property
    def workloads(self) -> tuple[WorkloadDescription, ...]:
        """The workloads that run on one of the cards."""
        description = self._studio.session.description
        found = description.workloads if description is not None else ()
        addresses = [card.address for card in self.cards if card.address is not None]
        return tuple(one for one in found if not one.skipped and any(map(one.runs_on, addresses)))

    @property
    def is_recording(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._reply is not None

    @property
    def why_not(self) -> str:
        """Why no workload can be recorded now; empty if one can."""
        session = self._studio.session
        if session.state is EngineState.FAILED:
            return "The engine has stopped. Start a new one from the Engine menu."
        if session.what_is_missing:
            return session.what_is_missing
        if not self.cards:
            reason = session.description.cuda_reason if session.description is not None else None
            return (
                "A workload is recorded on a card: the CPU has no allocator that writes a history. "
                f"{reason or 'PyTorch can use no card of this PC.'}"
            )
        if self._experiment.state is not OomState.IDLE:
            return "An experiment of the page “Break it” is running. Wait until it has ended."
        return ""

    def record(self, workload: WorkloadDescription, size: int, address: str, path: Path) -> None:
        """Record a workload with its usual options; does nothing while one is recorded.

        Args:
            workload: one of `workloads`.
            size: one of its sizes.
            address: of one of the `cards`.
            path: the file for the history.
        """
        if self._reply is not None or self.why_not:
            return
        dtype = _USUAL_DTYPE if _USUAL_DTYPE in workload.dtypes else workload.dtypes[0]
        request = RecordMemory(
            workload=workload.name, device=address, size=size, dtype=dtype, snapshot_path=str(path)
        )
        # The same numbers must mean the same cards in both engines.
        visible_devices = self._studio.session.environment.visible_devices
        lab = self._studio.lab
        lab.restart(EngineEnvironment(visible_devices=visible_devices))
        self._is_stopping = False
        self._reply = lab.submit(request)
        self._reply.finished.connect(self._conclude)
        self._set_notice(Notice(f"Recording {workload.title} in an engine of its own…"))

    def stop(self) -> None:
        """Stop the recording; what was recorded is not opened."""
        if self._reply is not None:
            self._is_stopping = True
            self._reply.stop()

    def _conclude(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        if not isinstance(event, EngineEnded):
            self._studio.lab.end()  # its context would use memory of the card
        match event:
            case _ if self._is_stopping:
                self._set_notice(Notice("Stopped."))
            case MemoryRecorded():
                self._set_notice(Notice(recorded_sentence(event)))
                self.recorded.emit(Path(event.snapshot_path))
            case RequestFailed():
                self._set_notice(Notice(event.failure.message, Tone.FAILURE))
            case EngineEnded():
                sentence = f"Nothing was recorded. {describe_exit(event.exit_code)}"
                self._set_notice(Notice(sentence, Tone.FAILURE))
            case _:
                pass

    def _set_notice(self, notice: Notice) -> None:
        self.notice = notice
        self.changed.emit()
