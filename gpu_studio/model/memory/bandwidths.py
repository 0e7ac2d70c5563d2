"""The bandwidths that this session's runs have measured, and a run that measures one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.memory.token_speed import bandwidth_of, bandwidth_request
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished

if TYPE_CHECKING:
    from gpu_studio.core.memory.token_speed import Bandwidth
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.studio import Studio


class Bandwidths(QObject):
    """Follows every run of the session, whoever asked for it; the fastest copy counts.

    Signals:
        changed(): a bandwidth is known, or measuring began or ended.

    Attributes:
        trouble: why the last measurement failed; empty if it did not.
    """

    changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._board = studio.session, studio.board
        self._found: dict[str, Bandwidth] = {}
        self._reply: Reply | None = None
        self._numbers = itertools.count(1)
        self.trouble = ""
        self._session.request_submitted.connect(self._follow)
        self._session.state_changed.connect(self.changed)

    def of(self, device: DeviceRow) -> Bandwidth | None:
        """Return a device's bandwidth; None if this session has not measured it."""
        return self._found.get(device.identity)

    @property
    def is_measuring(self) -> bool:
        """Whether a measurement runs."""
        return self._reply is not None

    def can_measure(self, device: DeviceRow) -> bool:
        """Whether the engine can measure a device now."""
        is_real = not (device.is_modelled or device.pc) and device.address is not None
        return is_real and self._reply is None and self._session.is_free

    def measure(self, device: DeviceRow) -> None:
        """Measure a device, in about two seconds."""
        if device.address is not None and self.can_measure(device):
            self.trouble = ""
            request = bandwidth_request(device.address, f"bandwidth-{next(self._numbers)}")
            self._reply = self._session.submit(request)
            self._reply.finished.connect(self._on_finished)
            self.changed.emit()

    def _on_finished(self) -> None:
        reply, self._reply = self._reply, None
        last = reply.last if reply is not None else None
        if isinstance(last, (RunFailed, RequestFailed)):
            self.trouble = last.failure.message
        if isinstance(last, EngineEnded):
            self.trouble = "The engine ended during the measurement."
        self.changed.emit()

    def _follow(self, reply: Reply) -> None:
        reply.event_received.connect(self._on_event)

    def _on_event(self, event: Event) -> None:
        found = bandwidth_of(event) if isinstance(event, RunFinished) else None
        if found is None or not isinstance(event, RunFinished):
            return
        identity = self._board.identity_of(event.device)
        before = self._found.get(identity)
        if before is None or found.copy_bytes_per_s > before.copy_bytes_per_s:
            self._found[identity] = found
            self.changed.emit()
