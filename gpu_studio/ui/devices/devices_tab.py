"""The Devices tab: what is in this PC, whether PyTorch can use it, and what to press."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.benchmark.standard_measurement import StandardMeasurement
from gpu_studio.model.devices import programs
from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.model.pages import (
    BENCHMARK,
    CHECK,
    DEVICES,
    HISTORY,
    LESSONS,
    NOW,
    QUICK_LOOK,
    RACE,
)
from gpu_studio.model.run_queue import WorkState
from gpu_studio.ui.devices.pc_part import STACKED, ToneSign, agrees, pc_part
from gpu_studio.ui.devices.sensor_rows import SensorRows
from gpu_studio.ui.page import Box, Columns, Each, Flow, Fold, Later, Own, Page, Stack
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Heading, More, Press, ProgressBar, Rows, Words
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.tabs import PagedTab, tab_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.devices.fact_grid import FactGrid
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.standard_page import StandardPage
    from gpu_studio.ui.theme import Theme

_PYTHONS = "gpu_studio.ui.devices.pythons_page:PythonsPage"
_SIGN_LINES = 1.6
_SPANS = (("Last minute", 60.0), ("Last 5 minutes", 300.0), ("Last 15 minutes", 900.0),
          ("Last hour", 3600.0))  # fmt: skip
_SENSOR_HEAD = ("Sensor", "Now", "Change", "Lowest", "Mean", "Highest")
_CHECK_TIP = (
    "Is it sound? Tests computing, memory, heat and link, in 1 minute, 6 minutes or a night"
)
_MEASURE, _STOP_MEASURING = "Measure this PC to share", "Stop measuring"
_LOG_TIP = "Write every reading of all devices to a CSV file until you stop the log"
_WITHOUT_CARD = "Without a card, you can try:"


class DevicesTab(PagedTab):
    """Its first page is about this PC, the second about the PyTorch of other programs."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(tab_of(DEVICES), studio, theme, parent)
        self.page = OverviewPage(studio, theme)
        self._pythons = LazyPage(_PYTHONS, studio, theme, parent=self)
        self.add(self.page, self._pythons)

    def go_to(self, destination: Destination) -> None:
        """Bring a page in front, or look for PyTorch in a folder."""
        super().go_to(destination)
        if destination.path is not None:
            self._pythons.make().model.look(destination.path)


class OverviewPage(Page):
    """The card and one sentence about it, its programs, its sensors; all else is behind More."""

    model: DevicesModel

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        model = DevicesModel(studio)
        self._studio = studio
        self._opened: set[str] = set()  # the codes of findings whose evidence is shown
        self._comparison = QuickComparison(studio)
        self._measurement = StandardMeasurement(studio, model)
        model.follow(
            studio.session.engine_described, studio.board.changed, self._measurement.changed,
            studio.pcs.changed,
        )  # fmt: skip
        super().__init__("devices", model, theme, parent)
        model.setParent(self)

    def parts(self) -> Sequence[Part]:
        """Return the answers, what is found, the programs and the sensors; then what More opens."""
        m, go_to = self.model, self._studio.go_to
        return (
            Box(*self._hero_parts(), name="hero"),
            Later(self._standard_parts, name="standard", shown=lambda: self._has_standard),
            Each(lambda: range(len(m.also_found)), self._finding, share_letters=STACKED),
            Words(lambda: Notice(m.trouble, Tone.AMBER), name="trouble"),
            Box(
                Words(lambda: f"Programs on the {m.short_name}", "value", name="programs.title"),
                Each(lambda: range(len(m.programs)), self._program, share_letters=STACKED),
                name="programs.card",
                shown=lambda: m.has_programs,
            ),
            Box(
                Own(lambda: SensorRows(self.theme), self._show_sensors, stretch=1),
                Later(self._sensor_parts, name="tools", shown=lambda: m.choices.shows_sensors),
                Words(lambda: m.log.notice, name="sensors.log.said"),
                name="sensors.card",
                presented=True,
                stretch=1,
            ),
            Flow(
                Words(_WITHOUT_CARD, "muted", wraps=False),
                Press("Fill a simulated card", lambda: go_to(NOW), name="simulated"),
                Press("Try the lessons", lambda: go_to(LESSONS), name="pitfalls"),
                name="without_card", shown=lambda: m.is_without_card,
            ),
            Later(self._fact_parts, name="all_facts", shown=lambda: m.choices.shows_facts),
        )  # fmt: skip

    def _hero_parts(self) -> Sequence[Part]:
        m, comparison = self.model, self._comparison
        return (
            Each(lambda: self._studio.pcs.all,
                 lambda pc: pc_part(pc, m, self._studio.pcs, self), share_letters=STACKED,
                 presented=True),
            Columns(
                Own(lambda: ToneSign(self.theme, _SIGN_LINES),
                    lambda sign: sign.show_tone(m.verdict.tone)),
                Words(lambda: _said(m.verdict), "title", name="verdict.sentence", stretch=1),
                name="verdict", presented=True,
            ),
            Words(lambda: m.verdict.to_copy, name="verdict.command"),
            Columns(
                Flow(
                    Press(lambda: m.verdict.action_label,
                          lambda: self._studio.headlines.act(m.verdict),
                          primary=True, name="verdict.action"),
                    Press(lambda: self._copy_label, self._copy_command, primary=True, icon="copy",
                          name="verdict.copy", shown=lambda: self._has_command),
                    Press("Measure it by Vulkan", lambda: self._studio.go_to(QUICK_LOOK),
                          icon="chart", name="measure",
                          tip="CPU against card in seconds, without PyTorch",
                          primary=lambda: not self._has_cure, shown=lambda: m.can_be_measured),
                    Press(lambda: comparison.title,
                          lambda: self._studio.go_to(BENCHMARK, starts=True),
                          icon="chart", name="compare",
                          primary=lambda: not (self._has_cure or m.can_be_measured),
                          enabled=lambda: not comparison.why_not, tip=lambda: comparison.why_not),
                    Words(lambda: comparison.sentence, "muted", wraps=False, name="compare.note"),
                    stretch=1,
                ),
                Flow(
                    Press(lambda: m.check_label, self._check, icon="shield", name="check",
                          enabled=lambda: not m.why_no_check,
                          tip=lambda: m.why_no_check or _CHECK_TIP),
                    Press("Race", lambda: self._studio.go_to(RACE, starts=True), icon="flag",
                          name="race",
                          enabled=lambda: not comparison.why_not,
                          tip=lambda: self._race_tip),
                    More("More", self._more, name="more"),
                ),
            ),
            Fold(
                Words(lambda: m.verdict.detail, "muted", name="verdict.evidence"),
                label="Details", name="verdict",
                shown=lambda: m.verdict.detail and m.verdict.tone in (Tone.AMBER, Tone.FAILURE),
            ),
        )  # fmt: skip

    def _finding(self, number: int) -> Part:
        """Return what else is found: its sentence, its button, and the evidence at a press."""
        name = f"finding.{number}"

        def now() -> Finding:
            return self.model.also_found[number]

        def below() -> str:
            return "\n".join(filter(None, (now().detail, now().next_step, now().to_copy)))

        def turn() -> None:
            self._opened ^= {now().code}
            self.update_parts()

        return Stack(
            Columns(
                Own(lambda: ToneSign(self.theme), lambda sign: sign.show_tone(now().tone)),
                Words(now, name=f"{name}.sentence", stretch=1),
                Press(lambda: now().action_label or ("Copy command" if now().to_copy else ""),
                      lambda: self._act(now()), name=f"{name}.action"),
                Press("Details", turn, name=f"{name}.more", shown=below),
            ),
            Words(below, "muted", name=f"{name}.below",
                  shown=lambda: now().code in self._opened),
            name=name,
        )  # fmt: skip

    def _program(self, number: int) -> Part:
        """Return the sentence of a program."""
        return Words(lambda: self.model.programs[number], name=f"programs.{number}.sentence")

    def _sensor_parts(self) -> Sequence[Part]:
        m = self.model
        return (
            Flow(
                Pick(of="span_s", title="Time span", name="sensors.span", items=_SPANS),
                Press(lambda: "Stop the log" if m.log.is_running else "Log to file…",
                      self._log_or_stop, name="sensors.log", tip=_LOG_TIP),
            ),
            Rows("Sensors", _SENSOR_HEAD, lambda: [span.row for span in m.spans],
                 numbers=range(1, len(_SENSOR_HEAD)), name="sensors.table"),
        )  # fmt: skip

    def _fact_parts(self) -> Sequence[Part]:
        from gpu_studio.ui.devices.fact_grid import FactGrid  # not at the start

        m = self.model

        def show(facts: FactGrid) -> None:
            facts.show_groups(m.groups)

        return (
            Box(Own(lambda: FactGrid(name="devices.details"), show)),
            Box(
                Heading("Processes"),
                Rows("Processes on this card", programs.HEADINGS, lambda: m.process_rows,
                     numbers=programs.NUMBERS, name="processes", shown=lambda: m.processes),
                Words(lambda: m.process_note, "muted", name="processes.note"),
                Flow(
                    Pick(of="pid", title="Program to end", name="processes.pid", least_letters=20,
                         items=lambda: [(f"{p.name} ({p.pid})", p.pid) for p in m.to_end]),
                    Press("End program…", self._ask_to_end, name="processes.end"),
                    shown=lambda: m.to_end,
                ),
                Words(lambda: m.outcome, "muted", name="processes.outcome"),
                name="processes.card", shown=lambda: m.has_programs,
            ),
        )  # fmt: skip

    def _standard_parts(self) -> Sequence[Part]:
        from gpu_studio.core.benchmark.comparison import sides_of  # not at the start
        from gpu_studio.ui.standard_page import StandardPage

        measurement = self._measurement
        shown: list[StandardRun] = []

        def show(page: StandardPage) -> None:
            run = measurement.run
            if run is not None and shown != [run]:
                shown[:] = [run]
                page.show_sides(sides_of(run))

        def has_result() -> bool:
            return measurement.run is not None and not measurement.state.is_busy

        return (
            Box(
                Words(lambda: measurement.sentence if measurement.state.is_busy else "", "lead",
                      name="standard.sentence"),
                ProgressBar("Progress of the measurement", lambda: measurement.progress,
                            name="standard.progress", shown=lambda: measurement.state.is_busy),
                Words(lambda: measurement.notice, name="standard.notice"),
                Own(lambda: StandardPage(self.theme), show, shown=has_result),
                Flow(
                    Press(lambda: "Stop" if measurement.state.is_busy else "", measurement.stop,
                          name="standard.stop",
                          enabled=lambda: measurement.state is not WorkState.STOPPING),
                    Press("Share…", self._share, name="standard.share", shown=has_result,
                          tip="Save or copy this result as a picture with its data"),
                    Press("Compare", lambda: self._studio.go_to(HISTORY), name="standard.compare",
                          shown=has_result, tip="See this PC beside others, from their files"),
                ),
            ),
        )  # fmt: skip

    # ── what the model does not say ──────────────────────────────────────────────────────────

    @property
    def _race_tip(self) -> str:
        sides = "CPU and GPU" if len(self._comparison.devices) > 1 else "one thread and all of them"
        return self._comparison.why_not or f"See {sides} draw the same picture, in turns"

    @property
    def _has_standard(self) -> bool:
        one = self._measurement
        return one.state.is_busy or one.run is not None or bool(one.notice.sentence)

    @property
    def _has_command(self) -> bool:
        return bool(self.model.verdict.to_copy)

    @property
    def _copy_label(self) -> str:
        is_address = self.model.verdict.to_copy.startswith("https://")
        return "Copy the address" if is_address else "Copy the command"

    @property
    def _has_cure(self) -> bool:
        """Whether the verdict has something to press, which then comes first."""
        return bool(self.model.verdict.action_label) or self._has_command

    def _show_sensors(self, rows: SensorRows) -> None:
        m = self.model
        title = next(text for text, span_s in _SPANS if span_s == m.choices.span_s)
        rows.show_lines(m.sensor_lines, m.marks, m.choices.span_s, title)

    def _more(self) -> list[tuple[str, Callable[[], object] | None] | None]:
        """Return what More offers now."""
        m, choices, measurement = self.model, self.model.choices, self._measurement
        is_busy = measurement.state.is_busy
        measure = measurement.stop if is_busy else measurement.start
        count = sum(len(group.facts) for group in m.groups)
        facts = "Hide facts" if choices.shows_facts else f"All facts ({count})"
        sensors = "Main sensors" if choices.shows_sensors else "All sensors"
        known = m.device is not None

        def turn_facts() -> None:
            m.choose(shows_facts=not choices.shows_facts)

        items: list[tuple[str, Callable[[], object] | None] | None] = [
            (
                _STOP_MEASURING if is_busy else _MEASURE,
                measure if measurement.devices or is_busy else None,
            ),
            None,
            (facts, turn_facts if known else None),
            (sensors, self._turn_sensors if known else None),
            ("Copy facts…", self._copy_facts if known else None),
        ]
        if m.hides_cpu:
            items.append(("Show the CPU", m.select_cpu))
        items += [None, ("Record for a buyer…", self._check if not m.why_no_check else None)]
        if self._studio.pcs.is_supported:
            items.append(("Add a PC…", self._ask_for_pc))
        return items

    # ── what the buttons do ──────────────────────────────────────────────────────────────────

    def _act(self, finding: Finding) -> None:
        if finding.action:
            self._studio.headlines.act(finding)
        else:
            QGuiApplication.clipboard().setText(finding.command)

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self.model.verdict.to_copy)

    def _check(self) -> None:
        if self.model.row is not None:
            self._studio.go_to(CHECK, device=self.model.row.identity)

    def _turn_sensors(self) -> None:
        shows = not self.model.choices.shows_sensors
        self.model.choose(shows_sensors=shows, span_s=_SPANS[0][1])

    def _copy_facts(self) -> None:
        from gpu_studio.ui.devices.copy_dialog import CopyDialog  # at the press

        report = self.model.report
        CopyDialog(lambda form, masked: report(form, masked=masked), self.window()).exec()

    def _share(self) -> None:
        from gpu_studio.core.benchmark.comparison import sides_of
        from gpu_studio.ui.standard_page import ShareDialog

        if self._measurement.run is not None:
            ShareDialog(sides_of(self._measurement.run), self.theme, self.window()).exec()

    def _log_or_stop(self) -> None:
        from gpu_studio.ui.saving import ask_save_path  # not at the start

        log = self.model.log
        if log.is_running:
            log.stop()
            return
        chosen = ask_save_path(
            self, "Log the sensors to a file", "gpu-studio-sensors.csv", "CSV (*.csv)"
        )
        if chosen:
            log.start(Path(chosen))

    def _ask_for_pc(self) -> None:
        from gpu_studio.ui.devices.add_pc_dialog import AddPcDialog  # at the press

        dialog = AddPcDialog(self._studio.pcs, self.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _ask_to_end(self) -> None:
        process, name = self.model.process, "devices.processes.question"
        if process and agrees(self, programs.question(process), "End program", name=name):
            self.model.end(process)


def _said(verdict: Finding) -> Notice:
    """Return a verdict's sentence; a good one needs no color beside its sign."""
    tone = Tone.PLAIN if verdict.tone is Tone.GOOD else verdict.tone
    return Notice(verdict.sentence, tone)
