"""How fast would it write? The most tokens a second, and what a step reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSpinBox

from gpu_studio.core.memory.token_speed import MOST_BATCH, Missing, bound_sentence, token_bound
from gpu_studio.core.plain_text import file_name
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button, section
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.memory.bandwidths import Bandwidths
    from gpu_studio.model.memory.fit_question import FitAnswer

_LONGEST_CONTEXT = 10_000_000
_SIMULATED = "A simulated card has no bandwidth to measure, so its speed is not modeled."


class SpeedCard(Card):
    """Asks for the texts to write, and shows the bound for the last answer.

    Signals:
        changed(): another configuration, context or number of texts is asked about.

    Attributes:
        config: the chosen ``config.json``; None for the one next to the file.
        choices: the row of controls, for a place that no answer moves.
    """

    changed = Signal()

    def __init__(self, bandwidths: Bandwidths) -> None:
        super().__init__(name="memory.speed")
        self._bandwidths = bandwidths
        self._answer: FitAnswer | None = None
        self._device: DeviceRow | None = None
        self.config: Path | None = None
        self.column.addWidget(section("How fast would it write?"))
        self.choices = self._make_choices()
        self._sentence = Text(role="lead", name="memory.speed.sentence", wraps=True)
        self._detail = Text(role="muted", name="memory.speed.detail", wraps=True)
        self._measure = button(
            "Measure the bandwidth",
            self._on_measure,
            name="memory.speed.measure",
            tip="Copies memory on the device for some seconds",
        )
        for widget in (self._sentence, self._detail, FlowRow(self._measure)):
            self.column.addWidget(widget)
        bandwidths.changed.connect(self._show)
        self._show()

    def _make_choices(self) -> FlowRow:
        self._context, self._batch = QSpinBox(), QSpinBox()
        self._context.setRange(0, _LONGEST_CONTEXT)
        self._context.setSingleStep(1024)
        self._context.setGroupSeparatorShown(True)
        self._context.setSpecialValueText("usual")
        self._batch.setRange(1, MOST_BATCH)
        row = FlowRow(spacing=GAP)
        for box, name, words, label in (
            (self._context, "context", "Tokens of context", Text("Context")),
            (self._batch, "batch", "Texts at once", Text("Texts at once")),
        ):
            box.setObjectName(f"memory.speed.{name}")
            box.setAccessibleName(words)
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self.changed)
            label.setBuddy(box)
            row.add(label)
            row.add(box)
        self._config = Text(role="muted", name="memory.speed.config")
        tip = "The model's shape: its layers, heads and experts"
        row.add(button("Open config.json…", self._choose_config, name="memory.speed.open", tip=tip))
        row.add(self._config)
        return row

    @property
    def context(self) -> int | None:
        """The tokens of each text; None for what is usual for the model."""
        return self._context.value() or None

    @property
    def batch(self) -> int:
        """The number of texts at once."""
        return self._batch.value()

    def show_answer(self, answer: FitAnswer | None, device: DeviceRow) -> None:
        """Show the bound for what a model reads, on the chosen device; nothing without answer."""
        self._answer, self._device = answer, device
        self._show()

    def choose_config(self, path: Path | None) -> None:
        """Ask about another configuration; None forgets that of another model."""
        self.config = path
        self._config.setText(file_name(path) if path is not None else "")
        self.changed.emit()

    def _choose_config(self) -> None:
        path = ask_open_path(
            self.window(), "Open a configuration", "Configurations (*.json);;All files (*)"
        )
        if path:
            self.choose_config(Path(path))

    def _on_measure(self) -> None:
        self._bandwidths.measure(self._unmeasured())

    def _unmeasured(self) -> list[DeviceRow]:
        """Return the devices whose bandwidth the bound needs, and does not have."""
        answer, device = self._answer, self._device
        if answer is None or device is None or device.is_modelled:
            return []
        devices = [device]
        if _room_bytes(answer) is not None:
            devices.append(self._bandwidths.cpu)
        return [one for one in devices if self._bandwidths.of(one) is None]

    def _show(self) -> None:
        unmeasured = self._unmeasured()
        can_measure = all(map(self._bandwidths.can_measure, unmeasured))
        self._measure.setVisible(bool(unmeasured))
        self._measure.setEnabled(can_measure)
        answer, device = self._answer, self._device
        sentence = detail = ""
        if answer is not None and device is not None:
            reading = answer.model_fit.reading
            sentence = self._bound_words(answer, device)
            details = (self._bandwidths.trouble, reading.words, reading.unknown_cache)
            detail = " ".join(filter(None, details))
        self._sentence.setText(sentence)
        self._detail.setText(detail)

    def _bound_words(self, answer: FitAnswer, device: DeviceRow) -> str:
        reading, bandwidth = answer.model_fit.reading, self._bandwidths.of(device)
        bound = token_bound(
            reading,
            bandwidth,
            free_bytes=_room_bytes(answer),
            ram=self._bandwidths.of(self._bandwidths.cpu),
            ram_bytes=self._bandwidths.ram_bytes,
        )
        if device.is_modelled and bound.missing is Missing.BANDWIDTH:
            return _SIMULATED
        if self._bandwidths.is_measuring:
            return "Measuring the bandwidth…"
        return bound_sentence(
            reading, bound, bandwidth, "the CPU" if device.is_cpu else "this card"
        )


def _room_bytes(answer: FitAnswer) -> int | None:
    """Return the room on a card that is too small for the model; None if it is not."""
    if answer.question.is_ram or answer.model_fit.inference.fits is not False:
        return None
    return answer.question.card.free_bytes
