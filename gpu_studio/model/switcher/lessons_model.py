"""The Lessons page: mistakes that are made on purpose and fixed, and experiments."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.options import (
    are_ways_kept_busy,
    compare_ways,
    findings_of,
    mode_words,
)
from gpu_studio.core.benchmark.plan import in_turns
from gpu_studio.core.benchmark.run import PARTS_BESIDE_MEDIAN, Run, RunState
from gpu_studio.core.benchmark.trust import trust_sign
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.pitfall_messages import (
    PitfallDescription,
    PitfallFailed,
    PitfallFinished,
    RunPitfall,
)
from gpu_studio.core.messages.run_messages import RunStarted, RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.pitfall_words import (
    changed_lines,
    compare_parts,
    compared_figures,
    format_figure,
    has_paid,
    is_disturbed,
    is_reached,
)
from gpu_studio.core.switcher.placement_words import explain_end, explain_failure
from gpu_studio.core.units import format_bytes, format_duration, format_percent
from gpu_studio.model.page_model import WORK, Bar, PageModel
from gpu_studio.model.pages import LESSONS
from gpu_studio.model.run_queue import RunQueue, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.pitfall_messages import (
        Figure,
        PitfallOutcome,
    )
    from gpu_studio.core.messages.run_messages import (
        RunFinished,
        WorkloadDescription,
    )
    from gpu_studio.core.switcher.pitfall_words import ChangedLine
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.studio import Studio


_numbers = itertools.count(1)
_BUDGET_S = 1.0
_TITLES = {"broken": "Broken", "fixed": "Fixed"}


SEVERAL_CARDS = "data_parallel"

EXPERIMENTS = (
    PitfallDescription(
        name="dataloader", title="Feeding the card", shows="ways to copy",
        sentence="Compare the ways in which a batch comes to the card.",
        why="Your data is in the PC's memory, but a card computes in its own. Each way of copying "
        "a batch takes another time and other memory.",
    ),
    PitfallDescription(
        name="train_step", title="AMP", shows="mixed precision",
        sentence="Train with and without automatic mixed precision.",
        why="Automatic mixed precision multiplies in 16 bits and keeps the weights in 32 bits. It "
        "helps on cards with hardware support. The loss should take the same course.",
    ),
    PitfallDescription(
        name="conv2d", title="Same numbers twice", shows="what it costs",
        sentence="Compare the ways in which cuDNN chooses its algorithm.",
        why="cuDNN has several algorithms for a convolution. “benchmark” times them first and uses "
        "the fastest. “deterministic” uses only algorithms with bit-for-bit reproducible results.",
    ),
    PitfallDescription(
        name=SEVERAL_CARDS, title="Several cards", shows="a split batch",
        sentence="Split one batch over several cards.",
        why="Each card learns from a part of the batch, and their gradients are combined. It helps "
        "if computing takes longer than combining the results.",
    ),
)  # fmt: skip
WAYS = {
    SEVERAL_CARDS: (
        {"way": "DataParallel", "processes": "1"},
        {"way": "DataParallel", "processes": "2"},
        {"way": "DistributedDataParallel", "processes": "2"},
    )
}
"""The options of each way, by workload; of the others, every value of the first option."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a lesson so far, and on which device."""

    device: str = ""
    broken: PitfallOutcome | None = None
    fixed: PitfallOutcome | None = None
    broken_snippet: str = ""
    fixed_snippet: str = ""
    untested: str = ""
    failure: str = ""
    runs: tuple[Run, ...] = ()


class PartWords(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the broken or of the fixed code; an empty title if it has not run."""

    title: str = ""
    sentence: str = ""
    error: str = ""
    tone: Tone = Tone.PLAIN


class LessonChoices(msgspec.Struct, frozen=True):
    """The lesson and the device, by name; empty for the first."""

    lesson: str = ""
    device: str = ""


class LessonsModel(PageModel):
    """Runs one lesson at a time, and keeps what came of each."""

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(LessonChoices(), parent)
        self._studio, self._session, self._board = studio, studio.session, studio.board
        self._tried: dict[str, Tried] = {}
        self._running = ""
        self._reply: Reply | None = None
        self._queue = RunQueue(self)
        self._queue.event_received.connect(self._on_run_event)
        self._queue.finished.connect(self._on_runs_finished)
        self.follow(self._session.state_changed, self._board.changed)
        self.follow(self._session.engine_described, studio.settings.choices_changed)

    # ── what there is to choose ──────────────────────────────────────────────────────────────

    @property
    def lessons(self) -> tuple[PitfallDescription, ...]:
        return (*self.mistakes, *self.experiments)

    @property
    def mistakes(self) -> tuple[PitfallDescription, ...]:
        """The mistakes that PyTorch's process can make; none before it has started."""
        description = self._session.description
        return description.pitfalls if description is not None else ()

    @property
    def experiments(self) -> tuple[PitfallDescription, ...]:
        """The experiments that are possible here."""
        description = self._session.description
        known = {one.name for one in description.workloads} if description is not None else set()
        if sum(not card.pc for card in self._board.usable_cards) < 2:
            known.discard(SEVERAL_CARDS)
        return tuple(one for one in EXPERIMENTS if one.name in known)

    @property
    def lesson(self) -> PitfallDescription | None:
        """The chosen lesson."""
        lessons = self.lessons
        chosen = (one for one in lessons if one.name == self.choices.lesson)
        return next(chosen, next(iter(lessons), None))

    @property
    def is_experiment(self) -> bool:
        return self.lesson in self.experiments

    @property
    def is_mistake(self) -> bool:
        return self.lesson in self.mistakes

    @property
    def is_broken(self) -> bool:
        """Whether the mistake was made and not fixed yet."""
        return self._shown.broken is not None and self._shown.fixed is None

    @property
    def rows(self) -> tuple[DeviceRow, ...]:
        """The devices for the lesson: a mistake needs a card; without one, the CPU stands in."""
        cards, workload = self._board.usable_cards, self._workload
        if workload is not None:
            rows = (*cards, *self._board.cpus)
            return tuple(row for row in rows if row.address and workload.runs_on(row.address))
        return cards if any(not card.pc for card in cards) else (self._board.cpu, *cards)

    @property
    def devices(self) -> list[tuple[str, str]]:
        return [(row.number or "", row.identity) for row in self.rows] if self.lesson else []

    @property
    def reason(self) -> str:
        """Why the lesson cannot run here; empty if it can."""
        workload = self._workload
        return self._session.what_is_missing or (workload.skipped if workload else "")

    @property
    def can_run(self) -> bool:
        return self.lesson is not None and not self._running and not self.reason

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    @property
    def progress(self) -> str:
        """How many runs of the shown experiment are over, while it runs."""
        runs = self._shown.runs
        if not self._queue.state.is_busy or not runs:
            return ""
        return f"{sum(run.state.is_over for run in runs)} of {len(runs)}"

    @property
    def done(self) -> frozenset[str]:
        """The lessons that were done on this PC, now or earlier, by name."""
        return frozenset(self._studio.settings.choices.lessons)

    @property
    def _workload(self) -> WorkloadDescription | None:
        description = self._session.description
        if description is None or not self.is_experiment:
            return None
        lesson = self.lesson
        return next(
            (one for one in description.workloads if lesson and one.name == lesson.name), None
        )

    @property
    def _row(self) -> DeviceRow | None:
        rows = self.rows
        chosen = (row for row in rows if row.identity == self.choices.device)
        return next(chosen, next(iter(rows), None))

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def break_it(self) -> None:
        """Run the mistake."""
        self._run_part("broken")

    def fix_it(self) -> None:
        """Run what mends it."""
        self._run_part("fixed")

    def run(self) -> None:
        """Run every way of an experiment, in turns where they may."""
        lesson, workload, row = self.lesson, self._workload, self._row
        if not self.can_run or lesson is None or workload is None or row is None:
            return
        address = row.address or ""
        request = RunWorkload(
            run_id="", workload=workload.name, device=address,
            size=workload.sizes[len(workload.sizes) // 2],
            dtype="float32" if "float32" in workload.dtypes else workload.dtypes[0],
            budget_s=min(self._studio.settings.choices.budget_s, _BUDGET_S),
        )  # fmt: skip
        names = (f"{workload.name}-{number}" for number in _numbers)
        first = ({one.name: value} for one in workload.options[:1] for value in one.values)
        ways = WAYS.get(lesson.name) or tuple(first) or ({},)
        runs = tuple(
            Run(msgspec.structs.replace(request, run_id=next(names), options=way)) for way in ways
        )
        self._running = lesson.name
        self._tried[lesson.name] = Tried(device=address, runs=runs)
        by_name = {run.request.run_id: run for run in runs}
        groups = in_turns([run.request for run in runs], workload)
        steps = iter([step_of([by_name[one.run_id] for one in group]) for group in groups])
        self._queue.start(lambda *_: next(steps, None), self._studio.pcs.session_of(address))
        self.changed.emit()

    def stop(self) -> None:
        """Stop what runs; runs that wait are dropped."""
        self._queue.stop()
        if self._reply is not None:
            self._reply.stop()

    def _run_part(self, part: str) -> None:
        lesson, row = self.lesson, self._row
        if self.can_run and lesson is not None and row is not None and row.address is not None:
            self._running = lesson.name
            self._change(failure="")
            request = RunPitfall(name=lesson.name, part=part, device=row.address)
            self._reply = self._studio.pcs.session_of(row.address).submit(request)
            self._reply.finished.connect(self._on_part_finished)
            self.changed.emit()

    def _on_part_finished(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        match event:
            case PitfallFinished():
                self._keep(event)
            case PitfallFailed() | RequestFailed():
                self._change(failure=explain_failure(event.failure))
            case EngineEnded():
                self._change(failure=explain_end(event))
            case _:
                pass
        self._end()

    def _keep(self, event: PitfallFinished) -> None:
        before = self._tried[self._running]
        if before.device not in ("", event.device):
            before = Tried()
        self._tried[self._running] = Tried(
            device=event.device,
            broken=event.broken or before.broken,
            fixed=event.fixed or before.fixed,
            broken_snippet=event.broken_snippet,
            fixed_snippet=event.fixed_snippet,
            untested=event.untested,
        )

    def _on_run_event(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._studio.snippets.show(event.snippet, LESSONS)
        self.changed.emit()

    def _on_runs_finished(self) -> None:
        for run in self._tried[self._running].runs:
            run.apply(EngineEnded(exit_code=None, stopped=True))
        self._end()

    def _end(self) -> None:
        name, self._running = self._running, ""
        tried = self._tried[name]
        is_whole = all(run.state is RunState.FINISHED for run in tried.runs)
        is_done = is_whole if tried.runs else bool(tried.broken and tried.fixed)
        if is_done:
            self._studio.settings.change(lessons=tuple(sorted({*self.done, name})))
        self.changed.emit()

    def _change(self, **changes: object) -> None:
        tried = self._tried.get(self._running, Tried())
        self._tried[self._running] = msgspec.structs.replace(tried, **changes)

    # ── the result ───────────────────────────────────────────────────────────────────────────

    @property
    def has_details(self) -> bool:
        errors = self.part("broken").error or self.part("fixed").error
        return bool(errors or self.other_figures or self.busy or self.losses or self.findings)

    @property
    def answer(self) -> Notice:
        """What the fix changed, or which way is the fastest; or why it failed."""
        shown = self._shown
        if shown.failure:
            return Notice(shown.failure, Tone.FAILURE)
        if shown.runs:
            failures = dict.fromkeys(run.failure.message for run in shown.runs if run.failure)
            return Notice(" ".join(filter(None, (compare_ways(self._results), *failures))))
        otherwise = self.lesson.otherwise if self.lesson is not None else ""
        sentence = compare_parts(otherwise, shown.broken, shown.fixed)
        return Notice(sentence, self._fix_tone if sentence else Tone.PLAIN)

    @property
    def offers_again(self) -> bool:
        """Whether other programs are why no way is called the fastest."""
        return self.can_run and are_ways_kept_busy(self._results)

    @property
    def figures(self) -> list[tuple[str, list[Bar]]]:
        """The title and the bars of each figure that is compared."""
        shown = self._shown
        if shown.runs:
            return [("Time per call", [self._bar_of(run) for run in shown.runs])]
        if shown.failure:
            return []
        both = [_pair(*pair) for pair in compared_figures(shown.broken, shown.fixed)]
        broken = (_pair(figure, None) for figure in _aimed(shown.broken))
        fixed = (_pair(None, figure) for figure in _aimed(shown.fixed))
        return both or [*broken, *fixed]

    def part(self, part: str) -> PartWords:
        """Return what came of the ``broken`` or the ``fixed`` code, in words."""
        shown = self._shown
        outcome = shown.broken if part == "broken" else shown.fixed
        if outcome is None:
            return PartWords()
        where = "a stand-in" if outcome.stand_in else shown.device
        if shown.failure:
            tone = Tone.PLAIN
        elif part == "fixed":
            tone = self._fix_tone
        else:
            tone = Tone.FAILURE if outcome.error else Tone.AMBER
        return PartWords(
            title=f"{_TITLES[part]}, on {where}{' (earlier run)' if shown.failure else ''}",
            sentence=outcome.sentence,
            error=outcome.error,
            tone=tone,
        )

    @property
    def other_figures(self) -> list[tuple[str, str, str]]:
        """The title of each figure that is not compared, and its value broken and fixed."""
        values: dict[str, list[str]] = {}
        for place, outcome in enumerate((self._shown.broken, self._shown.fixed)):
            for figure in outcome.figures if outcome is not None else ():
                if not figure.aim and figure.unit != "share":
                    values.setdefault(figure.title, ["–", "–"])[place] = format_figure(figure)
        return [(title, broken, fixed) for title, (broken, fixed) in values.items()]

    @property
    def busy(self) -> list[Bar]:
        """How long of its time the device worked; empty if that was not measured."""
        bars = []
        for name, outcome in (("Broken", self._shown.broken), ("Fixed", self._shown.fixed)):
            for figure in outcome.figures if outcome is not None else ():
                if figure.unit == "share":
                    parts = ("computing", figure.value), ("waiting", 1 - figure.value)
                    bars.append(self._busy_bar(name, dict(parts)))
        for label, result in self._results.items():
            if len(result.details.parts_s) > 1:
                bars.append(self._busy_bar(label, result.details.parts_s))
        return bars

    @property
    def busy_note(self) -> str:
        return PARTS_BESIDE_MEDIAN if self.busy and self._shown.runs else ""

    @property
    def losses(self) -> dict[str, Sequence[float]]:
        """The loss of each step, by what ran."""
        shown = self._shown
        parts = (("Broken", shown.broken), ("Fixed", shown.fixed))
        curves = {name: one.curves for name, one in parts if one is not None}
        curves |= {label: result.details.curves for label, result in self._results.items()}
        return {name: found["loss"] for name, found in curves.items() if found.get("loss")}

    @property
    def findings(self) -> str:
        return "\n".join(findings_of(self._results))

    @property
    def untested(self) -> str:
        return self._shown.untested

    @property
    def changed_code(self) -> tuple[tuple[ChangedLine, ...], ...]:
        """The lines that the fix changes, or in which the fastest way differs from the first."""
        shown = self._shown
        if not shown.runs:
            return changed_lines(shown.broken_snippet, shown.fixed_snippet)
        timed = [run for run in shown.runs if run.result is not None and run.snippet]
        if len(timed) < 2 or len(timed) < len(shown.runs):
            return ()
        fastest = min(timed[1:], key=lambda run: run.result.median_s if run.result else 0.0)
        return changed_lines(timed[0].snippet, fastest.snippet)

    @property
    def stand_in(self) -> str:
        """That the code is for a card, and what stood in for it here."""
        outcomes = filter(None, (self._shown.fixed, self._shown.broken))
        sentence = next((one.stand_in for one in outcomes if one.stand_in), "")
        return f"The code is for a card. {sentence}" if sentence else ""

    @property
    def _shown(self) -> Tried:
        lesson = self.lesson
        return self._tried.get(lesson.name if lesson is not None else "", Tried())

    @property
    def _fix_tone(self) -> Tone:
        broken, fixed = self._shown.broken, self._shown.fixed
        is_sure = has_paid(broken, fixed) and not is_disturbed(broken, fixed)
        return Tone.GOOD if is_sure else Tone.AMBER

    @property
    def _results(self) -> dict[str, RunFinished]:
        return {self._label_of(run): run.result for run in self._shown.runs if run.result}

    def _label_of(self, run: Run) -> str:
        workload = self._workload
        assert workload is not None
        return mode_words(run.request) or workload.title

    def _bar_of(self, run: Run) -> Bar:
        median_s = run.summary.median_s if run.summary else None
        peak = run.result.details.peak_allocated_bytes if run.result else None
        words = (
            format_duration(median_s) if median_s is not None else "",
            format_bytes(peak) if peak is not None else "",
        )
        state = run.phase if not run.state.is_over and run.phase else run.state.value
        return Bar(
            name=self._label_of(run), value=median_s, text="  ·  ".join(filter(None, words)),
            device=self._shown.device, verdict=trust_sign(run.result) if run.result else state,
        )  # fmt: skip

    def _busy_bar(self, name: str, parts: dict[str, float]) -> Bar:
        whole = sum(parts.values())
        shares = tuple((part, value / whole if whole else 0.0) for part, value in parts.items())
        working = sum(share for part, share in shares if part in WORK)
        return Bar(
            name=name, value=1.0, text=f"{format_percent(working)} at work",
            device=self._shown.device, parts=shares,
        )  # fmt: skip


def _aimed(outcome: PitfallOutcome | None) -> list[Figure]:
    """Return the figures that the fix should change."""
    return [figure for figure in outcome.figures if figure.aim] if outcome is not None else []


def _pair(before: Figure | None, now: Figure | None) -> tuple[str, list[Bar]]:
    known = before or now
    assert known is not None
    helped = before is not None and now is not None and is_reached(before, now)
    broken, fixed = Bar(name="Broken", role="failure"), Bar(name="Fixed", role="amber")
    if before is not None:
        broken = msgspec.structs.replace(broken, value=before.value, text=format_figure(before))
    if now is not None:
        role, text = "good" if helped else "amber", format_figure(now)
        fixed = msgspec.structs.replace(fixed, value=now.value, text=text, role=role)
    return known.title, [broken, fixed]
