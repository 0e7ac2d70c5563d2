"""What is chosen on the page Run, what Run would do, and what stands over the curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtCore import Signal

from gpu_studio.core.benchmark.plan import Plan, Sweep, planned_s
from gpu_studio.core.benchmark.sizes import parse_sizes, powers_of_two
from gpu_studio.core.benchmark.verdict import verdict_of
from gpu_studio.core.device_name import CPU
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.parameter import parameters_of
from gpu_studio.core.switcher.pitfalls import PITFALLS
from gpu_studio.model.benchmark.benchmark_hero import Hero, hero_of
from gpu_studio.model.benchmark.explained import Explained, explained
from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.benchmark.results_table import ResultsTable, facts_of
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.own_code import OwnCodeModel
from gpu_studio.model.page_model import PageModel
from gpu_studio.model.pages import RUN
from gpu_studio.model.run_queue import RunSource, WorkState
from gpu_studio.model.settings import Choices as Kept
from gpu_studio.model.text_rows import rich_tip

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.pitfall_messages import PitfallDescription
    from gpu_studio.core.messages.run_messages import RunDetails, WorkloadDescription
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.results_table import Sheet
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.studio import Studio

SHOWN_DTYPES = ("float32", "float16", "float64", "bfloat16")
SETTINGS = parameters_of(RunWorkload)
TIME = next(one for one in SETTINGS if not one.is_switch)
_OF_PYTORCH = ("cold", "transfers", "naive")
_ONLY_PYTORCH = "This is possible only with PyTorch."
_BY_PYTORCH = "PyTorch works on it. To measure it, untick what works without PyTorch."


class RunChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen: a field for each control.

    ``options`` are the values of the workload's options by their names, and ``settings`` those of
    `SETTINGS`. ``uses`` has the identities of devices and whether they run, as ``dtypes`` has the
    names of theirs.
    """

    workload: str = ""
    sizes: str = ""
    dtypes: dict[str, bool] = msgspec.field(default_factory=dict)
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    options: dict[str, str] = msgspec.field(default_factory=dict)
    uses: dict[str, bool] = msgspec.field(default_factory=dict)
    view: str = "time"


class RunModel(PageModel):
    """The page Run: choices, a plan of runs, and its results in words.

    Args:
        studio: its engine describes the workloads, its board the devices.
        benchmark: makes the runs and keeps them.
        parent: owns it.

    Signals:
        front_wanted(): the page is to come to the front.

    Attributes:
        workloads: the workloads of the engine, by name.
        selected: the run that is shown alone; None shows the latest of each device.
        outcome: what became of a file.
    """

    front_wanted = Signal()

    def __init__(
        self,
        studio: Studio,
        benchmark: Benchmark,
        parent: QObject | None = None,
    ) -> None:
        kept = studio.settings.choices
        chosen = RunChoices(
            workload=kept.workload,
            sizes=kept.sizes,
            dtypes=dict.fromkeys(kept.dtypes, True),
            settings={**dict.fromkeys(kept.modes, True), TIME.name: kept.budget_s},
        )
        super().__init__(chosen, parent)
        self._studio, self.benchmark = studio, benchmark
        self.adapters = studio.adapters
        self._comparison = QuickComparison(studio)
        self._table = ResultsTable(benchmark, studio.board)
        self._explained: tuple[object, Explained] = (None, Explained())
        self.workloads: dict[str, WorkloadDescription] = {}
        self.selected: Run | None = None
        self.overlay: tuple[str, Run] | None = None
        self.outcome = Notice()
        self._typed: dict[str, tuple[str, dict[str, str]]] = {}
        self._verdict: tuple[object, Notice] = (None, Notice())
        self.own = OwnCodeModel(studio, self)
        self.own.read.connect(self._on_code_read)
        self.own.opened.connect(self._on_code_opened)
        studio.session.engine_described.connect(self._on_engine_described)
        benchmark.plan_changed.connect(self._on_plan_changed)
        self.follow(
            benchmark.plan_changed, studio.session.state_changed, studio.session.engine_described,
            studio.board.changed, self.own.changed, studio.adapters.changed,
        )  # fmt: skip
        studio.adapters.changed.connect(self._on_engine_described)
        self._on_engine_described()

    # ── what is chosen ───────────────────────────────────────────────────────────────────────

    def suited(self, choices: RunChoices) -> RunChoices:
        """Return choices with the sizes and options that their workload had last, or has usually.

        Those of the settings stay with the workload of the settings.
        """
        old = self.choices
        if choices.workload == old.workload:
            return choices
        self._typed[old.workload] = old.sizes, old.options
        described = self.workloads.get(choices.workload)
        usual = ", ".join(map(str, described.sizes)) if described else choices.sizes
        sizes, options = self._typed.get(choices.workload, (usual, {}))
        if choices.sizes == old.sizes:
            choices = msgspec.structs.replace(choices, sizes=sizes)
        return msgspec.structs.replace(choices, options=options)

    def on_chosen(self) -> None:
        """Let the estimate of other choices stand alone again."""
        self.outcome = Notice()

    @property
    def workload(self) -> WorkloadDescription | None:
        """The chosen workload; None until the engine has described it."""
        known = self.adapters.workloads if self.is_without_pytorch else self.workloads
        return known.get(self.choices.workload)

    @property
    def workload_items(self) -> list[tuple[str, str]]:
        """The titles of the workloads with their names."""
        return [
            (f"{one.title} (not available)" if one.skipped else one.title, one.name)
            for one in self.workloads.values()
        ]

    @property
    def workload_note(self) -> Notice:
        """What the workload does, or why it cannot run here."""
        workload = self.workload
        if workload is None:
            return Notice()
        if workload.skipped:
            return Notice(workload.skipped, Tone.AMBER)
        return Notice("" if workload.runs_on(CPU) else "This workload runs on GPUs only.")

    @property
    def budget_items(self) -> list[tuple[str, float]]:
        """The times of a run to choose from."""
        times_s = sorted({*TIME.offered, self._time_s})
        return [(f"{time_s:g}\u202f{TIME.unit} per run", time_s) for time_s in times_s]

    @property
    def _time_s(self) -> float:
        time_s: float = self.choices.settings.get(TIME.name, TIME.default)
        return time_s

    @property
    def devices(self) -> tuple[DeviceRow, ...]:
        """The devices to choose from; none until the engine has described its workloads."""
        return tuple(self._studio.board.rows) if self.workloads else ()

    @property
    def mistake(self) -> str:
        """What is wrong with the sizes, as a sentence; empty if they are right."""
        try:
            parse_sizes(self.choices.sizes)
        except StudioError as error:
            return str(error)
        return ""

    @property
    def sizes_note(self) -> Notice:
        """What a size is, or what is wrong with the sizes."""
        if self.mistake:
            return Notice(self.mistake, Tone.FAILURE)
        return Notice(self.workload.size_title if self.workload else "")

    def is_usual(self, row: DeviceRow) -> bool:
        """Return whether a device is measured unless the user has chosen."""
        if row.adapter is None:
            return row.address is not None
        return not self._has_pytorch and self.adapters.is_usual(row.adapter)

    def why_not(self, row: DeviceRow) -> str:
        """Return why a device cannot be measured with what is chosen; empty if it can."""
        if row.adapter is not None:
            return self.adapters.lacks(self.choices.workload)
        if row.address is None:
            return row.reason or row.name
        return "" if row.is_cpu or not self.is_without_pytorch else _BY_PYTORCH

    @property
    def _has_pytorch(self) -> bool:
        return self._studio.session.description is not None or not self._studio.session.absence

    @property
    def is_without_pytorch(self) -> bool:
        """Whether the engine without PyTorch measures: it has a chosen device, or is the only one.

        All devices of a plan take turns in one engine.
        """
        if self.is_own or self.choices.workload not in self.adapters.workloads:
            return False
        chosen = self.choices.uses
        uses = (chosen.get(row.identity, self.is_usual(row)) for row in self._studio.board.adapters)
        return any(uses) or not self._has_pytorch

    def choose_adapters(self) -> None:
        """Choose what computes without PyTorch."""
        found = [one for one in self.adapters.adapters if self.adapters.is_usual(one)]
        self.choose(uses={**self.choices.uses, **{one.identity: True for one in found}})

    def offers(self, dtype: str) -> bool:
        """Return whether the workload has this precision."""
        return self.workload is None or dtype in self.workload.dtypes

    def refusal(self, mode: str) -> str:
        """Return why the workload refuses a way to measure; empty if it does not."""
        if self.is_without_pytorch and mode in _OF_PYTORCH:
            return _ONLY_PYTORCH
        return self.workload.refuses.get(mode, "") if self.workload else ""

    @property
    def summary(self) -> str:
        """What is chosen among the options that most leave as they are."""
        plan, usual = self.plan, Kept()
        changed = sum(
            (
                plan.dtypes != usual.dtypes, self._time_s != TIME.default, len(plan.options),
                len(self._modes),
            )
        )  # fmt: skip
        parts = [*plan.dtypes, f"{self._time_s:g}\u202f{TIME.unit} per run"]
        return " · ".join([*parts, f"{changed} changed"] if changed else parts)

    @property
    def _modes(self) -> tuple[str, ...]:
        """The names of the settings that are switched on."""
        chosen = self.choices.settings
        switches = (one.name for one in SETTINGS if one.is_switch)
        return tuple(one for one in switches if chosen.get(one) and not self.refusal(one))

    @property
    def _options(self) -> dict[str, str]:
        """The chosen values that are not the usual ones."""
        values = {one.name: one.values for one in self.workload.options} if self.workload else {}
        chosen = self.choices.options.items()
        return {name: value for name, value in chosen if value in values.get(name, ())[1:]}

    @property
    def plan(self) -> Plan:
        """The chosen plan."""
        chosen, workload = self.choices, self.workload
        settings = {TIME.name: self._time_s} | dict.fromkeys(self._modes, True)
        if self.is_own and self._time_s == TIME.default:
            settings[TIME.name] = max(self._time_s, self.own.least_s)
        usable = (
            row.address
            for row in self.devices
            if row.address is not None
            and not self.why_not(row)
            and chosen.uses.get(row.identity, self.is_usual(row))
        )
        return Plan(
            workload=chosen.workload if workload else "",
            sizes=() if self.mistake else tuple(parse_sizes(chosen.sizes)),
            dtypes=tuple(filter(self.offers, filter(chosen.dtypes.get, SHOWN_DTYPES))),
            devices=tuple(one for one in usable if workload is None or workload.runs_on(one)),
            options=self._options,
            settings={
                one.field: one.value_of(settings[one.name])
                for one in SETTINGS
                if one.name in settings
            },
            code=self.own.code if self.is_own else None,
        )

    # ── what runs ────────────────────────────────────────────────────────────────────────────

    @property
    def problem(self) -> str:
        """Why nothing can run, as a sentence; empty if all choices are valid."""
        session, plan = self._studio.session, self.plan
        if self.is_without_pytorch:
            session = self.adapters.session
        elif session.state is EngineState.FAILED:
            return "PyTorch has stopped."
        elif session.what_is_missing:
            return session.what_is_missing
        if self.workload is not None and self.workload.skipped:
            return "This workload cannot run on this PC."
        if not plan.sizes:
            return "Fix the sizes first."
        if not plan.dtypes:
            return "Choose at least one precision."
        return "" if plan.devices else "Choose at least one device."

    @property
    def is_busy(self) -> bool:
        """Whether a plan is on its way."""
        return self.benchmark.state.is_busy or self.own.is_opening

    @property
    def can_run(self) -> bool:
        """Whether a plan can start now."""
        return not self.is_busy and not self.problem

    @property
    def can_stop(self) -> bool:
        """Whether there is something to stop."""
        return self.benchmark.state is WorkState.RUNNING or self.own.is_opening

    def stop(self) -> None:
        """Stop the plan, or the first run of the user's own code."""
        if self.own.is_opening:
            self.own.give_up()
        else:
            self.benchmark.stop()

    @property
    def can_find_crossover(self) -> bool:
        """Whether two devices can be compared at more and more sizes."""
        devices = self.plan.devices
        has_sizes = not self.is_own or len(self.own.workload.sizes) > 1
        return self.can_run and has_sizes and CPU in devices and len(devices) > 1

    @property
    def has_stopped_engine(self) -> bool:
        """Whether a new engine has to be started."""
        return self._studio.session.state is EngineState.FAILED

    def start_engine(self) -> None:
        """Start a new engine."""
        self._studio.session.start()

    def run(self) -> None:
        """Start the chosen plan, and keep the choices for the next start of the program."""
        if not self.can_run:
            return
        if self.is_own and not (self.own.is_opened and self.own.may_run):
            self.on_begun()
            self.own.open()
            return
        self._keep()
        self._start(self.plan)

    def find_crossover(self) -> None:
        """Measure from the smallest to the largest size, then closer to where the winner changes.

        A single size says no range: then it is that of the workload.
        """
        if not self.can_find_crossover:
            return
        self._keep()
        plan, workload = self.plan, self.workload
        sizes = plan.sizes if len(plan.sizes) > 1 or workload is None else workload.sizes
        grid = tuple(powers_of_two(min(sizes), max(sizes)))
        self._start(Sweep(msgspec.structs.replace(plan, sizes=grid)))

    def compare(self) -> None:
        """Choose and start the comparison that needs no choice, unless something runs."""
        plan = self._comparison.plan
        if not plan.devices or self.is_busy:
            return
        self.choose(workload=plan.workload)
        self.choose(
            sizes=", ".join(map(str, plan.sizes)),
            settings={TIME.name: plan.settings[TIME.field]},
            options={},
            uses={row.identity: row.address in plan.devices for row in self.devices if row.address},
            dtypes=dict.fromkeys(plan.dtypes, True),
        )
        self._start(plan)

    def run_again(self) -> None:
        """Repeat the last plan."""
        if self.benchmark.can_run_again:
            self.on_begun()
            if self.is_own:
                self.own.start_engine()
            self.benchmark.run_again()

    def on_begun(self) -> None:
        """Show the samples of the plan that starts now."""
        self.selected, self.outcome = None, Notice()
        self.choose(view="time")
        self.changed.emit()

    def _start(self, plan: RunPlan) -> None:
        self.on_begun()
        if self.is_own:
            self.own.start_engine()
            self.benchmark.start(plan, RunSource(self.own.session))
        elif self.is_without_pytorch:
            own, told = self.adapters.session, self.adapters.described
            self.benchmark.start(plan, RunSource(own, described=told))
        else:
            self.benchmark.start(plan)

    def _keep(self) -> None:
        plan = self.plan
        if self.is_own:  # the next start of the program has no such workload
            return
        self._studio.settings.change(
            workload=plan.workload,
            sizes=self.choices.sizes,
            modes=self._modes,
            dtypes=plan.dtypes,
            budget_s=self._time_s,
        )

    # ── what is shown ────────────────────────────────────────────────────────────────────────

    @property
    def has_curves(self) -> bool:
        """Whether there is something to draw."""
        return bool(self.benchmark.runs) or self.overlay is not None

    @property
    def hero(self) -> Hero:
        """What stands over the curves."""
        if self.is_own and self.own.failure:
            return Hero("Your code does not run yet", self.own.failure, has_failed=True)
        return hero_of(
            self.benchmark,
            self._studio.board.rows,
            chosen=self.selected,
            devices=self.plan.devices,
            titles=self.benchmark.titles,
        )

    @property
    def verdict(self) -> Notice:
        """What all sizes say, as some sentences."""
        results = self.benchmark.results
        if self._verdict[0] != results:
            self._verdict = results, verdict_of(results, self.benchmark.titles)
        return self._verdict[1]

    @property
    def status(self) -> str:
        """What runs and how long it takes, or what Run would do."""
        if self.own.is_opening:
            return "Running your code once on the CPU…"
        return self.benchmark.sentence if self.is_busy else self._idle_sentence

    @property
    def brief_status(self) -> Notice:
        """The same in a few words, or what became of a file."""
        left = self.status if self.own.is_opening else self.benchmark.left or self.status
        words = self.outcome.sentence or (left if self.is_busy else self.problem or self._planned)
        return Notice(words, self.outcome.tone)

    @property
    def sheet(self) -> Sheet:
        """The table of the results."""
        return self._table.sheet

    def sort(self, title: str) -> None:
        """Sort the table by a column: upwards, then downwards, then in the order of the runs."""
        self._table.sort(title)
        self.changed.emit()

    @property
    def facts(self) -> str:
        """All that is known about the selected run, a sentence a line."""
        run, board = self.selected, self._studio.board
        return "\n".join(facts_of(run, board, self.benchmark)) if run is not None else ""

    def tip_of(self, run: Run) -> str:
        """Return all facts about a run as Qt's HTML, with names from outside escaped."""
        return rich_tip(facts_of(run, self._studio.board, self.benchmark))

    @property
    def explained(self) -> Explained:
        """The selected result explained, or else the latest."""
        state = [self.selected, len(self.benchmark.results), self._studio.board.rows]
        if self._explained[0] != state:
            self._explained = state, explained(self.selected, self.benchmark, self._studio.board)
        return self._explained[1]

    @property
    def warning(self) -> str:
        """What is wrong with the present plan, is asked before it, or ended the last one early."""
        if self.is_busy:
            return self.benchmark.warning
        if self.is_own and self.own.question:
            return self.own.question
        notice, planned = self.benchmark.notice, self.benchmark.planned
        is_shown_above = not any(run.result is not None for run in planned)
        return notice.sentence if notice.tone is Tone.FAILURE and not is_shown_above else ""

    @property
    def _idle_sentence(self) -> str:
        notice = self.benchmark.notice
        planned = self.problem or self._planned
        if not notice.sentence or notice.tone is Tone.FAILURE:
            return planned
        return f"{notice.sentence}\nNext: {planned}"

    @property
    def _planned(self) -> str:
        requests = self.plan.requests()
        count, seconds = len(requests), planned_s(requests)
        needs = f"{seconds:.0f}\u202fs" if seconds < 90 else f"{seconds / 60:.0f}\u202fmin"
        return f"{count} {'run' if count == 1 else 'runs'}, about {needs}"

    @property
    def is_own(self) -> bool:
        """Whether the user's own code is chosen."""
        return self.own.code is not None and self.choices.workload == self.own.code.name

    @property
    def can_race(self) -> bool:
        """Whether the user's own code can race: it has run, and nothing runs now."""
        return self.is_own and self.own.is_opened and not self.is_busy

    def race(self) -> None:
        """Race the user's own code on the page for that."""
        if self.can_race and self.own.code is not None:
            self._studio.race_code(self.own.code, self.own.workload)

    @property
    def own_findings(self) -> str:
        """What the user's own code falls into, a sentence a line, by its latest results."""
        return "\n".join(dict.fromkeys(line for one in self._own_results for line in one.findings))

    @property
    def own_lessons(self) -> list[PitfallDescription]:
        """The lessons about that."""
        names = {name for one in self._own_results for name in one.lessons}
        return [one for one in PITFALLS if one.name in names]

    def open_lesson(self, name: str) -> None:
        """Open one of them."""
        self._studio.teach(name)

    @property
    def _own_results(self) -> list[RunDetails]:
        """What is known besides the times of the user's own code, the latest first."""
        ours = (one for one in self.benchmark.results if one.workload == self.choices.workload)
        return [one.details for one in reversed([*ours])] if self.is_own else []

    def select(self, run: Run | None) -> None:
        """Show one run alone; None shows the latest of each device."""
        self.selected = run
        if run is not None:
            self.choose(view="time")
        self._show_code()
        self.changed.emit()

    def show_overlay(self, overlay: tuple[str, Run]) -> None:
        """Draw a kept run behind the runs of the same work, under its label."""
        self.overlay = overlay
        self.select(None)
        self.choose(view="time")
        self.front_wanted.emit()

    def clear(self) -> None:
        """Remove all runs, and the kept one behind them."""
        self.overlay = None
        self.benchmark.clear()
        self.changed.emit()

    def on_notified(self, notice: Notice) -> None:
        """Say what became of a file, before what Run would do."""
        self.outcome = notice
        self.changed.emit()

    # ── what happens elsewhere ───────────────────────────────────────────────────────────────

    def _on_engine_described(self) -> None:
        description = self._studio.session.description
        if description is not None:
            self.workloads = {workload.name: workload for workload in description.workloads}
        elif not self.workloads:
            self.workloads = dict(self.adapters.workloads)
        if self.own.code is not None:
            self.workloads[self.own.code.name] = self.own.workload
        if self.workloads and self.choices.workload not in self.workloads:
            self.choose(workload=next(iter(self.workloads)))

    def _on_code_read(self) -> None:
        """Choose the code of a file, and run it if it was allowed before."""
        self._choose_code()
        self.front_wanted.emit()
        if self.own.may_run:
            self.run()

    def _on_code_opened(self) -> None:
        """Go on with the sizes and the precision that the first run has told."""
        self._choose_code()
        self.changed.emit()
        self.run()

    def _choose_code(self) -> None:
        workload = self.own.workload
        self.workloads[workload.name] = workload
        self._typed.pop(workload.name, None)
        self.choose(workload=workload.name)
        self.choose(
            sizes=", ".join(map(str, workload.sizes)),
            dtypes=dict.fromkeys(workload.dtypes, True),
            options={},
        )

    def _on_plan_changed(self) -> None:
        if not self.is_busy:
            self.own.end()
        if self.selected not in self.benchmark.runs:
            self.selected = None
        self._show_code()

    def _show_code(self) -> None:
        """Show the code of the selected run, or else of the last one."""
        begun = (run for run in reversed(self.benchmark.runs) if run.has_begun)
        run = self.selected or next(begun, None)
        self._studio.snippets.show(run.snippet if run is not None else "", RUN)
