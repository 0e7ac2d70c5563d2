"""Start and end of the runs by the sensors' clock, and what the last one did to the sensors."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.run_messages import SQUARE, RunWorkload
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.core.units import format_size
from gpu_studio.model.engine_session import Reply

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Reading
    from gpu_studio.core.messages.message import Request
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors

_KEPT = 256
_RUN = "run"  # the reason for reading the sensors
# By the tags of their requests, whose classes a window imports with their tabs.
_OTHER_WORK = {
    "run_check": "a check",
    "run_in_turns": "several runs in turns",
    "run_memory_experiment": "a memory experiment",
    "run_pitfall": "a lesson",
}


class RunMark(msgspec.Struct, frozen=True):
    """The time span of a run by the sensors' clock; ``ended_s`` is None until it ends.

    ``identity`` is the `Device.identity` of its device, which another engine may number otherwise.
    """

    title: str
    identity: str
    began_s: float
    ended_s: float | None = None


class RunMarks(QObject):
    """Marks every run of the session and keeps the sensors running for it.

    Signals:
        marks_changed(): a run or other work began or ended.
        effect_changed(str): what the last run did to its device's sensors; "" while it runs.

    Attributes:
        marks: the last runs, oldest first.
    """

    marks_changed = Signal()
    effect_changed = Signal(str)

    def __init__(
        self, session: EngineSession, sensors: Sensors, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._sensors = session, sensors
        self.marks: deque[RunMark] = deque(maxlen=_KEPT)
        self._running: Request | None = None
        self._other: Request | None = None
        self._unreported: RunMark | None = None
        session.request_submitted.connect(self._on_request_submitted)
        sensors.reading_taken.connect(self._on_reading_taken)

    @property
    def running_title(self) -> str:
        """What runs now, in words; empty if nothing does."""
        if self._running is not None:
            return self.marks[-1].title
        return _work_title(self._other) if self._other is not None else ""

    def _on_request_submitted(self, reply: Reply) -> None:
        if isinstance(reply.request, RunWorkload):
            reply.event_received.connect(self._on_run_event)
        elif _work_title(reply.request):
            reply.event_received.connect(self._on_other_event)

    def _on_other_event(self) -> None:
        """Follow work that has no mark, because it is on several devices or in several parts."""
        reply = self.sender()
        assert isinstance(reply, Reply)
        running = None if reply.is_finished else reply.request
        if running is not self._other:
            self._other = running
            self.marks_changed.emit()

    def _on_run_event(self) -> None:
        reply = self.sender()
        assert isinstance(reply, Reply)
        request = reply.request
        assert isinstance(request, RunWorkload)
        if reply.is_finished:
            self._end(request)
        elif request is not self._running:
            self._begin(request)

    def _begin(self, request: RunWorkload) -> None:
        self._running, self._unreported = request, None
        device = self._sensors.inventory.find(request.device) if self._sensors.inventory else None
        identity = device.identity if device else request.device
        self.marks.append(RunMark(self._title(request), identity, time.monotonic()))
        self._sensors.want(_RUN, True)
        self.effect_changed.emit("")
        self.marks_changed.emit()

    def _title(self, request: RunWorkload) -> str:
        description = self._session.description
        workloads = (*(description.workloads if description else ()), *PICTURES)
        run = next((one for one in workloads if one.name == request.workload), None)
        size = format_size(request.size, run.size_text if run else SQUARE)
        title = run.title if run else request.workload
        return f"{title}, {size}, {request.dtype} on {request.device}"

    def _end(self, request: RunWorkload) -> None:
        if request is not self._running:
            return
        self._running = None
        self.marks[-1] = msgspec.structs.replace(self.marks[-1], ended_s=time.monotonic())
        self._unreported = self.marks[-1]
        self.marks_changed.emit()

    def _on_reading_taken(self, reading: Reading) -> None:
        """Say what a run did to the sensors, after their first reading since its end."""
        mark, inventory = self._unreported, self._sensors.inventory
        if mark is None or mark.ended_s is None or reading.taken_at_s < mark.ended_s:
            return
        self._unreported = None
        self._sensors.want(_RUN, False)
        device = inventory.device_with(mark.identity) if inventory else None
        track = self._sensors.track(device) if device else None
        if track is not None and (effect := track.effect(mark.began_s, mark.ended_s)):
            self.effect_changed.emit(f"{effect[0].upper()}{effect[1:]} in {mark.title}.")


def _work_title(request: Request) -> str:
    """Return what work without a mark is; empty for a request that is answered at once."""
    return _OTHER_WORK.get(str(request.__struct_config__.tag), "")
