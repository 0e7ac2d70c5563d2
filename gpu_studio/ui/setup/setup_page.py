"""The page that installs the engine: one progress bar, and the engines that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, button, set_property
from gpu_studio.ui.setup.build_list import BuildList
from gpu_studio.ui.setup.setup_hero import SetupHero

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.builds import Builds


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
