"""The findings about this PC, kept up to date, and a test of each card with a real kernel.

The rules and their tables are imported with the first devices, after the window's first paint.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.devices.torch_facts import PcProbed
from gpu_studio.core.program_form import OF_ANOTHER_PC
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors

    # Runs a kernel on every card in a separate process: yields each card when its turn comes, and
    # the outcome of all at the end. It checks regularly whether to stop.
    Probe = Callable[[Callable[[], bool]], Iterator[TorchCard | PcProbed]]

_CHECK = "check"  # the reason for reading the sensors
_LONGEST_END_MS = 1500


class Doctor(QObject):
    """The findings, worst first. `probed` has the results of the last test with a real kernel.

    `system` is the system of another PC; empty for this one.

    Signals:
        findings_changed(): the findings changed.
        check_changed(): a check began, reached the next card or ended.
    """

    findings_changed = Signal()
    check_changed = Signal()

    def __init__(
        self,
        session: EngineSession,
        sensors: Sensors,
        probe: Probe | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._sensors, self._probe = session, sensors, probe
        self.findings: Sequence[Finding] = ()
        """The findings, worst first; empty until devices are found."""
        self._cards: tuple[str, ...] = ()
        self._build: tuple[str, str | None] = ("", None)
        self.probed: PcProbed | None = None
        self.system = ""
        self._turn: TorchCard | None = None
        self._links: dict[str, Link] = {}
        self._worker: Worker | None = None
        self._is_over = threading.Event()
        self._trouble = ""
        sensors.inventory_changed.connect(self._update)
        sensors.reading_taken.connect(self._compare_links)
        session.engine_described.connect(self._update)

    @property
    def is_checking(self) -> bool:
        """Whether a check is running."""
        return self._worker is not None

    @property
    def can_check(self) -> bool:
        """Whether there are cards to test now."""
        engine, inventory = self._session.description, self._sensors.inventory
        cards = inventory.cards if inventory is not None else ()
        is_possible = self._probe is not None and any(card.is_cudas for card in cards)
        has_cuda = engine is not None and engine.cuda_build is not None
        return is_possible and has_cuda and self._session.state.is_idle and not self.is_checking

    @property
    def sentence(self) -> str:
        """The progress or the outcome of the check; empty before the first."""
        if self.is_checking:
            return self._progress()
        if self._trouble:
            return self._trouble
        if self.probed is None:
            return ""
        count = len(self.probed.cards)
        if not count:
            return self.probed.error or "PyTorch found no card to test."
        ran = sum(card.outcome == "ran" for card in self.probed.cards)
        return f"A real kernel ran on {ran} of {count} {'card' if count == 1 else 'cards'}."

    def check(self) -> None:
        """Run a real kernel on every card; creates a CUDA context on each for a few seconds."""
        if not self.can_check:
            return
        self._trouble, self._turn = "", None
        self._is_over.clear()
        self._worker = Worker(self._probe_once, self)
        self._worker.value_produced.connect(self._on_probed)
        self._worker.failure_raised.connect(self._fail)
        self._worker.finished.connect(self._finish)
        self._worker.finished.connect(self._worker.deleteLater)
        self._sensors.want(_CHECK, True)
        self._worker.start()
        self.check_changed.emit()

    def stop(self) -> None:
        """Stop the check and its process; earlier results stay."""
        if self.is_checking:
            self._is_over.set()
            self._trouble = "The test was stopped."
            self.check_changed.emit()

    def close(self) -> None:
        """Stop the check and wait for its end."""
        self._is_over.set()
        if self._worker is not None:
            self._worker.wait(_LONGEST_END_MS)

    def _probe_once(self) -> Iterator[TorchCard | PcProbed]:
        assert self._probe is not None
        yield from self._probe(self._is_over.is_set)

    def _progress(self) -> str:
        if self._is_over.is_set():
            return "Stopping the test…"
        if self._turn is None:
            return "Loading PyTorch in a separate process. This takes up to a minute on a slow PC…"
        return f"Running a small kernel on {self._turn.address}, {self._turn.name}…"

    def _compare_links(self) -> None:
        """Judge again if a card was seen to use another link than before."""
        if self._links != self._sensors.links:
            self._update()

    def _on_probed(self, probed: TorchCard | PcProbed) -> None:
        if self._is_over.is_set():
            return  # an incomplete check says nothing about the other cards
        if isinstance(probed, PcProbed):
            self.probed = probed
            self._update()
        else:
            self._turn = probed
            self.check_changed.emit()

    def _fail(self, _failure: Failure) -> None:
        self._trouble = "Could not start the test. The log says why."

    def _finish(self) -> None:
        self._worker = None
        self._sensors.want(_CHECK, False)
        self.check_changed.emit()

    def _update(self) -> None:
        inventory = self._sensors.inventory
        if inventory is None:
            return
        from gpu_studio.core.devices.findings import find  # 20 ms

        engine = self._session.description
        cards = tuple(card.identity for card in inventory.cards)
        build = (engine.torch_version, engine.cuda_build) if engine is not None else self._build
        if (cards, build) != (self._cards, self._build):
            self.probed = None  # other cards, or another PyTorch: not tested
        self._cards, self._build, self._links = cards, build, dict(self._sensors.links)
        findings = find(
            inventory, engine, probe=self.probed, links=self._links,
            system=self.system or None, program=OF_ANOTHER_PC if self.system else None,
        )  # fmt: skip
        if self.system:  # the window installs and restarts nothing there
            findings = tuple(msgspec.structs.replace(one, action=None) for one in findings)
        self.findings = findings
        self.findings_changed.emit()
