"""The page that installs the engine: one progress bar, and the engines that are there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.builds.words import build_title
from gpu_studio.model import setup_words as words
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, section, set_property
from gpu_studio.ui.setup.question import ask
from gpu_studio.ui.setup.setup_hero import SetupHero

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.builds import Builds


class _Row(NamedTuple):
    box: QWidget
    state: Text
    use: QPushButton
    repair: QPushButton
    remove: QPushButton


class BuildList(Card):
    """One row for each installed build, and the space that they take.

    Args:
        builds: the builds.
    """

    def __init__(self, builds: Builds) -> None:
        super().__init__(name="setup.builds")
        self._builds = builds
        self._rows: dict[str, _Row] = {}
        self.column.setSpacing(GAP)
        self.column.addWidget(section("Installed engines"))
        for family in FAMILIES:
            row = self._new_row(family)
            self._rows[family] = row
            self.column.addWidget(row.box)
        self._disk = Text("", "muted", name="setup.disk", wraps=True)
        self.column.addWidget(self._disk)
        builds.changed.connect(self.update_all)
        self.update_all()

    def update_all(self) -> None:
        """Show the present builds."""
        builds = self._builds
        records = {one.family: one for one in builds.installed.records}
        for family, row in self._rows.items():
            record = records.get(family)
            row.box.setVisible(record is not None)
            if record is None:
                continue
            row.state.setText(words.record_sentence(record, builds))
            row.use.setVisible(family != builds.engine.in_use and record.is_ready)
            row.use.setEnabled(not builds.engine.taking_over and family != builds.removing)
            for pressed in (row.repair, row.remove):
                pressed.setEnabled(builds.can_change(family))
        # The present download grows: its size is not known.
        unfinished = 0 if builds.is_at_work else builds.installed.unfinished_bytes
        self._disk.setText(words.disk_sentence(builds, unfinished))

    def _new_row(self, family: str) -> _Row:
        name = f"setup.build.{family}"
        box = QWidget()
        box.setObjectName(name)
        title = Text(build_title(family), "value")
        state = Text("", "muted", name=f"{name}.state", wraps=True)
        use = button("Use", partial(self._builds.use, family), name=f"{name}.use")
        repair = button(
            "Repair", partial(self._builds.repair, family), name=f"{name}.repair",
            tip="Looks at every file, and installs again what is damaged",
        )  # fmt: skip
        remove = button("Remove…", partial(self._remove, family), name=f"{name}.remove")
        for pressed in (use, repair, remove):
            pressed.setAccessibleName(f"{pressed.text()} {build_title(family)}")
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(title)
        column.addWidget(state)
        column.addWidget(FlowRow(use, repair, remove, spacing=GAP))
        return _Row(box, state, use, repair, remove)

    def _remove(self, family: str) -> None:
        """Ask once: the next use needs the whole download again."""
        record = next((one for one in self._builds.installed.records if one.family == family), None)
        if record is None:
            return
        ask(
            self,
            "setup.remove",
            "Remove engine",
            f"Remove the {build_title(family)}?",
            f"This frees {format_size(record.size_bytes)}. Your results stay. To use it again, it "
            "has to be downloaded again.",
            "Remove",
            partial(self._builds.remove, family),
        )


class SetupPage(QWidget):
    """Stands in the place of the tabs.

    Args:
        builds: the builds.
        close: shows the tabs again.
    """

    def __init__(self, builds: Builds, close: Callable[[], object]) -> None:
        super().__init__()
        self.setObjectName("setup.page")
        self.setAccessibleName("Set up the engine")
        self._builds = builds
        self._hero = SetupHero(builds)
        self._list = BuildList(builds)
        self._close = button("", close, name="setup.close")
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._hero)
        column.addWidget(self._list)
        column.addWidget(FlowRow(self._close, spacing=GAP))
        column.addStretch(1)
        builds.changed.connect(self._update)
        self._update()

    def _update(self) -> None:
        self._list.setVisible(bool(self._builds.installed.records))
        has_engine = self._builds.has_engine
        text = "Start using GPU Studio" if has_engine else "Look around without the engine"
        self._close.setText(text)
        self._close.setAccessibleName(text)
        # While another engine is offered, paused or failed, its own button is the next step.
        goes_well = self._builds.is_at_work or self._builds.progress.stage is InstallStage.READY
        set_property(self._close, "primary", has_engine and goes_well)
