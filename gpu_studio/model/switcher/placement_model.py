"""Moves a model or a file of tensors, for the Switcher tab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import (
    FileInspected,
    InspectFile,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.placement_words import (
    describe_file,
    explain_end,
    explain_failure,
    explain_move,
)
from gpu_studio.model.switcher.device_choice import DeviceChoice
from gpu_studio.model.switcher.placement_table import PlacementTable

if TYPE_CHECKING:
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.placement_messages import ModelDescription
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.studio import Studio


class PlacementModel(DeviceChoice):
    """The devices of `DeviceChoice`, and the places of a model's or a file's tensors.

    `table` has every tensor of the last move.

    Signals:
        move_changed(): a move began, ended or was cleared.
        file_changed(): a file's header was read or refused.
    """

    move_changed = Signal()
    file_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        self._move: Reply | None = None
        self._has_moved = False
        self._inspecting: Reply | None = None
        self._file: FileInspected | None = None
        self.file_notice = Notice()
        self.move_notice = Notice()
        super().__init__(studio, parent)
        self.table = PlacementTable(self)

    @property
    def models(self) -> tuple[ModelDescription, ...]:
        """The built-in models that the engine can move; empty until it has started."""
        description = self._session.description
        return description.models if description else ()

    @property
    def is_moving(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._move is not None

    @property
    def can_move(self) -> bool:
        """Whether a model can be moved to the chosen device now."""
        row = self.chosen
        has_address = row is not None and row.address is not None
        return has_address and bool(self.models) and not self.is_moving

    def move(self, model: str, dtype: str = "") -> None:
        """Move a built-in model to the chosen device; an empty ``dtype`` keeps its data type."""
        self._start_move(model=model, dtype=dtype)

    def move_file(self, dtype: str = "") -> None:
        """Move the tensors of the opened file."""
        if self._file is not None:
            self._start_move(path=self._file.path, dtype=dtype)

    def _start_move(self, *, model: str = "", path: str = "", dtype: str = "") -> None:
        row = self.chosen
        if self.can_move and row is not None and row.address is not None:
            self._move = self._session.submit(
                PlaceModel(model=model, path=path, device=row.address, dtype=dtype)
            )
            self._move.event_received.connect(self._take_row)
            self._move.finished.connect(self._finish_move)
            self.table.clear()
            self._say_of_move("Moving the file's tensors…" if path else "Moving the model…")

    def forget_move(self) -> None:
        """Clear the last move: the choice changed."""
        if self._move is None:
            self._has_moved = False
            self.table.clear()
            self._say_of_move("")

    # ── a file ───────────────────────────────────────────────────────────────────────────────

    @property
    def file(self) -> FileInspected | None:
        """The user's file, after a check of its header; its tensors are not loaded yet."""
        return self._file

    @property
    def file_name(self) -> str:
        """The file's name without its folder; empty without a file."""
        return Path(self._file.path).name if self._file else ""

    @property
    def is_looking(self) -> bool:
        """Whether the engine reads a file's header."""
        return self._inspecting is not None

    def look_at(self, path: str) -> None:
        """Let the engine read a file's header."""
        if path and self.models and self._inspecting is None:
            self.forget_move()
            self._file = None
            self._inspecting = self._session.submit(InspectFile(path=path))
            self._inspecting.finished.connect(self._finish_look)
            self._say_of_file("Reading the file…")

    def forget_refusal(self) -> None:
        """Clear the message about a refused file: the choice changed."""
        if self.file_notice.tone is Tone.FAILURE:
            self._say_of_file("")

    # ── events ───────────────────────────────────────────────────────────────────────────────

    def _finish_look(self) -> None:
        assert self._inspecting is not None
        event, self._inspecting = self._inspecting.last, None
        match event:
            case FileInspected():
                self._file = event
                self._say_of_file(describe_file(event), Tone.GOOD)
            case RequestFailed():
                self._say_of_file(event.failure.message, Tone.FAILURE)
            case EngineEnded():
                self._say_of_file(explain_end(event), Tone.FAILURE)
            case _:
                pass

    def _take_row(self, event: Event) -> None:
        if isinstance(event, PlaceRow):
            self.table.append(event)

    def _finish_move(self) -> None:
        assert self._move is not None
        event, self._move = self._move.last, None
        match event:
            case PlaceFinished():
                tone = Tone.GOOD if event.same_output else Tone.AMBER
                if event.same_output is False:
                    tone = Tone.FAILURE
                row = self.chosen
                link = widest_link(row.device) if row is not None and row.device else None
                self._has_moved = True
                self._say_of_move(explain_move(event, link), tone)
            case RequestFailed():
                self._say_of_move(explain_failure(event.failure), Tone.FAILURE)
            case EngineEnded():
                self._say_of_move(explain_end(event), Tone.FAILURE)
            case _:
                pass

    def _take_engine(self, description: EngineDescribed) -> None:
        super()._take_engine(description)
        if self._has_moved:
            self._has_moved = False
            text = f"{self.move_notice.sentence}  ·  its engine has ended, so the model is gone"
            self._say_of_move(text)
        self.move_changed.emit()

    def _say_of_move(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.move_notice = Notice(text, tone)
        self.move_changed.emit()

    def _say_of_file(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.file_notice = Notice(text, tone)
        self.file_changed.emit()
