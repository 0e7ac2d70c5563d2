"""How fast would it write? The most tokens a second, in a sentence, and the arithmetic of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSpinBox

from gpu_studio.core.memory.token_speed import (
    MOST_BATCH,
    Missing,
    arithmetic,
    bound_sentence,
    token_bound,
)
from gpu_studio.core.plain_text import file_name
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.memory_curves import toggle
from gpu_studio.ui.parts import GAP, Card, Text, button, section, show_whole_rows, table
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from gpu_studio.core.memory.token_speed import Bandwidth, TokenBound
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
        self.column.addWidget(self._sentence)
        self.column.addWidget(self._detail)
        self._measure = button(
            "Measure the bandwidth",
            self._on_measure,
            name="memory.speed.measure",
            tip="Copies memory on the device for some seconds",
        )
        self._more = toggle("Arithmetic", "memory.speed.more", "Show how this follows")
        self._more.toggled.connect(self._show_rows)
        self.column.addWidget(FlowRow(self._measure, self._more, spacing=GAP))
        self._rows = TextRows(("What", "Amount", "How"), numbers=(1,), parent=self)
        self._table = table(
            self._rows,
            name="memory.speed.table",
            accessible_name="Arithmetic of the tokens a second",
        )
        self._table.hide()
        self.column.addWidget(self._table)
        bandwidths.changed.connect(self._show)
        self._show()

    def _make_choices(self) -> FlowRow:
        self._context = QSpinBox()
        self._context.setRange(0, _LONGEST_CONTEXT)
        self._context.setSingleStep(1024)
        self._context.setGroupSeparatorShown(True)
        self._context.setSpecialValueText("usual")
        self._batch = QSpinBox()
        self._batch.setRange(1, MOST_BATCH)
        for box, name, words in (
            (self._context, "context", "Tokens of context"),
            (self._batch, "batch", "Texts at once"),
        ):
            box.setObjectName(f"memory.speed.{name}")
            box.setAccessibleName(words)
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self.changed)
        context, batch = Text("Context"), Text("Texts at once")
        context.setBuddy(self._context)
        batch.setBuddy(self._batch)
        self._open = button(
            "Open config.json…", self._choose_config, name="memory.speed.open",
            tip="The model's shape: its layers, heads and experts",
        )  # fmt: skip
        self._config = Text(role="muted", name="memory.speed.config")
        return FlowRow(
            context, self._context, batch, self._batch, self._open, self._config, spacing=GAP
        )

    @property
    def context(self) -> int | None:
        """The tokens of each text; None for what is usual for the model."""
        return self._context.value() or None

    @property
    def batch(self) -> int:
        """The number of texts at once."""
        return self._batch.value()

    def show_answer(self, answer: FitAnswer, device: DeviceRow) -> None:
        """Show the bound for what a model reads, on the chosen device."""
        self._answer, self._device = answer, device
        self._show()

    def forget_config(self) -> None:
        """Forget the chosen configuration: it is another model's."""
        self.config = None
        self._config.setText("")

    def show_nothing(self) -> None:
        """Show no bound: there is no answer."""
        self._answer = None
        self._show()

    def _choose_config(self) -> None:
        path = ask_open_path(
            self.window(), "Open a configuration", "Configurations (*.json);;All files (*)"
        )
        if path:
            self.config = Path(path)
            self._config.setText(file_name(self.config))
            self.changed.emit()

    def _on_measure(self) -> None:
        self._bandwidths.measure(self._unmeasured())

    def _unmeasured(self) -> list[DeviceRow]:
        """Return the devices whose bandwidth the bound needs, and does not have."""
        answer, device = self._answer, self._device
        if answer is None or device is None or device.is_modelled:
            return []
        devices = [device]
        if not device.is_cpu and self._room_bytes(answer) is not None:
            devices.append(self._bandwidths.cpu)
        return [one for one in devices if self._bandwidths.of(one) is None]

    def _room_bytes(self, answer: FitAnswer) -> int | None:
        fit = answer.model_fit
        return answer.question.card.free_bytes if fit and fit.inference.fits is False else None

    def _measured(self) -> tuple[Bandwidth | None, Bandwidth | None]:
        """Return the bandwidths of the device and of the RAM beside it."""
        assert self._device is not None
        of = self._bandwidths.of
        return of(self._device), None if self._device.is_cpu else of(self._bandwidths.cpu)

    def _bound(self, answer: FitAnswer) -> TokenBound:
        bandwidth, ram = self._measured()
        return token_bound(
            answer.reading, bandwidth, free_bytes=self._room_bytes(answer), ram=ram,
            ram_bytes=self._bandwidths.ram_bytes,
        )  # fmt: skip

    def _show(self) -> None:
        answer, device = self._answer, self._device
        unmeasured = self._unmeasured()
        self._measure.setVisible(bool(unmeasured))
        self._measure.setEnabled(
            bool(unmeasured) and all(map(self._bandwidths.can_measure, unmeasured))
        )
        self._more.setVisible(answer is not None)
        if answer is None or device is None:
            self._sentence.setText("")
            self._detail.setText("")
            self._show_rows()
            return
        bound, (bandwidth, ram) = self._bound(answer), self._measured()
        where = "the CPU" if device.is_cpu else "this card"
        if device.is_modelled and bound.missing is Missing.BANDWIDTH:
            sentence = _SIMULATED
        elif self._bandwidths.is_measuring:
            sentence = "Measuring the bandwidth…"
        else:
            sentence = bound_sentence(answer.reading, bound, bandwidth, where)
        self._sentence.setText(sentence)
        details = (self._bandwidths.trouble, answer.reading.unknown_cache)
        self._detail.setText(" ".join(one for one in details if one))
        self._detail.setVisible(any(details))
        self._rows.set_rows(arithmetic(answer.reading, bound, bandwidth, ram))
        self._show_rows()

    def _show_rows(self) -> None:
        is_shown = self._more.isChecked() and self._answer is not None
        self._table.setVisible(is_shown)
        if is_shown:
            show_whole_rows(self._table)
