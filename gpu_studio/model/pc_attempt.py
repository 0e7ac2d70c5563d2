"""An attempt to reach a PC that the user may add: what is there, or why it cannot be used."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.devices import Inventory, short_name, without_maker
from gpu_studio.core.line_trouble import LineProblem, LineTrouble, answer_words
from gpu_studio.core.messages.line_messages import EngineReadiness
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_bytes
from gpu_studio.model.pc_errand import PcErrand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.pc_line import PcIntroduction

# ssh has reached the PC, and the trouble is what answers there.
_BEYOND_SSH = frozenset(
    (LineProblem.NO_PROGRAM, LineProblem.OTHER_VERSION, LineProblem.NOT_OURS, LineProblem.SILENT)
)


class _Greeted(msgspec.Struct, frozen=True):
    said: PcIntroduction
    took_s: float


class PcAttempt(PcErrand):
    """Reaches a PC once: its greeting, then its devices. Nothing of it is kept.

    Attributes:
        notices: what is known, one line each: reached, program, engine, devices. A line that failed
            is the last one.
        detail: ssh's own last words about a failure; empty without any.
        lacks_program: whether the PC was reached, and has no GPU Studio.
        is_usable: whether the PC can be added.
    """

    def start(self, address: OtherPc) -> None:
        """Try an address; an attempt that still runs is cancelled."""
        self._start(partial(self._answers, address))
        self._address: OtherPc | None = address
        self.changed.emit()

    def _forget(self) -> None:
        self._address = None
        self.notices: tuple[Notice, ...] = ()
        self.detail = ""
        self.is_usable = self.lacks_program = False

    def _answers(
        self, address: OtherPc, is_over: threading.Event
    ) -> Iterator[_Greeted | Inventory]:
        began_s = time.perf_counter()
        said = self._port.greet(address, is_over.is_set)
        if is_over.is_set():
            return
        yield _Greeted(said, time.perf_counter() - began_s)
        if said.trouble is not None:
            return
        source = self._port.sensors(said.pc)
        closer = threading.Thread(target=_close_when, args=(is_over, source.close), daemon=True)
        closer.start()
        try:
            for event in source.readings():
                if isinstance(event, Inventory):
                    yield event
                    return
        finally:
            is_over.set()
            closer.join()

    def _on_answer(self, answer: _Greeted | Inventory) -> None:
        if isinstance(answer, Inventory):
            self.is_usable = True
            self._note(_devices_there(answer))
            return
        said, took = answer.said, f"{answer.took_s:.1f} s"
        self.detail = said.detail if said.trouble is not None else ""
        if said.trouble is not None and said.trouble.problem not in _BEYOND_SSH:
            self._note_trouble(said.trouble)
            return
        how = "with your ssh, no question asked"
        if said.answer_s is not None:
            how += f"; {answer_words(said.answer_s)}"
        self._note(Notice(f"Reached in {took}", Tone.GOOD, how))
        if said.trouble is not None:
            self._note_trouble(said.trouble)
        elif said.greeting is not None:
            version = said.greeting.version
            self._note(Notice(f"Found GPU Studio {version}", Tone.GOOD, "the same as here"))
            self._note(self._engine_there(said.greeting.engine))

    def _engine_there(self, readiness: EngineReadiness) -> Notice:
        if readiness is EngineReadiness.READY:
            return Notice("Engine ready", Tone.GOOD, "nothing to install")
        assert self._address is not None
        missing = LineTrouble(problem=LineProblem.NO_ENGINE, pc=self._address.name)
        step = missing.action(self._address.host)
        detail = "Its sensors can be shown already."
        return Notice(missing.sentence, Tone.AMBER, detail, next_step=step)

    def _on_failure(self, failure: Failure) -> None:
        self.detail = failure.message
        self._note_problem(LineProblem.UNKNOWN)

    def _on_end(self) -> None:
        if not self.is_usable and all(one.tone is not Tone.FAILURE for one in self.notices):
            self._note_problem(LineProblem.LOST)

    def _note_problem(self, problem: LineProblem) -> None:
        assert self._address is not None
        self._note_trouble(LineTrouble(problem=problem, pc=self._address.name))

    def _note_trouble(self, trouble: LineTrouble) -> None:
        assert self._address is not None
        self.lacks_program = trouble.problem is LineProblem.NO_PROGRAM
        step = trouble.action(self._address.host)
        self._note(Notice(trouble.sentence, Tone.FAILURE, next_step=step))

    def _note(self, notice: Notice) -> None:
        self.notices = (*self.notices, notice)
        self.changed.emit()


def _close_when(is_over: threading.Event, close: Callable[[], None]) -> None:
    is_over.wait()
    close()


def _devices_there(inventory: Inventory) -> Notice:
    cpu = short_name(inventory.cpu.name)
    if not inventory.cards:
        return Notice(cpu, Tone.GOOD, "and no graphics card")
    cards = ", ".join(_card_words(card) for card in inventory.cards)
    return Notice(cards, Tone.GOOD, f"and {cpu}")


def _card_words(card: Device) -> str:
    name = without_maker(card.name) or "a card"
    size_bytes = card.memory_total_bytes
    return name if size_bytes is None else f"{name}, {format_bytes(size_bytes)}"
