"""Places a model, a file's tensors or two matrices on the chosen device, for the Switcher tab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import (
    FileInspected,
    InspectFile,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    PlaceTensors,
    TensorsPlaced,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.placement_words import (
    describe_file,
    explain_end,
    explain_failure,
    explain_move,
    explain_tensors,
)
from gpu_studio.core.texts import file_name
from gpu_studio.core.units import format_count
from gpu_studio.model.file_reading import opening
from gpu_studio.model.text_rows import TextTable, plain_tip

if TYPE_CHECKING:
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.placement_messages import ModelDescription
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.studio import Studio
    from gpu_studio.model.switcher.device_choice import DeviceChoice


_FILE_IS_HERE = "Files are not sent to another PC. Choose a device of this PC for your file."
_PROOF_TONES = {True: Tone.GOOD, False: Tone.FAILURE, None: Tone.AMBER}


class PlacementModel(QObject):
    """Places one thing at a time on the device of a `DeviceChoice`.

    Signals:
        changed(): `notice` changed: a placement began, ended or was cleared.
        file_changed(): a file's header was read or refused.

    Attributes:
        table: every tensor of the last placement.
        notice: the proof of the last placement, or why it failed.
        file: your file, after a check of its header; its tensors are not loaded yet.
        file_notice: the file's contents, or why it is refused.
    """

    changed = Signal()
    file_changed = Signal()

    def __init__(self, studio: Studio, choice: DeviceChoice, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._choice = studio, choice
        self._reply: Reply | None = None
        self._inspecting: Reply | None = None
        self._has_moved = False
        self.table = PlacementTable(self)
        self.notice = Notice()
        self.file: FileInspected | None = None
        self.file_notice = Notice()
        studio.session.engine_described.connect(self._on_engine_described)
        studio.pcs.engine_described.connect(self.changed)
        studio.pcs.changed.connect(self.changed)

    @property
    def session(self) -> EngineSession:
        row = self._choice.chosen
        return self._studio.pcs.session_of(row.identity if row is not None else "")

    @property
    def models(self) -> tuple[ModelDescription, ...]:
        description = self.session.description
        return description.models if description else ()

    @property
    def is_moving(self) -> bool:
        return self._reply is not None and isinstance(self._reply.request, PlaceModel)

    @property
    def is_placing(self) -> bool:
        return self._reply is not None and isinstance(self._reply.request, PlaceTensors)

    @property
    def can_place(self) -> bool:
        return self._address is not None and bool(self.models) and self._reply is None

    def move(self, model: str, dtype: str = "") -> None:
        """Move a built-in model to the chosen device; an empty ``dtype`` keeps its data type."""
        if self.can_place:
            request = PlaceModel(model=model, device=self._address or "", dtype=dtype)
            self._submit(request, "Moving the model…")

    def move_file(self, dtype: str = "") -> None:
        """Move the tensors of the opened file; those of another PC's devices have no such file."""
        row = self._choice.chosen
        if row is not None and row.pc:
            self._set_notice(_FILE_IS_HERE, Tone.AMBER)
        elif self.can_place and self.file is not None:
            request = PlaceModel(path=self.file.path, device=self._address or "", dtype=dtype)
            self._submit(request, "Moving the file's tensors…")

    def place_tensors(self, size: int, dtype: str) -> None:
        if self.can_place:
            request = PlaceTensors(device=self._address or "", size=size, dtype=dtype)
            self._submit(request, "Placing the tensors…")

    def forget(self) -> None:
        """Clear the last placement: the choice changed."""
        if self._reply is None:
            self._has_moved = False
            self.table.clear()
            self._set_notice("")

    # ── a file ───────────────────────────────────────────────────────────────────────────────

    @property
    def file_name(self) -> str:
        return file_name(Path(self.file.path)) if self.file else ""

    @property
    def is_inspecting(self) -> bool:
        return self._inspecting is not None

    def inspect(self, path: str) -> None:
        if path and self.models and self._inspecting is None:
            self.forget()
            self.file = None
            self._inspecting = self._studio.session.submit(InspectFile(path=path))
            self._inspecting.finished.connect(self._finish_inspection)
            self._set_file_notice(opening(Path(path)))

    def forget_refusal(self) -> None:
        """Clear the message about a refused file: the choice changed."""
        if self.file_notice.tone is Tone.FAILURE:
            self._set_file_notice("")

    # ── events ───────────────────────────────────────────────────────────────────────────────

    @property
    def _address(self) -> str | None:
        row = self._choice.chosen
        return row.address if row is not None else None

    @property
    def _link(self) -> Link | None:
        """The chosen card's connection to the PC; None if unknown."""
        row = self._choice.chosen
        return widest_link(row.device) if row is not None and row.device is not None else None

    def _submit(self, request: PlaceModel | PlaceTensors, doing: str) -> None:
        self._has_moved = False
        self._reply = self.session.submit(request)
        self._reply.event_received.connect(self._receive)
        self._reply.finished.connect(self._finish)
        self.table.clear()
        self._set_notice(doing)

    def _receive(self, event: Event) -> None:
        if isinstance(event, PlaceRow):
            self.table.append(event)

    def _finish(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        match event:
            case PlaceFinished():
                self._has_moved = True
                tone = _PROOF_TONES[event.same_output]
                self._set_notice(explain_move(event, self._link), tone)
            case TensorsPlaced():
                tone = Tone.GOOD if event.same_values else Tone.FAILURE
                self._set_notice(explain_tensors(event, self._link), tone)
            case RequestFailed():
                self._set_notice(explain_failure(event.failure), Tone.FAILURE)
            case EngineEnded():
                self._set_notice(explain_end(event), Tone.FAILURE)
            case _:
                pass

    def _finish_inspection(self) -> None:
        assert self._inspecting is not None
        event, self._inspecting = self._inspecting.last, None
        match event:
            case FileInspected():
                self.file = event
                self._set_file_notice(describe_file(event), Tone.GOOD)
            case RequestFailed():
                self._set_file_notice(event.failure.message, Tone.FAILURE)
            case EngineEnded():
                self._set_file_notice(explain_end(event), Tone.FAILURE)
            case _:
                pass

    def _on_engine_described(self) -> None:
        if self._has_moved:
            self._has_moved = False
            gone = "its engine has ended, so the model is gone"
            self._set_notice(f"{self.notice.sentence}  ·  {gone}")
        self.changed.emit()

    def _set_notice(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.notice = Notice(text, tone)
        self.changed.emit()

    def _set_file_notice(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.file_notice = Notice(text, tone)
        self.file_changed.emit()


HEADINGS = ("Name", "Kind", "Shape", "Type", "Bytes", "Before", "After")
NAME, KIND, SHAPE, TYPE, BYTES, BEFORE, AFTER = range(7)
DEVICE_ROLE = Qt.ItemDataRole.UserRole  # the device that a cell names, for its color
_NO_PARENT = QModelIndex()
_KINDS = {"parameter": " (learned in training)", "buffer": " (kept, but not learned)"}


class PlacementTable(TextTable):
    """One row for each tensor, in the engine's order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(HEADINGS, (BYTES,), parent)
        self._tensors: list[PlaceRow] = []

    @property
    def row_count(self) -> int:
        return len(self._tensors)

    def text(self, row: int, column: int) -> str:
        return _texts(self._tensors[row])[column]

    def append(self, row: PlaceRow) -> None:
        self.beginInsertRows(_NO_PARENT, self.row_count, self.row_count)
        self._tensors.append(row)
        self.endInsertRows()

    def clear(self) -> None:
        self.beginResetModel()
        self._tensors.clear()
        self.endResetModel()

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        row, column = self._tensors[index.row()], index.column()
        if role == DEVICE_ROLE:
            return {BEFORE: row.device_before, AFTER: row.device_after}.get(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            kind = f"{row.kind}{_KINDS.get(row.kind, '')}"
            return plain_tip(f"{row.name}: {kind}, {row.dtype}")
        return super().data(index, role)


def _texts(row: PlaceRow) -> tuple[str, ...]:
    shape = " × ".join(map(str, row.shape)) or "scalar"
    return (
        row.name, row.kind, shape, row.dtype, format_count(row.bytes), row.device_before,
        row.device_after,
    )  # fmt: skip
