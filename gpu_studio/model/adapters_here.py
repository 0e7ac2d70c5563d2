"""What computes on this PC without PyTorch: adapters by their drivers, and NumPy on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal

from gpu_studio.core import limits
from gpu_studio.core.devices.adapters import usual_adapters
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import listed
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pc import Pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject

    from gpu_studio.core.engine import EngineFactory
    from gpu_studio.core.messages.engine_messages import Adapter, EngineDescribed
    from gpu_studio.core.messages.run_messages import WorkloadDescription

_CPU_ALONE = EngineEnvironment(visible_devices="")
"""Of an engine that asks no graphics driver: one has crashed, or hangs."""
_HANGS = "A graphics driver does not answer. Restart the PC, or update it."
_NO_ADAPTER = "No driver of this PC can compute without PyTorch."


class AdaptersHere(Pc):
    """The adapters of this PC, with an engine of their own.

    A graphics driver may crash or hang, and asking it wakes a sleeping card. So the engine starts
    when the user asks for it, and ends as soon as it has nothing to do.

    Args:
        engine_factory: makes the engine without PyTorch.
        here: this PC: its sensors and findings are the same.
        parent: owns it.

    Signals:
        changed(): the drivers are asked, or they have answered.

    Attributes:
        described: what the drivers said last; None before the first answer.
        is_asking: whether they are asked now.
    """

    changed = Signal()

    def __init__(
        self, engine_factory: EngineFactory, here: Pc, parent: QObject | None = None
    ) -> None:
        super().__init__("", engine_factory, None, parent)
        self.sensors, self.doctor = here.sensors, here.doctor
        self._here = here
        self.described: EngineDescribed | None = None
        self.is_asking = False
        self._lack = ""
        self._then: list[Callable[[], object]] = []
        self._patience = QTimer(self, singleShot=True)
        self._patience.timeout.connect(lambda: self._go_on_without(_HANGS))
        self.session.who = "What measures without PyTorch"
        self.session.engine_described.connect(self._on_described)
        self.session.engine_lost.connect(self._on_lost)
        self.session.state_changed.connect(self._on_state_changed)

    # ── what there is ────────────────────────────────────────────────────────────────────────

    @property
    def is_known(self) -> bool:
        """Whether the drivers have answered."""
        return self.described is not None

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        return self.described.adapters if self.described is not None else ()

    @property
    def workloads(self) -> dict[str, WorkloadDescription]:
        """The workloads that run without PyTorch, by their names."""
        described = self.described
        return {one.name: one for one in described.workloads} if described is not None else {}

    def is_usual(self, adapter: Adapter) -> bool:
        """Return whether an adapter is measured unless others are chosen: each card once."""
        return adapter in usual_adapters(self.adapters)

    @property
    def said(self) -> Notice:
        """That the drivers are asked, or what is missing and what to install."""
        if self.is_asking:
            return Notice("Asking the graphics drivers…", Tone.QUIET)
        if self._lack or (self.is_known and not self.adapters):
            return Notice(self._lack or _NO_ADAPTER, Tone.AMBER)
        return Notice()

    def lacks(self, workload: str) -> str:
        """Return why a workload does not run without PyTorch, as a sentence; empty if it does."""
        known = self.workloads
        if workload in known:
            return ""
        titles = listed([one.title for one in known.values()], "or")
        return f"This workload needs PyTorch. Without it, choose {titles}."

    # ── the engine ───────────────────────────────────────────────────────────────────────────

    @property
    def can_ask(self) -> bool:
        """Whether there may be adapters that are not known yet."""
        return not self.adapters and not self.is_asking

    def ask(self, then: Callable[[], object]) -> None:
        """Ask the drivers, also while they are asked already.

        Args:
            then: called once, as soon as `described` says what there is; it may submit requests.
        """
        self._then.append(then)
        if self.is_asking:
            return
        self.is_asking, self._lack = True, ""
        self._patience.start(limits.current.quick_look_ms)
        self.session.restart(EngineEnvironment())
        self.changed.emit()

    def end(self) -> None:
        """End the engine, whatever it does."""
        self.is_asking, self._then = False, []
        self._patience.stop()
        self.session.end()
        self.changed.emit()

    def close(self) -> None:
        """See `Pc.close`; the sensors are those of this PC."""
        self.lab.close()
        self.session.close()

    def _on_described(self, described: EngineDescribed) -> None:
        self.described = described
        self._lack = self._lack or described.cuda_reason or ""
        if self.is_asking:
            self._conclude()

    def _on_lost(self, reason: str) -> None:
        if self.is_asking:
            self._go_on_without(reason)

    def _go_on_without(self, reason: str) -> None:
        """Go on with the CPU alone: a driver has crashed or hangs."""
        self._lack = reason
        if self.session.environment == _CPU_ALONE:
            self.described = None
            self._conclude()
        else:
            QTimer.singleShot(0, self, lambda: self.session.restart(_CPU_ALONE))

    def _conclude(self) -> None:
        self._patience.stop()
        self.is_asking = False
        self.changed.emit()
        waiting, self._then = self._then, []
        for then in waiting:
            then()

    def _on_state_changed(self, state: EngineState) -> None:
        if state is EngineState.READY:
            QTimer.singleShot(0, self, self._rest)

    def _rest(self) -> None:
        """End the engine if nothing waits for it."""
        if self.session.is_free:
            self.session.end()
