"""A window that installs another build of PyTorch, and shows the progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QDialog, QHBoxLayout, QProgressBar, QVBoxLayout

from gpu_studio.model.build_installation import InstallationState
from gpu_studio.ui.parts import GAP, MARGIN, Text, button, letters

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.build_installation import BuildInstallation
    from gpu_studio.model.engine_session import EngineSession

_WIDTH_LETTERS = 70
_STEPS = 1000
_ABOUT = (
    "This downloads several gigabytes and replaces the PyTorch of GPU Studio. The engine stops "
    "meanwhile. Your results stay."
)
_BUSY = "The engine is busy. Wait for its end, or stop it first."


class InstallDialog(QDialog):
    """Asks, then shows the progress. Closing it stops a running installation.

    Args:
        installation: installs and tells its progress.
        session: the engine, which must be free.
        tag: the build.
        parent: the window.
    """

    def __init__(
        self,
        installation: BuildInstallation,
        session: EngineSession,
        tag: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("install")
        self._installation, self._tag = installation, tag
        self._has_begun = False
        self.setWindowTitle(f"Install the {tag} build")
        self.setMinimumWidth(letters(self, _WIDTH_LETTERS))
        self._step = Text(f"Install the {tag} build of PyTorch?", "title", name="install.step")
        self._detail = Text(_ABOUT, "muted", name="install.detail", wraps=True)
        self._bar = QProgressBar()
        self._bar.setObjectName("install.progress")
        self._bar.setAccessibleName("Progress of the installation")
        self._bar.setTextVisible(False)
        self._bar.setRange(0, _STEPS)
        self._bar.hide()
        self._begin = button("Install", self._install, name="install.begin", primary=True)
        self._close = button("Cancel", self.reject, name="install.close")
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        column.setSpacing(GAP)
        for part in (self._step, self._bar, self._detail):
            column.addWidget(part)
        column.addStretch(1)
        line = QHBoxLayout()
        column.addLayout(line)
        line.addStretch(1)
        line.addWidget(self._begin)
        line.addWidget(self._close)
        installation.changed.connect(self._follow)
        session.state_changed.connect(self._follow)
        self._follow()

    def reject(self) -> None:
        """Stop a running installation; otherwise close."""
        if self._installation.state.is_busy:
            self._installation.stop()
        else:
            super().reject()

    def _install(self) -> None:
        self._has_begun = True
        self._installation.begin(self._tag)

    def _follow(self) -> None:
        installation, states = self._installation, InstallationState
        if not self._has_begun and not installation.state.is_busy:
            self._begin.setEnabled(installation.can_begin)
            self._detail.setText(_ABOUT if installation.can_begin else _BUSY)
            return
        self._has_begun = True
        is_busy = installation.state.is_busy
        self._begin.hide()
        self._bar.setVisible(is_busy)
        self._bar.setValue(round(_STEPS * installation.fraction))
        self._step.setText(installation.step)
        self._detail.setText(installation.detail)
        self._detail.set_role("failure" if installation.state is states.FAILED else "muted")
        self._close.setText("Stop" if is_busy else "Close")
        self._close.setAccessibleName(self._close.text())
        self._close.setEnabled(installation.state is not states.STOPPING)
