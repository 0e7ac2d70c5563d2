"""Will it fit? A card's limits, whether a network fits, and how fast it would write at most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QWidget

from gpu_studio.core.memory.fit import parse_count, plans_for
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice, card_at
from gpu_studio.core.memory.networks import (
    AS_IN_FILE,
    KEPT_TYPES,
    NETWORK_NAMES,
    Network,
    known_network,
)
from gpu_studio.core.memory.token_speed import ram_sentence
from gpu_studio.core.memory.weights.headers import MOST_PARAMETERS
from gpu_studio.core.notice import Tone
from gpu_studio.core.units import format_bytes
from gpu_studio.model.memory.fit_question import FitAnswer, FitQuestion, Question
from gpu_studio.model.memory.memory_devices import choice_title
from gpu_studio.ui.eliding import ComboBox
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.speed_card import SpeedCard
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.parts import GAP, Card, Text, button, letters, section, set_property
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.scroll_page import PageColumn

if TYPE_CHECKING:
    from PySide6.QtGui import QShowEvent

    from gpu_studio.core.memory.fit import MemoryNeed
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.theme import Theme

_FIRST = "1 billion"
_ROUNDED_TO = 64 << 20
_RAM = "This is the PC's own memory. Choose a card above to see what fits on it."
_NETWORKS = (*NETWORK_NAMES, "11 million", "124 million", "1 billion", "7 billion", "70 billion")


class FitPage(QWidget):
    """Asks for a network, and answers for the card chosen in the tab."""

    def __init__(self, model: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.fit")
        self._model = model
        self._question = FitQuestion(self)
        self._files: dict[str, Path] = {}
        column = QHBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        page = PageColumn("Will it fit?")
        column.addWidget(page)
        self._speed = SpeedCard(model.bandwidths)
        page.column.addWidget(self._make_network(theme))
        page.column.addWidget(self._speed)
        page.column.addStretch(1)
        self._speed.changed.connect(self._ask)
        self._question.answered.connect(self._show_answer)
        self._question.failed.connect(self._show_failure)
        self._question.delayed.connect(self._show_opening)
        model.chosen_changed.connect(self._ask)
        model.memory_changed.connect(self._ask)
        model.closing.connect(self._question.close)

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_network(self, theme: Theme) -> Card:
        card = Card(name="memory.fit.network")
        card.column.addWidget(section("Your network"))
        self._make_choices()
        label = Text("Parameters")
        label.setBuddy(self._count)
        self._reason = Text(role="muted", name="memory.fit.reason", wraps=True)
        self._open = button(
            "Open weights…",
            self._choose_file,
            name="memory.fit.open",
            tip="A safetensors or GGUF file: only its header is read",
        )
        choices = FlowRow(label, self._count, self._open, self._dtype, self._optimizer, spacing=GAP)
        card.column.addWidget(choices)
        card.column.addWidget(self._speed.choices)
        card.column.addWidget(self._reason)
        self._card_words = Text(name="memory.fit.card", wraps=True)
        card.column.addWidget(self._card_words)
        answers = QHBoxLayout()
        answers.setSpacing(GAP)
        card.column.addLayout(answers)
        self._inference = _FitCard(theme, "inference")
        self._training = _FitCard(theme, "training_fit")
        answers.addWidget(self._inference, 1)
        answers.addWidget(self._training, 1)
        self._sentence = Text(role="muted", name="memory.fit.sentence", wraps=True)
        card.column.addWidget(self._sentence)
        return card

    def _make_choices(self) -> None:
        self._count, self._dtype, self._optimizer = ComboBox(), ComboBox(), ComboBox()
        for box, key, name, tip in (
            (self._count, "parameters", "Number of parameters",
             "A known network such as GPT-2, or a number such as 7B, 350 M, 1e9 or 1,000,000"),
            (self._dtype, "dtype", "Data type",
             "8-bit and 4-bit are GGUF's Q8_0 and Q4_0: blocks with a scale"),
            (self._optimizer, "optimizer", "Optimizer",
             "fused=True needs less memory during a step. AMP computes a float32 network in 16 "
             "bits. With float32 masters, the optimizer keeps float32 copies of a network in 16 "
             "bits."),
        ):  # fmt: skip
            box.setObjectName(f"memory.fit.{key}")
            box.setAccessibleName(name)
            box.setToolTip(tip)
        self._count.setEditable(True)
        self._count.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        if (field := self._count.lineEdit()) is not None:
            field.setAccessibleName("Number of parameters")
        self._count.addItems(_NETWORKS)
        self._count.setCurrentText(_FIRST)
        self._count.setMinimumWidth(letters(self._count, 29))
        self._dtype.addItems(tuple(KEPT_TYPES))
        self._dtype.setCurrentText("float32")
        self._list_plans()
        self._count.editTextChanged.connect(self._ask)
        self._dtype.currentIndexChanged.connect(self._list_plans)
        self._optimizer.currentIndexChanged.connect(self._ask)

    def _list_plans(self) -> None:
        """Offer the optimizers that suit the data type, and keep the choice if it still does."""
        plans = plans_for(self._dtype.currentText())
        last = self._optimizer.currentText()
        with QSignalBlocker(self._optimizer):
            self._optimizer.clear()
            for plan in plans:
                self._optimizer.addItem(plan.words, plan)
            self._optimizer.setCurrentIndex(max(0, self._optimizer.findText(last)))
        self._ask()

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def showEvent(self, event: QShowEvent) -> None:
        """Answer for the card chosen meanwhile."""
        super().showEvent(event)
        self._ask()

    def _card(self) -> ModelledCardChoice | None:
        """Return the chosen card for the model; all used memory counts as its context."""
        chosen, sizes = self._model.chosen, self._model.sizes_bytes
        if chosen.is_modelled and chosen.address is not None:
            return card_at(chosen.address)
        if sizes is None:
            return None
        total_bytes, free_bytes = sizes
        # Rounded, so that small changes do not ask again.
        taken = total_bytes - free_bytes // _ROUNDED_TO * _ROUNDED_TO
        return ModelledCardChoice(
            name=choice_title(chosen), total_bytes=total_bytes, context_bytes=taken
        )

    def _ask(self) -> None:
        if not self.isVisible():
            return
        text, card, is_ram = self._count.currentText(), self._card(), self._model.chosen.is_cpu
        network = self._files.get(text) or known_network(text) or _counted(text)
        self._list_types(isinstance(network, Path))
        for part in (self._card_words, self._inference, self._training, self._optimizer):
            part.setVisible(not is_ram)
        if network is None:
            self._show_reason("Enter a number such as 7B, 350 M or 1,000,000.", is_wrong=True)
        elif card is None:
            self._show_reason("Choose a card above, or a simulated card.", is_wrong=False)
        else:
            self._show_opening()
            if is_ram and not self._question.opening:
                self._show_reason(_RAM, is_wrong=False)
            self._question.ask(
                Question(
                    card=card,
                    network=network,
                    dtype=self._dtype.currentText(),
                    plan=self._optimizer.currentData(),
                    config=self._speed.config,
                    context=self._speed.context,
                    batch=self._speed.batch,
                    is_ram=is_ram,
                )
            )

    def _list_types(self, is_file: bool) -> None:
        """Offer the types of the file's own weights as long as a file is asked about."""
        place = self._dtype.findText(AS_IN_FILE)
        if is_file == (place >= 0):
            return
        with QSignalBlocker(self._dtype):
            if is_file:
                self._dtype.insertItem(0, AS_IN_FILE)
            else:
                was_chosen = self._dtype.currentIndex() == place
                self._dtype.removeItem(place)
                if was_chosen:
                    self._dtype.setCurrentText("float16")
        self._list_plans()

    def _choose_file(self) -> None:
        path = ask_open_path(
            self.window(), "Open a network", "Weights (*.safetensors *.gguf);;All files (*)"
        )  # fmt: skip
        if path:
            name = Path(path).name
            self._files[name] = Path(path)
            if self._count.findText(name) < 0:
                self._count.addItem(name)
            self._count.setCurrentText(name)
            self._list_types(True)
            self._dtype.setCurrentText(AS_IN_FILE)
            self._speed.choose_config(None)

    def _show_opening(self) -> None:
        self._show_reason(self._question.opening, is_wrong=False)

    def _show_reason(self, reason: str, *, is_wrong: bool) -> None:
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        line: QLineEdit | None = self._count.lineEdit()
        if line is not None:
            set_property(line, "invalid", is_wrong)

    # ── answering ────────────────────────────────────────────────────────────────────────────

    def _show_answer(self, answer: FitAnswer) -> None:
        self._show_opening()
        card, network = answer.question.card, answer.model_fit
        self._speed.show_answer(answer, self._model.chosen)
        if answer.question.is_ram:
            self._sentence.setText(ram_sentence(network.reading, card.free_bytes, card.total_bytes))
            self._show_reason(_RAM, is_wrong=False)
            return
        shown = "simulated" if self._model.chosen.is_modelled else "computed, not measured"
        self._card_words.setText(f"{card.name}, {format_bytes(card.free_bytes)} free · {shown}")
        if network.reading.cache_bytes:
            self._inference.show_fit("Inference", network.inference, card)
        else:
            self._inference.show_fit("The weights", network.inference, card, is_plural=True)
        words, training = network.plan.words, network.training
        if training is None:
            kind = "these weights" if network.dtype == AS_IN_FILE else f"weights in {network.dtype}"
            self._training.show_none("Training is not possible", f"PyTorch does not train {kind}.")
        elif network.has_activations:
            self._training.show_fit(f"Training with {words}", training, card)
        else:
            what = f"Weights and {words}"
            self._training.show_fit(what, training, card, is_plural=True, rest="activations")
        self._sentence.setText(network.sentence)

    def _show_failure(self, reason: str) -> None:
        self._speed.show_answer(None, self._model.chosen)
        self._show_reason(reason, is_wrong=False)


def _counted(text: str) -> Network | None:
    """Return a network by its number of parameters; None for another text."""
    count = parse_count(text)
    return Network(parameters=count) if count and count <= MOST_PARAMETERS else None


class _FitCard(Card):
    """One answer with its memory bar."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(name=f"memory.fit.{name}.card")
        self._verdict = Text(role="title", name=f"memory.fit.{name}.verdict", wraps=True)
        self._tank = TankBar(theme, name=f"memory.fit.{name}.tank")
        self._message = Text(role="muted", name=f"memory.fit.{name}.told", wraps=True)
        self._tank.part_described.connect(self._describe_part)
        self._words = ""
        for widget in (self._verdict, self._tank, self._message):
            self.column.addWidget(widget)
        self.column.addStretch(1)

    def show_fit(
        self, what: str, need: MemoryNeed, card: ModelledCardChoice, *, is_plural: bool = False,
        rest: str = "",
    ) -> None:  # fmt: skip
        """Show whether something fits; what is not known of it makes the answer amber."""
        fits, does = ("fit", "do") if is_plural else ("fits", "does")
        tone, verdict = Tone.GOOD, f"✔ {what} {fits}"
        if need.fits is False:
            missing = format_bytes(need.least_bytes - card.free_bytes)
            tone, verdict = Tone.FAILURE, f"✖ {what} {does} not fit: {missing} more needed"
        elif need.fits is None:
            tone, verdict = Tone.AMBER, f"? {what} may fit: nearly all of the room is needed"
        elif rest:
            tone, verdict = Tone.AMBER, f"? {what} {fits}; {rest} are not known"
        self._verdict.setText(verdict)
        self.set_tone(tone)
        tank = need.tank(card)
        beyond = "" if tank.card_bytes is None else " The line marks the end of the card."
        without = f", without {rest}" if rest else ""
        self._words = f"Needs {need.range_text}{without}.{beyond}"
        self._message.setText(self._words)
        self._tank.show_tank(tank)
        self._tank.show()

    def show_none(self, title: str, sentence: str) -> None:
        """Show why there is no answer."""
        self._verdict.setText(title)
        self.set_tone(Tone.QUIET)
        self._words = sentence
        self._message.setText(sentence)
        self._tank.hide()

    def _describe_part(self, shown: str) -> None:
        self._message.setText(shown or self._words)
