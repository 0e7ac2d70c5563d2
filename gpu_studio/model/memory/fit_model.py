"""“Will it fit?”: three ways to ask, and one form of answer."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import Signal

from gpu_studio.core.memory.allocator.options import checked_configuration
from gpu_studio.core.memory.fit import ModelFit, bandwidth_of, bandwidth_request, speed_words
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice, card_at
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, network_called
from gpu_studio.core.memory.replay.replay_call import (
    AnsweredWhatIf,
    AskWhatIf,
    NoHistory,
    OpenedHistory,
    OpenHistory,
    ask,
)
from gpu_studio.core.memory.replay.what_if_words import history_answer
from gpu_studio.core.memory.tank import FitAnswer, FitVerdict
from gpu_studio.core.memory.weights_file import ask_network
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.core.units import format_gib
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.latest import Latest
from gpu_studio.model.memory.memory_model import choice_title
from gpu_studio.model.page_model import PageModel
from gpu_studio.process.child_call import call_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject

    from gpu_studio.core.memory.replay.replay_call import Answer, Question
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.memory.memory_model import MemoryModel

NUMBER, FILE, HISTORY = "number", "file", "history"
"""The ways to ask."""
OWN = "own"
"""The card with a memory of one's own choice."""
_AFTER_CHOOSING_MS = 150
_GIB, _ROUNDED_TO = 1 << 30, 64 << 20
_HISTORIES = (".pickle", ".pkl")
_HINTS = {
    FILE: ("Will this model fit?", "Open a safetensors or GGUF file, or drop it here. Only its "
           "header is read."),
    HISTORY: ("Would your training fit on another card?", "Open a history of PyTorch's memory from "
              "any PC. It is replayed here as on a card of any size, with any setting."),
}  # fmt: skip


class FitChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        way: which of the others count: `NUMBER`, `FILE` or `HISTORY`.
        parameters: a known network, or its number of parameters as people write it, in a `dtype`.
        plan: how to train: a key of `core.memory.fit.PLANS`.
        tokens: of each text; 0 for the usual number.
        batch: the number of texts at once.
        card: the identity of a device, or `OWN` for one with ``own_gib``.
        others_gib: what others hold of the card; 0 for what they hold now.
        conf: the allocator's options for a history.
    """

    way: str = NUMBER
    parameters: str = "1 billion"
    dtype: str = "float32"
    plan: str = "Adam"
    tokens: int = 0
    batch: int = 1
    card: str = ""
    own_gib: float = 8.0
    others_gib: float = 0.0
    conf: str = ""


class FitModel(PageModel):
    """Answers for the card that is chosen in the tab, while the page is seen.

    Signals:
        no_history_found(Path): a file is a snapshot of one moment.

    Attributes:
        history: the recorded history that is open; None before the first.
    """

    no_history_found = Signal(object)

    def __init__(self, memory: MemoryModel, parent: QObject | None = None) -> None:
        super().__init__(FitChoices(card=memory.chosen.identity), parent)
        self.memory = memory
        self._file = Latest(self)
        self._file.succeeded.connect(self._on_opened)
        self._file.failed.connect(self.changed)
        self._file.delayed.connect(self.changed)
        self._path, self._way = Path(), ""  # what is opened, and for which way
        self._names: dict[str, str] = {}  # of the open files, by the way
        self._network: Network | None = None
        self.history: OpenedHistory | None = None
        self._replay = Latest(self, pause_ms=_AFTER_CHOOSING_MS)
        self._replay.succeeded.connect(self._on_replayed)
        self._replay.failed.connect(self.changed)
        self._question: AskWhatIf | None = None
        self._replayed: AnsweredWhatIf | None = None
        self._last_card: ModelledCardChoice | None = None
        self._bandwidths: dict[str, float] = {}  # of this session, by the device's identity
        self._measurement: Reply | None = None
        self._unmeasured_why = ""
        memory.chosen_changed.connect(self._on_device_chosen)
        self.follow_seen(self._on_memory_changed, memory.memory_changed)
        self.follow_seen(self._on_followed, memory.session_changed, memory.devices.choices_changed)
        memory.studio.closing.connect(self.close)

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def open_file(self, path: Path) -> None:
        """Ask about a file: a history, or a model's weights."""
        self._path = path
        if path.suffix.lower() in _HISTORIES:  # the open one stays until it is read
            if self._network is None:  # a model that is still being read is not asked for any more
                self._names.pop(FILE, None)
            self._way, question = HISTORY, OpenHistory(path=os.fsencode(path))
            self._file.ask(partial(_asked, question), path)
        else:
            self._way, self._network, self._names[FILE] = FILE, None, file_name(path)
            self._file.ask(partial(ask_network, path, call_child), path)
        self.choose(way=self._way)
        self.changed.emit()

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
        if self.choices.card not in (OWN, self.memory.chosen.identity):
            self.memory.devices.choose(self.choices.card)
        self._ask()

    def close(self) -> None:
        """Answer no more, and wait for the threads."""
        for latest in (self._file, self._replay):
            latest.close()

    def _ask(self) -> None:
        """Replay the history on the card, once for each."""
        chosen, card, history = self.choices, self._card, self.history
        is_asked = self.is_seen and chosen.way == HISTORY and not self.conf_error
        if not is_asked or card is None or history is None:
            return
        # The history is large and the same for all: it is added when the question is asked.
        question = AskWhatIf(
            history=b"", card_bytes=card.total_bytes, other_bytes=card.context_bytes,
            conf=chosen.conf,
        )  # fmt: skip
        if question != self._question:
            self._question, self._replayed = question, None
            whole = msgspec.structs.replace(question, history=history.history)
            self._replay.ask(partial(_asked, whole))

    def _on_memory_changed(self) -> None:
        if self._card != self._last_card:
            self._last_card = self._card
            self._ask()
            self.changed.emit()

    @property
    def _is_simulated(self) -> bool:
        return self.choices.card == OWN or self.memory.chosen.is_modelled

    @property
    def _is_cpu(self) -> bool:
        return self.choices.card != OWN and self.memory.chosen.is_cpu

    @property
    def _card(self) -> ModelledCardChoice | None:
        """The card with what is in use of it; None if that is not known (yet)."""
        chosen, sizes = self.memory.chosen, self.memory.sizes_bytes
        if self.choices.card == OWN:
            card = card_at(f"model:{round(1024 * self.choices.own_gib)}")
        elif chosen.is_modelled and chosen.address is not None:
            card = card_at(chosen.address)
        elif sizes is None:
            return None
        else:  # rounded, so that small changes change no answer
            used = sizes[0] - sizes[1] // _ROUNDED_TO * _ROUNDED_TO
            card = ModelledCardChoice(
                name=choice_title(chosen), total_bytes=sizes[0], context_bytes=used
            )
        if not self.choices.others_gib:
            return card
        others = min(round(self.choices.others_gib * _GIB), card.total_bytes)
        return msgspec.structs.replace(card, context_bytes=others)

    def _on_opened(self, answer: Network | OpenedHistory | NoHistory) -> None:
        if isinstance(answer, Network):
            self._network = answer
        elif isinstance(answer, NoHistory):
            words = (
                f"{file_name(self._path)} is a snapshot of one moment, without a history. “Record "
                "one” has the lines that record a history."
            )
            self._file.notice = Notice(words, Tone.AMBER)
            self.no_history_found.emit(self._path)
        else:
            self.history, self._names[HISTORY] = answer, file_name(self._path)
            self._question = self._replayed = None
            self.choose(conf=answer.facts.conf)  # begin with the recorded setting
            self._ask()
        self.changed.emit()

    def _on_replayed(self, answer: AnsweredWhatIf) -> None:
        self._replayed = answer
        self.changed.emit()

    def _on_device_chosen(self) -> None:
        self.choose(card=self.memory.chosen.identity)
        if self.is_seen:
            self.on_seen()

    # ── what the page shows ──────────────────────────────────────────────────────────────────

    @property
    def cards(self) -> list[tuple[str, str]]:
        """The devices by their titles, and one with a memory of one's own choice."""
        devices = self.memory.devices.choices
        return [*((choice_title(one), one.identity) for one in devices), ("Another size…", OWN)]

    @property
    def file_words(self) -> str:
        """Which file is asked about."""
        return self._names.get(self.choices.way, "")

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
        if self.is_network_wrong:
            return Notice("Enter a number such as 7B, 350 M or 1,000,000.", Tone.FAILURE)
        if self._card is None:
            return Notice("This card's memory is not known yet.")
        if self.choices.way == HISTORY and self.conf_error:
            return Notice(self.conf_error, Tone.FAILURE)
        return self._file.notice if self.choices.way == self._way else Notice()

    @property
    def _fit(self) -> ModelFit | None:
        """The model on the card; None in other ways, or if one of them is not known (yet)."""
        chosen, card, network, kind = self.choices, self._card, None, AS_IN_FILE
        if chosen.way == NUMBER:
            network, kind = network_called(chosen.parameters), chosen.dtype
        elif chosen.way == FILE:
            network = self._network
        if card is None or network is None:
            return None
        return ModelFit(card, network, kind, chosen.plan, chosen.tokens, chosen.batch)

    @property
    def answer(self) -> FitAnswer:
        """The answer in the chosen way, or what to do for one."""
        way, fit = self.choices.way, self._fit
        if fit is not None:
            return fit.answer(is_ram=self._is_cpu)
        if way == HISTORY and self.history is not None:
            if self._replayed is not None:
                return history_answer(self.history, self._replayed.found)
            trouble = self._replay.notice.sentence
            words = Notice("No answer" if trouble else "Replaying…", Tone.QUIET)
            return FitAnswer((FitVerdict(words),), trouble)
        if way not in _HINTS or (way == FILE and self.file_words):
            return FitAnswer((FitVerdict(),))
        headline, sentence = _HINTS[way]
        return FitAnswer((FitVerdict(Notice(headline)),), sentence)

    @property
    def lines_at_peak(self) -> list[tuple[str, str]]:
        """Which lines of code held most when the most was allocated."""
        return [
            (held.line or "Unknown, or from before the history", format_gib(held.size_bytes))
            for held in (self.history.facts.at_peak if self.history is not None else ())
        ]

    def verdict(self, number: int) -> FitVerdict:
        """Return the first verdict or the second, which may be empty."""
        verdicts = self.answer.verdicts
        return verdicts[number] if number < len(verdicts) else FitVerdict()

    # ── how fast ─────────────────────────────────────────────────────────────────────────────

    @property
    def speed(self) -> tuple[str, str]:
        """The most tokens a second in a sentence, and what that follows from."""
        fit, bandwidth = self._fit, self._bandwidths.get(self.choices.card)
        if fit is None:
            return "", ""
        if self._measurement is not None:
            return "Measuring the bandwidth…", ""
        device = "the CPU" if self._is_cpu else "this card"
        is_simulated = self._is_simulated
        sentence, detail = speed_words(fit, bandwidth, device=device, is_modelled=is_simulated)
        return " ".join(filter(None, (self._unmeasured_why, sentence))), detail

    @property
    def is_unmeasured(self) -> bool:
        """Whether a device's bandwidth would tell the speed."""
        is_known = self._is_simulated or self.choices.card in self._bandwidths
        return self._fit is not None and not is_known

    @property
    def can_measure(self) -> bool:
        """Whether the engine can measure the bandwidth now."""
        device, state = self.memory.chosen, self.memory.studio.session.state
        can_ask = state is EngineState.READY and self._measurement is None
        return self.is_unmeasured and can_ask and not device.pc and device.address is not None

    def measure(self) -> None:
        """Measure the bandwidth, in about two seconds."""
        device = self.memory.chosen
        if self.can_measure and device.address is not None:
            request = bandwidth_request(device.address, "bandwidth")
            self._measurement = reply = self.memory.studio.session.submit(request)
            self._unmeasured_why = ""
            reply.finished.connect(partial(self._on_measured, device.identity))
            self.changed.emit()

    def _on_measured(self, identity: str) -> None:
        reply, self._measurement = self._measurement, None
        match reply.last if reply is not None else None:
            case RunFinished() as result if (bandwidth := bandwidth_of(result)) is not None:
                self._bandwidths[identity] = bandwidth
            case RunFailed(failure=failure) | RequestFailed(failure=failure):
                self._unmeasured_why = failure.message
            case EngineEnded():
                self._unmeasured_why = "PyTorch ended during the measurement."
        self.changed.emit()


def _asked(question: Question, is_over: Callable[[], bool]) -> Answer:
    return ask(question, call_child, is_over)
