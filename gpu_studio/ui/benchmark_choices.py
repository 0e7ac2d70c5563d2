"""What to benchmark: workload, sizes, precision, devices, time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.failure import StudioError
from gpu_studio.core.plan import Plan
from gpu_studio.core.sizes import DTYPES, parse_sizes
from gpu_studio.model.benchmark_devices import device_choices
from gpu_studio.ui.benchmark_devices import DeviceBoxes
from gpu_studio.ui.parts import Text, section, set_property

if TYPE_CHECKING:
    from gpu_studio.core.protocol import WorkloadDescription
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_SECTION_GAP = 10
_BUDGETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


class BenchmarkChoices(QWidget):
    """The form on the left. What is chosen is kept in the settings when `keep` is called.

    Signals:
        changed(): something else is chosen.
        run_wanted(): Return was pressed in the sizes.
    """

    changed = Signal()
    run_wanted = Signal()

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("page", True)
        self._studio = studio
        self._workloads: dict[str, WorkloadDescription] = {}
        self._sizes_read: list[int] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 8, 0)
        self._column.setSpacing(5)
        self._make_workload()
        self._make_sizes()
        self._make_dtypes()
        self._column.addSpacing(_SECTION_GAP)
        self._column.addWidget(section("Devices"))
        self._devices = DeviceBoxes(theme)
        self._column.addWidget(self._devices)
        self._make_budget()
        self._column.addStretch(1)
        self._devices.changed.connect(self.changed)
        studio.session.engine_described.connect(self._engine_described)
        studio.sensors.inventory_changed.connect(self._show_devices)
        self._engine_described()
        self._read_sizes()

    @property
    def plan(self) -> Plan:
        """What is chosen now."""
        return Plan(
            workload=self._workload.currentData() or "",
            sizes=tuple(self._sizes_read),
            dtypes=tuple(dtype for dtype, box in self._dtypes.items() if _is_chosen(box)),
            devices=tuple(self._devices.addresses),
            budget_s=self._budget.currentData(),
        )

    @property
    def problem(self) -> str:
        """What is still missing, as a sentence; empty where nothing is."""
        plan = self.plan
        if not plan.sizes:
            return "Mend the sizes first."
        if not plan.dtypes:
            return "Choose at least one precision."
        if not plan.devices:
            return "Choose at least one device."
        return ""

    def keep(self) -> None:
        """Keep what is chosen for the next start."""
        plan = self.plan
        self._studio.settings.change(
            workload=plan.workload,
            sizes=self._sizes.text(),
            dtypes=plan.dtypes,
            budget_s=plan.budget_s,
        )

    def _make_workload(self) -> None:
        self._column.addWidget(section("Workload"))
        self._workload = QComboBox()
        self._workload.setObjectName("benchmark.workload")
        self._workload.setAccessibleName("Workload")
        # A long title must not widen the column.
        self._workload.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._workload.setMinimumContentsLength(12)
        self._workload.currentIndexChanged.connect(self._workload_chosen)
        self._sentence = Text("", "muted", name="benchmark.workload.sentence", wraps=True)
        self._column.addWidget(self._workload)
        self._column.addWidget(self._sentence)

    def _make_sizes(self) -> None:
        self._column.addSpacing(_SECTION_GAP)
        self._column.addWidget(section("Sizes"))
        self._sizes = QLineEdit(self._studio.settings.choices.sizes)
        self._sizes.setObjectName("benchmark.sizes")
        self._sizes.setAccessibleName("Sizes")
        self._sizes.setToolTip(
            "The sides of the square matrices: 512, 1024, 2048, or 64..4096 for every doubling. "
            "Return runs."
        )
        self._sizes.textChanged.connect(self._read_sizes)
        self._sizes.returnPressed.connect(self.run_wanted)
        self._sizes_error = Text("", "failure", name="benchmark.sizes.error", wraps=True)
        self._sizes_error.hide()
        self._column.addWidget(self._sizes)
        self._column.addWidget(self._sizes_error)

    def _make_dtypes(self) -> None:
        self._column.addSpacing(_SECTION_GAP)
        self._column.addWidget(section("Precision"))
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
        self._column.addWidget(place)

    def _make_budget(self) -> None:
        self._column.addSpacing(_SECTION_GAP)
        self._column.addWidget(section("Time per run"))
        self._budget = QComboBox()
        self._budget.setObjectName("benchmark.budget")
        self._budget.setAccessibleName("Time per run")
        self._budget.setToolTip(
            "How long each run is timed; set-up, check and warm-up come before it."
        )
        kept_s = self._studio.settings.choices.budget_s
        for budget_s in sorted({*_BUDGETS_S, kept_s}):
            self._budget.addItem(f"{budget_s:g}\u202fs", budget_s)
        self._budget.setCurrentIndex(self._budget.findData(kept_s))
        self._budget.currentIndexChanged.connect(self.changed)
        self._column.addWidget(self._budget)

    def _engine_described(self) -> None:
        description = self._studio.session.description
        if description is not None:
            self._show_workloads(list(description.workloads))
        self._show_devices()

    def _show_workloads(self, workloads: list[WorkloadDescription]) -> None:
        if workloads == list(self._workloads.values()):
            return
        wanted = self._workload.currentData() or self._studio.settings.choices.workload
        self._workloads = {workload.name: workload for workload in workloads}
        with QSignalBlocker(self._workload):
            self._workload.clear()
            for workload in workloads:
                self._workload.addItem(workload.title, workload.name)
            self._workload.setCurrentIndex(max(self._workload.findData(wanted), 0))
        self._workload_chosen()

    def _workload_chosen(self) -> None:
        workload = self._workloads.get(self._workload.currentData() or "")
        self._sentence.setText(workload.sentence if workload else "")
        if workload is not None:
            self._workload.setToolTip(workload.source)
            for dtype, box in self._dtypes.items():
                box.setEnabled(dtype in workload.dtypes)
        self.changed.emit()

    def _show_devices(self) -> None:
        choices = device_choices(self._studio.sensors.inventory, self._studio.session.description)
        self._devices.show_choices(choices)

    def _read_sizes(self) -> None:
        try:
            self._sizes_read, mistake = parse_sizes(self._sizes.text()), ""
        except StudioError as error:
            self._sizes_read, mistake = [], str(error)
        set_property(self._sizes, "invalid", bool(mistake))
        self._sizes_error.setText(mistake)
        self._sizes_error.setVisible(bool(mistake))
        self._sizes.setAccessibleDescription(mistake)
        self.changed.emit()


def _is_chosen(box: QCheckBox) -> bool:
    return box.isEnabled() and box.isChecked()
