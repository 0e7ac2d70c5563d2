"""What to benchmark: workload, sizes, precision, devices, time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize, Signal
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QGridLayout,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.benchmark.plan import Plan, Sweep
from gpu_studio.core.benchmark.sizes import parse_sizes
from gpu_studio.core.device_name import CPU
from gpu_studio.core.tensors import DTYPES
from gpu_studio.model.settings import Choices
from gpu_studio.model.text_rows import plain_tip, rich_tip
from gpu_studio.ui.benchmark.benchmark_options import (
    STOP_AT_RELATIVE_INTERVAL,
    ModeSwitches,
    MoreOptions,
    WorkloadOptions,
)
from gpu_studio.ui.benchmark.sizes_choice import SizesChoice
from gpu_studio.ui.benchmark.swatch import SIDE, swatch
from gpu_studio.ui.eliding import ComboBox
from gpu_studio.ui.parts import Text, section, without_mnemonic

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_SECTION_GAP = 10
_BUDGETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

_COLUMN_TITLE, _BAR_TITLE = 12, 18  # letters of a workload's title
_MOST_IN_A_BAR, _BAR_GAP = 3, 12  # boxes side by side; pixels between two of them
_INDENT = 23  # under the check box's own text


class BenchmarkChoices(QWidget):
    """Workload and devices, and `more` for another place. `keep` stores them in the settings.

    Signals:
        changed(): a choice changed.
        run_wanted(): Enter was pressed in the sizes.

    Attributes:
        more: the folded options, to be placed by the tab.
    """

    changed = Signal()
    run_wanted = Signal()

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("page", True)
        self._studio = studio
        self._workloads: dict[str, WorkloadDescription] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(5)
        self._is_bar = False
        self._make_workload()
        self._column.addSpacing(_SECTION_GAP)
        self._heads.append(section("Devices"))
        self._column.addWidget(self._heads[-1])
        self._devices = DeviceBoxes(theme, self._workload)
        self._column.addWidget(self._devices)
        self._device_note = Text("", "muted", name="benchmark.devices.note", wraps=True)
        self._column.addWidget(self._device_note)
        self._make_more()
        for part in (self._devices, self._options, self._sizes, self._modes):
            part.changed.connect(self.changed)
        self._sizes.run_wanted.connect(self.run_wanted)
        self.changed.connect(self._show_more)
        studio.session.engine_described.connect(self._engine_described)
        studio.board.changed.connect(self._show_devices)
        self._engine_described()

    @property
    def plan(self) -> Plan:
        """The chosen plan; for a sweep, with its first sizes."""
        modes = self._modes.modes
        return Plan(
            workload=self._workload.currentData() or "",
            sizes=tuple(self._sizes.sizes),
            dtypes=tuple(dtype for dtype, box in self._dtypes.items() if _is_chosen(box)),
            devices=tuple(address for address in self._devices.addresses if self._serves(address)),
            budget_s=self._budget.currentData(),
            options=self._options.options,
            cache="cold" if "cold" in modes else "hot",
            transfers="transfers" in modes,
            naive="naive" in modes,
            sustained="sustained" in modes,
            stop_at_relative_interval=(
                STOP_AT_RELATIVE_INTERVAL if "stop_early" in modes else None
            ),
        )

    @property
    def is_sweep(self) -> bool:
        """Whether finer sizes follow around the crossover."""
        return self._sizes.is_sweep

    @property
    def run_plan(self) -> RunPlan:
        """The plan that Run starts."""
        return Sweep(self.plan) if self._sizes.is_sweep else self.plan

    @property
    def problem(self) -> str:
        """The reason why nothing can run yet, as a sentence; empty if all choices are valid."""
        plan, workload = self.plan, self._described
        if workload is not None and workload.skipped:
            return "This workload cannot run on this PC."
        if not plan.sizes:
            return "Fix the sizes first."
        if not plan.dtypes:
            return "Choose at least one precision."
        if not plan.devices:
            return "Choose at least one device."
        return ""

    @property
    def controls(self) -> tuple[QWidget, ...]:
        """The first and the last control of what is always visible, and of what is folded."""
        last = self._devices.last_control or self._workload
        return self._workload, last, self.more.button, self._modes.last

    def set_bar(self, is_bar: bool) -> None:
        """Put workload and devices side by side without explanations, or below each other."""
        self._is_bar = is_bar
        directions = QBoxLayout.Direction
        self._column.setDirection(directions.LeftToRight if is_bar else directions.TopToBottom)
        self._show_parts()
        self._sentence.setVisible(not is_bar)
        self._workload.setMinimumContentsLength(_BAR_TITLE if is_bar else _COLUMN_TITLE)
        self._devices.set_bar(is_bar)
        self._show_device_note()

    def _show_parts(self) -> None:
        """Show the devices once the engine has named the workloads: they stand below these."""
        is_known = bool(self._workloads)
        workload, devices = self._heads
        workload.setVisible(not self._is_bar)
        devices.setVisible(is_known and not self._is_bar)
        self._devices.setVisible(is_known)
        if is_known:
            self.more.offer()

    def _show_device_note(self) -> None:
        self._device_note.setVisible(bool(self._device_note.text()) and not self._is_bar)

    def keep(self) -> None:
        """Store the choices for the next start."""
        plan = self.plan
        sizes, sweep_range = self._sizes.texts
        self._studio.settings.change(
            workload=plan.workload,
            sizes=sizes,
            sweep=self._sizes.is_sweep,
            sweep_range=sweep_range,
            modes=self._modes.modes,
            dtypes=plan.dtypes,
            budget_s=plan.budget_s,
        )

    @property
    def _described(self) -> WorkloadDescription | None:
        return self._workloads.get(self._workload.currentData() or "")

    def _serves(self, address: str) -> bool:
        workload = self._described
        return workload is None or workload.runs_on(address)

    def _make_workload(self) -> None:
        self._heads = [section("Workload")]
        self._column.addWidget(self._heads[0])
        self._workload = ComboBox()
        self._workload.setObjectName("benchmark.workload")
        self._workload.setAccessibleName("Workload")
        # A long title must not widen the column.
        self._workload.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._workload.setMinimumContentsLength(_COLUMN_TITLE)
        self._workload.currentIndexChanged.connect(self._workload_chosen)
        self._sentence = Text("", "muted", name="benchmark.workload.sentence", wraps=True)
        self._column.addWidget(self._workload)
        self._column.addWidget(self._sentence)

    def _make_more(self) -> None:
        self.more = MoreOptions(self)
        folded, choices = self.more.column, self._studio.settings.choices
        self._options = WorkloadOptions()
        folded.addWidget(self._options)
        self._sizes = SizesChoice(choices)
        folded.addWidget(self._sizes)
        self._make_dtypes(folded)
        self._make_budget(folded)
        folded.addSpacing(_SECTION_GAP)
        self._modes = ModeSwitches(choices)
        folded.addWidget(self._modes)

    def _show_more(self) -> None:
        """Say what is folded; a mistake in it unfolds it."""
        plan = self.plan
        if not plan.sizes or not plan.dtypes:
            self.more.open()
        sizes = f"{len(plan.sizes)} sizes" if len(plan.sizes) > 1 else "1 size"
        up_to = f" up to {max(plan.sizes)}" if plan.sizes else ""
        kind = "Sweep" if self.is_sweep else sizes
        lines = (f"{kind}{up_to}", *plan.dtypes, f"{plan.budget_s:g}\u202fs per run")
        self.more.show_summary(" · ".join(lines), self._changes(plan))

    def _changes(self, plan: Plan) -> int:
        """Return how many of the folded choices differ from the default."""
        usual, workload = Choices(), self._described
        sizes = {tuple(parse_sizes(usual.sizes)), workload.sizes if workload else ()}
        return sum(
            (
                self.is_sweep or plan.sizes not in sizes,
                plan.dtypes != usual.dtypes,
                plan.budget_s != usual.budget_s,
                len(plan.options),
                len(self._modes.modes),
            )
        )

    def _make_dtypes(self, column: QVBoxLayout) -> None:
        column.addSpacing(_SECTION_GAP)
        column.addWidget(section("Precision"))
        place = QWidget()
        place.setObjectName("benchmark.dtype")
        place.setAccessibleName("Precision")
        grid = QGridLayout(place)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(4)
        self._dtypes: dict[str, QCheckBox] = {}
        for place_number, dtype in enumerate(("float32", "float16", "float64", "bfloat16")):
            box = QCheckBox(dtype)
            box.setObjectName(f"benchmark.dtype.{dtype}")
            box.setChecked(dtype in self._studio.settings.choices.dtypes)
            box.toggled.connect(self.changed)
            grid.addWidget(box, place_number // 2, place_number % 2)
            self._dtypes[dtype] = box
        assert set(self._dtypes) == set(DTYPES)
        column.addWidget(place)

    def _make_budget(self, column: QVBoxLayout) -> None:
        column.addSpacing(_SECTION_GAP)
        column.addWidget(section("Time per run"))
        self._budget = ComboBox()
        self._budget.setObjectName("benchmark.budget")
        self._budget.setAccessibleName("Time per run")
        self._budget.setToolTip("How long each run is timed, after setup, check and warm-up.")
        last_budget_s = self._studio.settings.choices.budget_s
        for budget_s in sorted({*_BUDGETS_S, last_budget_s}):
            self._budget.addItem(f"{budget_s:g}\u202fs", budget_s)
        self._budget.setCurrentIndex(self._budget.findData(last_budget_s))
        self._budget.currentIndexChanged.connect(self.changed)
        column.addWidget(self._budget)

    def _engine_described(self) -> None:
        description = self._studio.session.description
        if description is not None:
            self._show_workloads(list(description.workloads))
        self._show_devices()
        self._show_parts()

    def _show_workloads(self, workloads: list[WorkloadDescription]) -> None:
        if workloads == list(self._workloads.values()):
            return
        wanted = self._workload.currentData() or self._studio.settings.choices.workload
        self._workloads = {workload.name: workload for workload in workloads}
        with QSignalBlocker(self._workload):
            self._workload.clear()
            for workload in workloads:
                title = f"{workload.title} (not available)" if workload.skipped else workload.title
                self._workload.addItem(title, workload.name)
            self._workload.setCurrentIndex(max(self._workload.findData(wanted), 0))
        self._workload_chosen()

    def _workload_chosen(self) -> None:
        workload = self._described
        if workload is not None:
            self._sentence.setText(
                f"{workload.sentence} {workload.skipped}" if workload.skipped else workload.sentence
            )
            self._sentence.set_role("amber" if workload.skipped else "muted")
            self._workload.setToolTip(rich_tip([workload.sentence, workload.source]))
            for dtype, box in self._dtypes.items():
                box.setEnabled(dtype in workload.dtypes)
            cards_alone = not workload.runs_on(CPU)
            self._device_note.setText("This workload runs on GPUs only." if cards_alone else "")
            self._show_device_note()
            self._options.show_workload(workload)
            self._modes.show_workload(workload)
            self._sizes.show_workload(workload)
        self.changed.emit()

    def _show_devices(self) -> None:
        self._devices.show_rows(self._studio.board.rows)


def _is_chosen(box: QCheckBox) -> bool:
    return box.isEnabled() and box.isChecked()


def _shown(row: DeviceRow) -> tuple[str | None, ...]:
    return row.identity, row.label, row.name, row.address, row.reason


class DeviceBoxes(QWidget):
    """The CPU and every card. A card that PyTorch cannot use is disabled, with the reason.

    Signals:
        changed(): other devices are checked.
    """

    changed = Signal()

    def __init__(self, theme: Theme, before: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._before = before  # the control that Tab leaves to reach the first box
        self.setObjectName("benchmark.devices")
        self.setAccessibleName("Devices")
        self._theme = theme
        self._rows: tuple[DeviceRow, ...] = ()
        self._boxes: list[QCheckBox] = []
        # Devices that the user unchecked; a new device starts checked.
        self._unchecked: set[str] = set()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._notes: list[Text] = []
        self._is_bar = False

    @property
    def last_control(self) -> QWidget | None:
        """The last box; None before the devices are found."""
        return self._boxes[-1] if self._boxes else None

    def set_bar(self, is_bar: bool) -> None:
        """Put the boxes side by side without the devices' full names, or below each other."""
        self._is_bar = is_bar
        self._arrange()

    def _arrange(self) -> None:
        directions = QBoxLayout.Direction
        beside = self._is_bar and len(self._boxes) <= _MOST_IN_A_BAR
        self._column.setDirection(directions.LeftToRight if beside else directions.TopToBottom)
        self._column.setSpacing(_BAR_GAP if beside else 4)
        for note in self._notes:
            note.setVisible(not self._is_bar)

    @property
    def addresses(self) -> list[str]:
        """The checked devices that are usable, the CPU first."""
        return [
            row.address
            for row, box in zip(self._rows, self._boxes, strict=True)
            if row.address is not None and box.isChecked()
        ]

    def show_rows(self, rows: tuple[DeviceRow, ...]) -> None:
        """Offer other devices; unchecked devices stay unchecked."""
        is_same = [*map(_shown, rows)] == [*map(_shown, self._rows)]
        self._rows = rows
        if is_same:
            return
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.setObjectName("")  # it outlives the creation of its successor for a moment
                widget.deleteLater()
        self._notes = []
        self._boxes = [self._add(row) for row in rows]
        # They are created after the widgets below them: Tab has to reach them in visual order.
        for earlier, box in itertools.pairwise([self._before, *self._boxes]):
            QWidget.setTabOrder(earlier, box)
        self._arrange()
        self.changed.emit()

    def _add(self, row: DeviceRow) -> QCheckBox:
        box = QCheckBox(without_mnemonic(row.label))
        box.setObjectName(f"benchmark.devices.{row.address or row.identity}")
        role = self._theme.device_role(row.address) if row.address else "other"
        box.setIcon(swatch(self._theme, role, self.devicePixelRatioF()))
        box.setIconSize(QSize(SIDE, SIDE))
        usable = row.address is not None
        box.setEnabled(usable)
        box.setChecked(usable and row.identity not in self._unchecked)
        box.setAccessibleName(row.label)
        note = row.reason or row.name
        box.setAccessibleDescription(note)
        box.setToolTip(plain_tip(note))
        box.toggled.connect(self._note)
        self._column.addWidget(box)
        for more in list(dict.fromkeys((row.label, note)))[1:]:  # nothing is shown twice
            text = Text(more, "muted", wraps=True)
            text.setIndent(_INDENT)  # a style sheet takes margins away when it is shown again
            self._column.addWidget(text)
            self._notes.append(text)
        return box

    def _note(self) -> None:
        for row, box in zip(self._rows, self._boxes, strict=True):
            if box.isEnabled():
                self._unchecked.discard(row.identity)
                if not box.isChecked():
                    self._unchecked.add(row.identity)
        self.changed.emit()
