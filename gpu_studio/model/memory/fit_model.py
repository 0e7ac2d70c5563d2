"""“Will it fit?”: four ways to ask, and one form of answer."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.memory.allocator.options import checked_configuration
from gpu_studio.core.memory.answer import FitAnswer, FitVerdict
from gpu_studio.core.memory.fit import ModelFit, TrainingPlan, plans_for
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice, card_at
from gpu_studio.core.memory.networks import AS_IN_FILE, KEPT_TYPES, Network, network_called
from gpu_studio.core.memory.oom_reader import MOST_FILE_BYTES, decoded_text, explain_oom_text
from gpu_studio.core.memory.token_speed import speed_words
from gpu_studio.core.memory.weights.weights_file import ask_network
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.core.user_file import UnusableFileError, read_user_file
from gpu_studio.model.devices.device_board import DeviceRow
from gpu_studio.model.latest import Latest, opening
from gpu_studio.model.memory.memory_devices import choice_title
from gpu_studio.model.memory.what_if_model import WhatIfModel
from gpu_studio.model.page_model import PageModel
from gpu_studio.process.child_call import call_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject

    from gpu_studio.model.memory.memory_model import MemoryModel

NUMBER, FILE, ERROR, HISTORY = "number", "file", "error", "history"
"""The ways to ask."""
OWN = "own"
"""The card with a memory of one's own choice."""
LONGEST_TEXT = 200_000
_AFTER_TYPING_MS = 200
_GIB, _ROUNDED_TO = 1 << 30, 64 << 20
_HISTORIES = (".pickle", ".pkl")
_TEXTS = (".txt", ".log")
_CUT = f"The text is too long. Only its last {LONGEST_TEXT:,} characters are used."
_HINTS = {
    FILE: ("Will this model fit?", "Open a safetensors or GGUF file, or drop it here. Only its "
           "header is read."),
    ERROR: ("Paste an error.", "You will see the memory when it failed, what the error means, and "
            "what helps. It stays on this PC. Errors of any PyTorch since 1.0 work."),
    HISTORY: ("Would your training fit on another card?", "Open a history of PyTorch's memory from "
              "any PC. It is replayed here as on a card of any size, with any setting."),
}  # fmt: skip
_NO_ERROR = FitAnswer(
    (FitVerdict(Notice("Not an out-of-memory error.", Tone.AMBER)),),
    "This text contains no out-of-memory error. Include the lines with “out of memory” or “Tried "
    "to allocate”.",
)


class FitChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        way: which of the others count: `NUMBER`, `FILE`, `ERROR` or `HISTORY`.
        parameters: a known network, or its number of parameters as people write it.
        file, config: a model's file, and its ``config.json`` if that is not beside it.
        tokens: of each text; 0 for the usual number.
        batch: the number of texts at once.
        text: an error.
        is_cut: whether only the end of the pasted text was kept.
        card: the identity of a device, or `OWN` for one with ``own_gib``.
        others_gib: what others hold of the card; 0 for what they hold now.
        conf: the allocator's options for a history.
    """

    way: str = NUMBER
    parameters: str = "1 billion"
    file: Path | None = None
    config: Path | None = None
    dtype: str = "float32"
    optimizer: TrainingPlan = TrainingPlan()
    tokens: int = 0
    batch: int = 1
    text: str = ""
    is_cut: bool = False
    card: str = ""
    own_gib: float = 8.0
    others_gib: float = 0.0
    conf: str = ""


class _Question(NamedTuple):
    choices: FitChoices
    card: ModelledCardChoice | None

    @property
    def subject(self) -> Network | Path | str | None:
        """A network, its file, or the text of an error; None if there is nothing to ask."""
        if self.choices.way == ERROR:
            return self.choices.text.strip() or None
        if self.card is None:
            return None
        is_file = self.choices.way == FILE
        return self.choices.file if is_file else network_called(self.choices.parameters)


class _Found(NamedTuple):
    way: str
    answer: FitAnswer
    device: DeviceRow
    fit: ModelFit | None = None


class FitModel(PageModel):
    """Answers for the card that is chosen in the tab, while the page is seen.

    Attributes:
        what_if: the recorded history.
    """

    def __init__(self, memory: MemoryModel, parent: QObject | None = None) -> None:
        super().__init__(FitChoices(card=memory.chosen.identity), parent)
        self.memory = memory
        self.what_if = WhatIfModel(self)
        self._latest = Latest(self, pause_ms=_AFTER_TYPING_MS)
        self._latest.succeeded.connect(self._on_answered)
        self._latest.failed.connect(self._on_failed)
        self._latest.delayed.connect(self._on_delayed)
        self._reading = Latest(self)
        self._reading.succeeded.connect(self.paste)
        self._reading.failed.connect(self._on_failed)
        self._wanted: _Question | None = None
        self._found: _Found | None = None
        self._read: tuple[tuple[Network | Path, Path | None], Network] | None = None
        self._trouble = Notice()
        memory.chosen_changed.connect(self._on_device_chosen)
        self.follow_seen(self._ask, memory.memory_changed)
        self.what_if.history_opened.connect(self._on_history_opened)
        self.follow_seen(
            self._on_followed, memory.bandwidths.changed, memory.devices.choices_changed,
            self.what_if.changed,
        )  # fmt: skip
        memory.closing.connect(self.close)

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def suited(self, choices: FitChoices) -> FitChoices:
        """Keep types for files and plans for types."""
        if choices.dtype not in self._types_of(choices):
            choices = msgspec.structs.replace(choices, dtype="float16")
        plans = plans_for(choices.dtype)
        if choices.optimizer not in plans:
            choices = msgspec.structs.replace(choices, optimizer=plans[0])
        return choices

    def open_file(self, path: Path) -> None:
        """Ask about a file: a history, a text with an error, or a model's weights."""
        ending = path.suffix.lower()
        if ending in _HISTORIES:
            self.what_if.open(path)
            self.choose(way=HISTORY)
        elif ending in _TEXTS:
            self.choose(way=ERROR)
            self._reading.ask(partial(_text_of, path))
        else:
            self.choose(way=FILE, file=path, dtype=AS_IN_FILE, config=None)

    def paste(self, text: str) -> None:
        """Ask about an error, or about its end if it is long."""
        self.choose(text=text[-LONGEST_TEXT:], is_cut=len(text) > LONGEST_TEXT)

    def see(self, *, is_seen: bool) -> None:
        """Follow the card's memory while the page is visible."""
        self.memory.follow_sensors(is_seen=is_seen)
        super().see(is_seen=is_seen)

    def on_seen(self) -> None:
        """Answer for the card chosen meanwhile; its memory is read once."""
        self.memory.poll()
        self._ask()

    def on_chosen(self) -> None:
        """Answer for the choices; the tab follows a chosen device."""
        self._trouble = Notice()
        if self.choices.card not in (OWN, self.memory.chosen.identity):
            self.memory.devices.choose(self.choices.card)
        self._ask()

    def close(self) -> None:
        """Answer no more, and wait for the threads."""
        for latest in (self._latest, self._reading, self.what_if):
            latest.close()

    def _ask(self) -> None:
        if not self.is_seen:
            return
        chosen, card = self.choices, self._card
        if chosen.way == HISTORY:
            if card is not None and not self.conf_error:
                self.what_if.ask(
                    card_bytes=card.total_bytes, other_bytes=card.context_bytes, conf=chosen.conf
                )
            return
        question = _Question(chosen, card)
        if question.subject is None:
            self._latest.drop()
        elif question != self._wanted:
            self._latest.ask(partial(self._work, question, self._device))
        self._wanted = question

    @property
    def _device(self) -> DeviceRow:
        if self.choices.card != OWN:
            return self.memory.chosen
        at, name = self._own_card.address, self._own_card.name
        return DeviceRow(identity=at, name=name, label=name, address=at, is_modelled=True)

    @property
    def _own_card(self) -> ModelledCardChoice:
        return card_at(f"model:{round(1024 * self.choices.own_gib)}")

    @property
    def _card(self) -> ModelledCardChoice | None:
        """The card with what is in use of it; None if that is not known (yet)."""
        chosen, sizes = self.memory.chosen, self.memory.sizes_bytes
        if self.choices.card == OWN:
            card = self._own_card
        elif chosen.is_modelled and chosen.address is not None:
            card = card_at(chosen.address)
        elif sizes is None:
            return None
        else:
            # Rounded, so that small changes do not ask again.
            used = sizes[0] - sizes[1] // _ROUNDED_TO * _ROUNDED_TO
            card = ModelledCardChoice(
                name=choice_title(chosen), total_bytes=sizes[0], context_bytes=used
            )
        if not self.choices.others_gib:
            return card
        others = min(round(self.choices.others_gib * _GIB), card.total_bytes)
        return msgspec.structs.replace(card, context_bytes=others)

    def _work(self, question: _Question, device: DeviceRow, is_over: Callable[[], bool]) -> _Found:
        """Return the answer; in a thread."""
        (chosen, card), subject = question, question.subject
        if isinstance(subject, str) or subject is None or card is None:
            explained = explain_oom_text(chosen.text)
            answer = explained.answer if explained is not None else _NO_ERROR
            return _Found(chosen.way, answer, device)
        asked = (subject, chosen.config)
        if self._read is None or self._read[0] != asked:
            self._read = asked, ask_network(*asked, call_child, is_over)
        network, tokens = self._read[1], chosen.tokens or None
        fit = ModelFit(card, network, chosen.dtype, chosen.optimizer, tokens, chosen.batch)
        return _Found(chosen.way, fit.answer(is_ram=device.is_cpu), device, fit)

    def _on_answered(self, found: _Found) -> None:
        self._found, self._trouble = found, Notice()
        self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        is_unexpected = failure.kind is FailureKind.INTERNAL
        unknown = "This cannot be computed. The log says why."
        self._found = None
        self._trouble = Notice(unknown if is_unexpected else failure.message, Tone.FAILURE)
        self.changed.emit()

    def _on_delayed(self) -> None:
        subject = self._wanted.subject if self._wanted is not None else None
        path = subject if isinstance(subject, Path) else self.choices.config
        if path is not None and not isinstance(subject, str):
            self._trouble = Notice(opening(path))
            self.changed.emit()

    def _on_device_chosen(self) -> None:
        self.choose(card=self.memory.chosen.identity)
        if self.is_seen:
            self.on_seen()

    def _on_history_opened(self) -> None:
        """Begin with the recorded setting."""
        if self.what_if.history is not None:
            self.choose(conf=self.what_if.history.conf)
            self._ask()

    # ── what the page shows ──────────────────────────────────────────────────────────────────

    @property
    def cards(self) -> list[tuple[str, str]]:
        """The devices by their titles, and one with a memory of one's own choice."""
        devices = self.memory.devices.choices
        return [*((choice_title(one), one.identity) for one in devices), ("Another size…", OWN)]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The types to choose from."""
        return self._types_of(self.choices)

    @staticmethod
    def _types_of(choices: FitChoices) -> tuple[str, ...]:
        is_file = choices.way == FILE and choices.file is not None
        return (*((AS_IN_FILE,) if is_file else ()), *KEPT_TYPES)

    @property
    def plans(self) -> list[tuple[str, TrainingPlan]]:
        """The optimizers to choose from."""
        return [(plan.words, plan) for plan in plans_for(self.choices.dtype)]

    @property
    def file_words(self) -> str:
        """Which files are asked about."""
        chosen = self.choices
        if chosen.way == HISTORY:
            return self.what_if.name
        paths = (chosen.file if chosen.way == FILE else None, chosen.config)
        return ", ".join(file_name(path) for path in paths if path is not None)

    @property
    def is_network_wrong(self) -> bool:
        """Whether the network that was typed is none."""
        return self.choices.way == NUMBER and network_called(self.choices.parameters) is None

    @property
    def conf_error(self) -> str:
        """Why PyTorch would refuse the setting; empty if it would not."""
        try:
            checked_configuration(self.choices.conf)
        except ValueError as error:
            return f"PyTorch would refuse this setting: {error}."
        return ""

    @property
    def trouble(self) -> Notice:
        """Why there is no answer, or what is being opened."""
        way = self.choices.way
        if way == ERROR and self.choices.is_cut:
            return Notice(_CUT, Tone.AMBER)
        if self.is_network_wrong:
            return Notice("Enter a number such as 7B, 350 M or 1,000,000.", Tone.FAILURE)
        if way != ERROR and self._card is None:
            return Notice("This card's memory is not known yet.")
        if way != HISTORY:
            return self._trouble
        return Notice(self.conf_error, Tone.FAILURE) if self.conf_error else self.what_if.notice

    @property
    def _shown(self) -> _Found | None:
        found = self._found
        return found if found is not None and found.way == self.choices.way else None

    @property
    def answer(self) -> FitAnswer:
        """The answer in the chosen way, or what to do for one."""
        way = self.choices.way
        if way == HISTORY and self.what_if.history is not None:
            return self.what_if.answer
        is_asked = way != ERROR or bool(self.choices.text.strip())
        if self._shown is not None and is_asked:
            return self._shown.answer
        if way not in _HINTS or (way == FILE and self.choices.file is not None):
            return FitAnswer((FitVerdict(),))
        headline, sentence = _HINTS[way]
        return FitAnswer((FitVerdict(Notice(headline)),), sentence)

    def verdict(self, number: int) -> FitVerdict:
        """Return the first verdict or the second, which may be empty."""
        verdicts = self.answer.verdicts
        return verdicts[number] if number < len(verdicts) else FitVerdict()

    # ── how fast ─────────────────────────────────────────────────────────────────────────────

    @property
    def speed(self) -> tuple[str, str]:
        """The most tokens a second in a sentence, and what that follows from."""
        found, bandwidths = self._shown, self.memory.bandwidths
        if found is None or found.fit is None:
            return "", ""
        if bandwidths.is_measuring:
            return "Measuring the bandwidth…", ""
        sentence, detail = speed_words(
            found.fit.reading,
            bandwidths.of(found.device),
            device="the CPU" if found.device.is_cpu else "this card",
            is_modelled=found.device.is_modelled,
            is_too_large=found.fit.inference.fits is False,
        )
        return " ".join(filter(None, (bandwidths.trouble, sentence))), detail

    @property
    def unmeasured(self) -> DeviceRow | None:
        """The device whose bandwidth would tell the speed; None if there is none to measure."""
        found = self._shown
        device = found.device if found is not None and found.fit is not None else None
        if device is None or device.is_modelled:
            return None
        return device if self.memory.bandwidths.of(device) is None else None

    @property
    def can_measure(self) -> bool:
        """Whether the engine can measure the bandwidth now."""
        return self.unmeasured is not None and self.memory.bandwidths.can_measure(self.unmeasured)

    def measure(self) -> None:
        """Measure the bandwidth."""
        if self.unmeasured is not None:
            self.memory.bandwidths.measure(self.unmeasured)


def _text_of(path: Path, is_over: Callable[[], bool]) -> str:
    try:
        return decoded_text(read_user_file(path, MOST_FILE_BYTES, is_over))
    except UnusableFileError as error:
        message = f"Cannot read {file_name(path)}: {error}."
        raise StudioError(FailureKind.FILE_REFUSED, message) from error
