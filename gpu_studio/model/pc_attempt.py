"""Tries a PC before it is added: whether it can be reached and used, and what is in it."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.devices.devices import Inventory, short_name, without_maker
from gpu_studio.core.line_trouble import LineProblem, LineTrouble
from gpu_studio.core.messages.line_messages import EngineReadiness
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_bytes
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.pc_line import PcIntroduction, PcPort

_LONGEST_END_MS = 1500
# ssh has reached the PC, and the trouble is what answers there.
_BEYOND_SSH = frozenset(
    (LineProblem.NO_PROGRAM, LineProblem.OTHER_VERSION, LineProblem.NOT_OURS, LineProblem.SILENT)
)


class _Greeted(msgspec.Struct, frozen=True):
    said: PcIntroduction
    took_s: float


class PcAttempt(QObject):
    """Reaches a PC once: its greeting, then its devices. Nothing of it is kept.

    It asks in a thread; what a cancelled thread still answers is dropped.

    Args:
        port: reaches the PC.
        parent: owns the attempt; may outlive who asked, so that a cancelled ssh can end.

    Signals:
        changed(): something else is known, or the attempt is over.

    Attributes:
        is_running: whether the PC is still asked.
        notices: what is known, one line each: reached, program, engine, devices. A line that failed
            is the last one.
        detail: ssh's own last words about a failure; empty without any.
        lacks_program: whether the PC was reached, and has no GPU Studio.
        is_usable: whether the PC can be added.
    """

    changed = Signal()

    def __init__(self, port: PcPort, parent: QObject) -> None:
        super().__init__(parent)
        self._port = port
        self._is_over = threading.Event()
        self.cancel()

    def cancel(self) -> None:
        """Give up, and forget the answers; ssh ends by itself soon."""
        self._is_over.set()
        self._worker: Worker | None = None
        self._address: OtherPc | None = None
        self.notices: tuple[Notice, ...] = ()
        self.detail = ""
        self.is_running = self.is_usable = self.lacks_program = False

    def start(self, address: OtherPc) -> None:
        """Try an address; an attempt that still runs is cancelled."""
        self.cancel()
        self._address, self._is_over = address, threading.Event()
        worker = Worker(partial(self._answers, address, self._is_over), self)
        worker.value_produced.connect(self._on_answer)
        worker.failure_raised.connect(self._on_failure)
        worker.finished.connect(self._on_finished)
        worker.finished.connect(worker.deleteLater)
        self._worker, self.is_running = worker, True
        worker.start()
        self.changed.emit()

    def close(self) -> None:
        """Give up, and wait until nothing is left running."""
        self.cancel()
        for worker in self.findChildren(Worker):
            worker.wait(_LONGEST_END_MS)

    def _answers(
        self, address: OtherPc, is_over: threading.Event
    ) -> Iterator[_Greeted | Inventory | LineTrouble]:
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
            if source.trouble is not None:
                yield source.trouble
        finally:
            is_over.set()
            closer.join()

    def _on_answer(self, answer: _Greeted | Inventory | LineTrouble) -> None:
        if self.sender() is not self._worker:
            return
        if isinstance(answer, LineTrouble):
            self._note_trouble(answer)
            return
        if isinstance(answer, Inventory):
            self.is_usable = True
            self._note(_devices_there(answer))
            return
        said, took = answer.said, f"{answer.took_s:.1f} s"
        self.detail = said.detail if said.trouble is not None else ""
        if said.trouble is not None and said.trouble.problem not in _BEYOND_SSH:
            self._note_trouble(said.trouble)
            return
        self._note(Notice(f"Reached in {took}", Tone.GOOD, "with your ssh, no question asked"))
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
        if self.sender() is self._worker:
            self.detail = failure.message
            self._note_problem(LineProblem.UNKNOWN)

    def _on_finished(self) -> None:
        if self.sender() is not self._worker:
            return
        self._worker, self.is_running = None, False
        if not self.is_usable and all(one.tone is not Tone.FAILURE for one in self.notices):
            self._note_problem(LineProblem.LOST)
        self.changed.emit()

    def _note_problem(self, problem: LineProblem) -> None:
        assert self._address is not None
        self._note_trouble(LineTrouble(problem=problem, pc=self._address.name))

    def _note_trouble(self, trouble: LineTrouble) -> None:
        assert self._address is not None
        self.lacks_program = trouble.problem is LineProblem.NO_PROGRAM
        step = trouble.action(self._address.host)
        ssh = f"ssh: {self.detail}" if self.detail else ""
        self._note(Notice(trouble.sentence, Tone.FAILURE, ssh, next_step=step))

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
