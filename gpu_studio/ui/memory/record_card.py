"""Which workload to record on which card, for the page “What if”."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.units import format_size
from gpu_studio.model.memory.workload_recording import WorkloadRecording
from gpu_studio.ui.combo_box import ComboBox, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button
from gpu_studio.ui.saving import ask_save_path

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.studio import Studio

_ABOUT = (
    "The operands and three calls are recorded, in an engine of their own and without a clock. The "
    "file is yours."
)


class RecordCard(Card):
    """The workload, its size, the card, and the button; or why none can be recorded."""

    def __init__(self, studio: Studio, memory: MemoryModel, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.what_if.record_card")
        self.recording = WorkloadRecording(studio, memory, self)
        self.column.addWidget(Text("Record a workload", "title"))
        self.column.addWidget(Text(_ABOUT, "muted", wraps=True))
        self._workloads = _choice("memory.what_if.record.workload", "Workload to record")
        self._workloads.currentIndexChanged.connect(self._show_sizes)
        self._sizes = _choice("memory.what_if.record.size", "Size of the workload")
        self._cards = _choice("memory.what_if.record.card", "Card to record on")
        self._record = button("Record…", self._ask_place, name="memory.what_if.record.start")
        self._stop = button("Stop", self.recording.stop, name="memory.what_if.record.stop")
        self.column.addWidget(
            FlowRow(
                self._workloads, self._sizes, self._cards, self._record, self._stop, spacing=GAP
            )
        )
        self._reason = Text(role="amber", name="memory.what_if.record.reason", wraps=True)
        self._notice = Text(name="memory.what_if.record.notice", wraps=True)
        self.column.addWidget(self._reason)
        self.column.addWidget(self._notice)
        self.recording.changed.connect(self._show)
        self._show()

    def begin(self) -> None:
        """Show the card, ready for a choice."""
        self.show()
        (self._workloads if self._record.isEnabled() else self).setFocus()

    def record(self, path: Path) -> None:
        """Record the chosen workload to a file."""
        workload, size = self._workload, self._sizes.currentData()
        card = next(
            (one for one in self.recording.cards if one.identity == self._cards.currentData()),
            None,
        )
        if workload is not None and card is not None and card.address is not None:
            self.recording.record(workload, int(size), card.address, path)

    @property
    def _workload(self) -> WorkloadDescription | None:
        name = self._workloads.currentData()
        return next((one for one in self.recording.workloads if one.name == name), None)

    def _ask_place(self) -> None:
        workload = self._workload
        if workload is not None:
            name = f"{workload.name}_{self._sizes.currentData()}.pickle"
            path = ask_save_path(self, "Save the history", name, "Histories (*.pickle)")
            if path:
                self.record(Path(path))

    def _show(self) -> None:
        recording = self.recording
        show_items(self._workloads, [(one.title, one.name) for one in recording.workloads])
        show_items(self._cards, [(card.label, card.identity) for card in recording.cards])
        self._show_sizes()
        reason, is_busy = recording.why_not, recording.is_recording
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        for control in (self._workloads, self._sizes, self._cards):
            control.setVisible(control.count() > 0)
            control.setEnabled(not is_busy)
        had_focus = self._record.hasFocus() or self._stop.hasFocus()
        self._record.setVisible(not is_busy)
        self._record.setEnabled(not reason)
        self._record.setToolTip(reason or "Choose where the file goes, then record")
        self._stop.setVisible(is_busy)
        if had_focus:  # a hidden button loses the focus
            (self._stop if is_busy else self._record).setFocus()
        self._notice.show_notice(recording.notice)

    def _show_sizes(self) -> None:
        workload = self._workload
        sizes = workload.sizes if workload is not None else ()
        text = workload.size_text if workload is not None else ""
        show_items(self._sizes, [(format_size(size, text), str(size)) for size in sizes])


def _choice(name: str, accessible_name: str) -> ComboBox:
    box = ComboBox()
    box.setObjectName(name)
    box.setAccessibleName(accessible_name)
    return box
