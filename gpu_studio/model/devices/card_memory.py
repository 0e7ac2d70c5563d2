"""PyTorch's own memory on the card that is looked at, asked for while somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.devices.card_programs import CardState
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.model.engine_session import EngineSession, EngineState, Reply
    from gpu_studio.model.sensors import Sensors

_READ_MEMORY_EVERY_MS = 2000


def card_state(device: Device | None, sensors: Sensors) -> CardState:
    """Return what the sentences about a card's programs need to know of it."""
    if device is None:
        return CardState()
    now, inventory = sensors.latest(device) or device.telemetry, sensors.inventory
    others = inventory.cards if inventory is not None and device.is_integrated else ()
    better = [one for one in others if one.is_integrated is not True and one.unreadable is None]
    return CardState(
        total_bytes=device.memory_total_bytes,
        used_bytes=now.memory_used_bytes,
        better=better[0].short_name if better else "",
        on_better={one.pid for card in better for one in sensors.processes(card)},
    )


class CardMemory(QObject):
    """Asks an idle engine for one card's memory every two seconds.

    If an engine fails over a card, it asks again only when the user selects that card again.

    Args:
        session: answers the questions.
        looked_at: returns the shown device; a CPU is not asked about.

    Signals:
        read_taken(): a newer reading is available.
    """

    read_taken = Signal()

    def __init__(
        self,
        session: EngineSession,
        looked_at: Callable[[], Device | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._looked_at = session, looked_at
        self._read: dict[str, MemoryRead] = {}
        self._reply: Reply | None = None
        self._unanswered: str | None = None  # the address that made an engine fail
        self._timer = QTimer(self)
        self._timer.setInterval(_READ_MEMORY_EVERY_MS)
        self._timer.timeout.connect(self.ask)

    @property
    def by_address(self) -> Mapping[str, MemoryRead]:
        """The newest reading of each card that was shown under this engine."""
        return dict(self._read)

    def watch(self, watched: bool) -> None:
        """Ask regularly while visible."""
        if watched == self._timer.isActive():
            return
        if watched:
            self._session.state_changed.connect(self._enter)
            self._timer.start()
            self.ask()
        else:
            self._session.state_changed.disconnect(self._enter)
            self._timer.stop()

    def choose(self) -> None:
        """Ask about a card that the user selected, even if an engine failed over it."""
        self._unanswered = None

    def forget(self) -> None:
        """Drop all readings: a new engine holds nothing on any card."""
        self._read.clear()

    def ask(self) -> None:
        """Ask now if somebody looks, the engine is idle and it can use the card."""
        device, engine = self._looked_at(), self._session.description
        address = device.address if device is not None and not device.is_cpu else None
        if (
            self._timer.isActive()
            and address is not None
            and address != self._unanswered
            and self._reply is None
            and engine is not None
            and engine.cuda_available
            and self._session.state.is_idle
        ):
            self._reply = self._session.submit(ReadMemory(device=address))
            self._reply.finished.connect(self._finish)

    def _enter(self, state: EngineState) -> None:
        device = self._looked_at()
        is_unread = device is not None and device.address not in self._read
        if state.is_idle and is_unread:
            self.ask()

    def _finish(self) -> None:
        assert self._reply is not None
        request, event, self._reply = self._reply.request, self._reply.last, None
        assert isinstance(request, ReadMemory)
        has_died = isinstance(event, EngineEnded) and not event.stopped
        if has_died or isinstance(event, RequestFailed):
            self._unanswered = request.device
        if isinstance(event, MemoryRead):
            self._read[request.device] = event
            self.read_taken.emit()
