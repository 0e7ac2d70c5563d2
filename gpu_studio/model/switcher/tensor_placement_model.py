"""Places tensors on a device in two ways, for the Switcher tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import PlaceRow, PlaceTensors, TensorsPlaced
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.placement_words import explain_end, explain_failure, explain_tensors

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.studio import Studio
    from gpu_studio.model.switcher.device_choice import DeviceChoice
    from gpu_studio.model.switcher.placement_table import PlacementTable


class TensorPlacementModel(QObject):
    """Square matrices on the chosen device.

    Args:
        studio: the application's state.
        choice: has the chosen device.
        table: gets a row for each tensor.

    Signals:
        changed(): placing tensors began, ended or failed.

    Attributes:
        notice: how both tensors got there, or why they did not.
    """

    changed = Signal()

    def __init__(
        self,
        studio: Studio,
        choice: DeviceChoice,
        table: PlacementTable,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._choice, self._table = studio.session, choice, table
        self._reply: Reply | None = None
        self.notice = Notice()

    @property
    def is_placing(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._reply is not None

    @property
    def can_place(self) -> bool:
        """Whether the chosen device has an address and the engine is ready."""
        row = self._choice.chosen
        is_there = self._session.description is not None and row is not None
        return is_there and row is not None and row.address is not None and self._reply is None

    def place(self, size: int, dtype: str) -> None:
        """Place matrices of a size and dtype on the chosen device."""
        row = self._choice.chosen
        if self.can_place and row is not None and row.address is not None:
            self._reply = self._session.submit(
                PlaceTensors(device=row.address, size=size, dtype=dtype)
            )
            self._reply.event_received.connect(self._receive)
            self._reply.finished.connect(self._conclude)
            self._table.clear()
            self._say("Placing the tensors…")

    def forget(self) -> None:
        """Clear the message about the last tensors: the table shows something else."""
        if self._reply is None and self.notice.sentence:
            self._say("")

    def _receive(self, event: Event) -> None:
        if isinstance(event, PlaceRow):
            self._table.append(event)

    def _conclude(self) -> None:
        assert self._reply is not None
        event = self._reply.last
        match event:
            case TensorsPlaced():
                row = self._choice.chosen
                link = widest_link(row.device) if row is not None and row.device else None
                self._finish(
                    explain_tensors(event, link), Tone.GOOD if event.same_values else Tone.FAILURE
                )
            case RequestFailed():
                self._finish(explain_failure(event.failure), Tone.FAILURE)
            case EngineEnded():
                self._finish(explain_end(event), Tone.FAILURE)
            case _:
                pass

    def _finish(self, text: str, tone: Tone) -> None:
        self._reply = None
        self._say(text, tone)

    def _say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.notice = Notice(text, tone)
        self.changed.emit()
