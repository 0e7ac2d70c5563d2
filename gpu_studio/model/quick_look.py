"""The CPU against the cards within seconds, without PyTorch: the first button of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.quick_look import quick_look
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.trust import trust_of, trust_sign
from gpu_studio.core.benchmark.verdict import verdict_of
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.run_messages import RunInTurns
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_rate
from gpu_studio.model.page_model import Bar, PageModel

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
    from gpu_studio.model.adapters_here import AdaptersHere
    from gpu_studio.model.engine_session import Reply


_TITLES = {"matmul": "matrix product", "copy": "copy"}


class QuickLook(PageModel):
    """Measures once for each `measure`, and says who is faster.

    Args:
        adapters: measured with their engine.
        parent: owns it.
    """

    def __init__(self, adapters: AdaptersHere, parent: QObject | None = None) -> None:
        super().__init__(parent=parent)
        self._adapters = adapters
        self._runs: list[Run] = []
        self._groups: list[list[RunWorkload]] = []
        self._reply: Reply | None = None
        self.is_at_work = False

    def measure(self) -> None:
        """Measure the CPU and the cards; a press while it measures changes nothing."""
        if self.is_at_work:
            return
        self._runs, self._groups = [], []
        self.is_at_work = True
        self._adapters.ask(self._on_answered)
        self.changed.emit()

    @property
    def next_device(self) -> str:
        """The identity of the device to race and to test next; empty if there is none."""
        measured = [one.device for one in self.results if not is_cpu(one.device)]
        known = (one.identity for one in self._adapters.adapters if one.address in measured)
        return "" if self.is_at_work else next(known, "")

    def stop(self) -> None:
        """End the measurement; what it has found stays."""
        self._groups, self._reply = [], None
        self.is_at_work = False
        self._adapters.end()
        self.changed.emit()

    # ── in words ─────────────────────────────────────────────────────────────────────────────────

    @property
    def doing(self) -> str:
        """What happens now; empty if nothing does."""
        if not self.is_at_work:
            return ""
        if not self._runs:
            return self._adapters.said.sentence
        run = next((one for one in self._runs if not one.state.is_over), self._runs[-1])
        title = _TITLES.get(run.request.workload, run.request.workload)
        return f"Measuring: {title}, in turns"

    @property
    def share(self) -> float:
        """How much of the measurement is done, 0 to 1."""
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
        lack = "" if self._adapters.is_asking else self._adapters.said.sentence
        words = " ".join(filter(None, (lack, *dict.fromkeys(failed))))
        return Notice(words, Tone.AMBER) if words else Notice()

    # ── the engine ───────────────────────────────────────────────────────────────────────────────

    def _on_answered(self) -> None:
        groups: dict[str, list[RunWorkload]] = {}
        described = self._adapters.described
        for request in quick_look(described) if described is not None else ():
            groups.setdefault(request.workload, []).append(request)
        self._groups = [*groups.values()]
        self._next()

    def _next(self) -> None:
        if not self._groups:
            if self.is_at_work:
                self.stop()
            return
        requests = self._groups.pop(0)
        self._runs += [Run(one) for one in requests]
        self._reply = self._adapters.session.submit(RunInTurns(runs=tuple(requests)))
        self._reply.event_received.connect(self._on_event)
        self._reply.finished.connect(self._on_finished)
        self.changed.emit()

    def _on_finished(self) -> None:
        """Go on, unless this is the end of a measurement that was stopped."""
        if self._reply is not None and self._reply.is_finished:
            self._reply = None
            self._next()

    def _on_event(self, event: Event) -> None:
        changed = [run.apply(event) for run in self._runs]  # the end of the engine ends them all
        if any(changed):
            self.changed.emit()
