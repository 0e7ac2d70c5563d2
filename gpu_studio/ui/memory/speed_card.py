"""How fast would it write? The most tokens a second, and what a step reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSpinBox

from gpu_studio.core.memory.token_speed import MOST_BATCH, SIMULATED, bound_sentence
from gpu_studio.core.texts import file_name
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button, section
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.memory.fit_question import FitAnswer
    from gpu_studio.model.memory.memory_devices import Bandwidths

_LONGEST_CONTEXT = 10_000_000


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
        if self._device is not None:
            self._bandwidths.measure(self._device)

    def _show(self) -> None:
        answer, device = self._answer, self._device
        sentence = detail = ""
        can_measure = needs_bandwidth = False
        if answer is not None and device is not None:
            bandwidth = self._bandwidths.of(device)
            needs_bandwidth = bandwidth is None and not device.is_modelled
            can_measure = self._bandwidths.can_measure(device)
            reading = answer.model_fit.reading
            sentence = bound_sentence(
                reading,
                bandwidth,
                "the CPU" if device.is_cpu else "this card",
                is_too_large=answer.model_fit.inference.fits is False,
            )
            if device.is_modelled and not reading.unknown_experts:
                sentence = SIMULATED
            elif self._bandwidths.is_measuring:
                sentence = "Measuring the bandwidth…"
            details = (self._bandwidths.trouble, reading.words, reading.unknown_cache)
            detail = " ".join(filter(None, details))
        self._measure.setVisible(needs_bandwidth)
        self._measure.setEnabled(can_measure)
        self._sentence.setText(sentence)
        self._detail.setText(detail)
