"""The CPU against the cards within seconds, without PyTorch: the first button of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer

from gpu_studio.core import limits
from gpu_studio.core.benchmark.quick_look import quick_look
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.trust import trust_of, trust_sign
from gpu_studio.core.benchmark.verdict import verdict_of
from gpu_studio.core.check.check_record import end_of
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.run_messages import RunInTurns
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_rate, local_now
from gpu_studio.model.page_model import Bar, PageModel

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
    from gpu_studio.model.engine_session import EngineSession, Reply

_CPU_ALONE = EngineEnvironment(visible_devices="")
"""Of an engine that asks no graphics driver: one has crashed, or hangs."""
_MEMORY_TEST = "Testing the memory…"
_TITLES = {"matmul": "matrix product", "copy": "copy"}


class QuickLook(PageModel):
    """Measures once for each `measure`, and says who is faster.

    Args:
        session: an engine without PyTorch; it runs only while there is work.
        parent: owns it.
    """

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent=parent)
        self._session = session
        self._runs: list[Run] = []
        self._groups: list[list[RunWorkload]] = []
        self._reply: Reply | None = None
        self._lack = ""
        self._check: CheckRun | None = None
        self.is_at_work = False
        self._patience = QTimer(self, singleShot=True, interval=limits.current.quick_look_ms)
        self._patience.timeout.connect(self._on_hang)
        session.engine_described.connect(self._on_described)
        session.engine_lost.connect(self._on_lost)

    def measure(self) -> None:
        """Measure the CPU and the cards; a press while it measures changes nothing."""
        if self.is_at_work:
            return
        self._runs, self._groups, self._lack, self._check = [], [], "", None
        self.is_at_work = True
        self._session.restart(EngineEnvironment())
        self._patience.start()
        self.changed.emit()

    @property
    def can_check(self) -> bool:
        """Whether there is a device whose memory can be tested now."""
        return not self.is_at_work and bool(self._checkable)

    @property
    def _checkable(self) -> list[str]:
        return [one.device for one in self.results if not is_cpu(one.device)]

    def check_memory(self) -> None:
        """Test the memory of the first device that is not the CPU."""
        if not self.can_check:
            return
        plan = CheckPlan(device=self._checkable[0], minutes=1, stages=("memory",))
        self._check = CheckRun(plan, local_now())
        self.is_at_work = True
        self._session.restart(EngineEnvironment())
        self._patience.start()
        self.changed.emit()

    def stop(self) -> None:
        """End the measurement; what it has found stays."""
        self._groups, self._reply = [], None
        self._patience.stop()
        self._session.end()
        self.is_at_work = False
        self.changed.emit()

    # ── in words ─────────────────────────────────────────────────────────────────────────────────

    @property
    def doing(self) -> str:
        """What happens now; empty if nothing does."""
        if not self.is_at_work:
            return ""
        if self._check is not None:
            present = self._check.present
            return f"{present.doing}…" if present is not None and present.doing else _MEMORY_TEST
        if not self._runs:
            return "Asking the graphics drivers…"
        run = next((one for one in self._runs if not one.state.is_over), self._runs[-1])
        title = _TITLES.get(run.request.workload, run.request.workload)
        return f"Measuring: {title}, in turns"

    @property
    def share(self) -> float:
        """How much of the measurement is done, 0 to 1."""
        if self._check is not None:
            return self._check.present.fraction if self._check.present is not None else 0.0
        all_runs = len(self._runs) + sum(map(len, self._groups))
        done = sum(one.progress for one in self._runs)
        return done / all_runs if all_runs else 0.0

    @property
    def results(self) -> list[RunFinished]:
        return [run.result for run in self._runs if run.result is not None]

    @property
    def verdict(self) -> Notice:
        """Who is faster at what computes; the CPU's own time where nothing else is."""
        results = [one for one in self.results if one.workload == "matmul"]
        return verdict_of(results, _TITLES)

    @property
    def second_verdict(self) -> Notice:
        """Who is faster at what copies."""
        return verdict_of([one for one in self.results if one.workload == "copy"], _TITLES)

    @property
    def trust(self) -> Notice:
        """How far to trust the results."""
        return trust_of([(one.device_name, one) for one in self.results])

    @property
    def memory(self) -> Notice:
        """What the test of the memory says, or does."""
        if self._check is None:
            return Notice()
        if self.is_at_work:
            return Notice(self.doing)
        record = self._check.record()
        return Notice(f"Memory: {record.sentence}", end_of(record).tone)

    @property
    def bars(self) -> list[Bar]:
        """The speed of each device in the product of matrices."""
        return [
            Bar(
                name=one.device_name,
                value=one.throughput,
                text=format_rate(one.throughput, one.throughput_unit),
                device=one.device,
                tip=trust_sign(one),
            )
            for one in self.results
            if one.workload == "matmul"
        ]

    @property
    def lack(self) -> Notice:
        """What is missing, and what to install; and what failed."""
        failed = [run.failure.message for run in self._runs if run.failure is not None]
        words = " ".join(filter(None, (self._lack, *dict.fromkeys(failed))))
        return Notice(words, Tone.AMBER) if words else Notice()

    # ── the engine ───────────────────────────────────────────────────────────────────────────────

    def _on_described(self, described: EngineDescribed) -> None:
        self._patience.stop()
        if self._check is not None and self.is_at_work:
            QTimer.singleShot(0, self, self._ask_for_check)
            return
        if not self.is_at_work or self._runs:
            return
        self._lack = self._lack or described.cuda_reason or ""
        groups: dict[str, list[RunWorkload]] = {}
        for request in quick_look(described):
            groups.setdefault(request.workload, []).append(request)
        self._groups = [*groups.values()]
        QTimer.singleShot(0, self, self._next)  # the session has to be free again

    def _next(self) -> None:
        if not self._groups:
            if self.is_at_work:
                self.stop()
            return
        requests = self._groups.pop(0)
        self._runs += [Run(one) for one in requests]
        self._reply = self._session.submit(RunInTurns(runs=tuple(requests)))
        self._reply.event_received.connect(self._on_event)
        self._reply.finished.connect(self._on_finished)
        self.changed.emit()

    def _on_finished(self) -> None:
        """Go on, unless this is the end of a measurement that was stopped."""
        if self._reply is not None and self._reply.is_finished:
            self._reply = None
            self._next()

    def _ask_for_check(self) -> None:
        request = self._check.next_request() if self._check is not None else None
        if request is None or not self.is_at_work:
            return
        self._reply = self._session.submit(request)
        self._reply.event_received.connect(self._on_check_event)
        self._reply.finished.connect(self._on_finished)

    def _on_check_event(self, event: Event) -> None:
        if self._check is not None:
            self._check.apply(event)
            self.changed.emit()

    def _on_event(self, event: Event) -> None:
        changed = [run.apply(event) for run in self._runs]  # the end of the engine ends them all
        if any(changed):
            self.changed.emit()

    def _on_lost(self, reason: str) -> None:
        if self.is_at_work and self._check is not None:
            self._lack = reason
            self.stop()
        elif self.is_at_work and not self._runs:
            self._without_drivers(reason)

    def _on_hang(self) -> None:
        self._without_drivers("A graphics driver does not answer. Restart the PC, or update it.")

    def _without_drivers(self, reason: str) -> None:
        """Measure the CPU alone: a driver has crashed or hangs."""
        self._patience.stop()
        if self._session.environment == _CPU_ALONE or self._check is not None:
            self._lack = reason
            self.stop()
            return
        self._lack = reason
        QTimer.singleShot(0, self, lambda: self._session.restart(_CPU_ALONE))
