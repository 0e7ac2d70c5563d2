"""The installation of another build of PyTorch, while the engine is at rest."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.set_up_progress import SetUpProgress
    from gpu_studio.model.engine_session import EngineSession

_LONGEST_END_MS = 5000
_NOT_STARTED = "The setup could not be started. The log says why."


class Installer(Protocol):
    """Installs builds of PyTorch into this program's environment."""

    def installing(self, tag: str) -> Iterator[SetUpProgress]:
        """Install a build, and yield the progress; the last value is "done" or "failed"."""

    def stop(self) -> None:
        """Ask for an early end, which comes as "failed"."""

    def close(self) -> None:
        """End it now, without an answer."""


class InstallationState(Enum):
    """The state of the installation: it runs once a person has agreed to it."""

    ABSENT = "none"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_busy(self) -> bool:
        """Whether files of PyTorch may be changing."""
        return self in (InstallationState.RUNNING, InstallationState.STOPPING)


class BuildInstallation(QObject):
    """At most one installation at a time. The engine ends before it, and a new one starts after it.

    Attributes:
        state: its state.
        step: the current step, in words.
        detail: the current action or, at the end, the reason of a failure.
        fraction: the done share, 0 to 1.

    Signals:
        changed(): one of the attributes changed.
    """

    changed = Signal()

    def __init__(
        self,
        session: EngineSession,
        lab: EngineSession,
        installer: Installer | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._lab, self._installer = session, lab, installer
        self._worker: Worker | None = None
        self._tag = ""
        self._is_closed = False
        self.state = InstallationState.ABSENT
        self.step = self.detail = ""
        self.fraction = 0.0

    @property
    def is_possible(self) -> bool:
        """Whether this program has its own environment, which it may change."""
        return self._installer is not None

    @property
    def can_begin(self) -> bool:
        """Whether nothing else uses PyTorch now."""
        return self.is_possible and self._session.state.is_idle and not self.state.is_busy

    def begin(self, tag: str) -> None:
        """Install a build: end the engine, then start the setup."""
        if not self.can_begin:
            return
        self._lab.end()
        ending = self._session.release()
        if ending is None:
            return
        self._tag = tag
        self._enter(InstallationState.RUNNING, "Stopping the engine…", "", 0.0)
        ending.finished.connect(self._set_up)

    def stop(self) -> None:
        """Stop the installation; a new engine starts with the PyTorch that is there."""
        if self.state is InstallationState.RUNNING and self._installer is not None:
            self._enter(InstallationState.STOPPING, "Stopping…", "", self.fraction)
            self._installer.stop()

    def close(self) -> None:
        """End the setup and wait for its end."""
        self._is_closed = True
        if self._installer is not None:
            self._installer.close()
        if self._worker is not None:
            self._worker.wait(_LONGEST_END_MS)

    def _set_up(self) -> None:
        installer = self._installer
        if self._is_closed or installer is None:
            return
        if self.state is InstallationState.STOPPING:  # before the setup was there
            self._enter(InstallationState.FAILED, "Stopped", "Nothing was changed.", 0.0)
            self._session.restart()
            return
        self._worker = Worker(lambda: installer.installing(self._tag), self)
        self._worker.value_produced.connect(self._take)
        self._worker.failure_raised.connect(self._fail)
        self._worker.finished.connect(self._finish)
        self._worker.finished.connect(self._worker.deleteLater)
        self._worker.start()

    def _take(self, told: SetUpProgress) -> None:
        states = InstallationState
        if told.kind == "done":
            self._enter(states.DONE, "Installed", "The engine starts with it.", 1.0)
        elif told.kind == "failed":
            self._enter(states.FAILED, "The installation stopped", told.text, 0.0)
        elif self.state is states.RUNNING:
            step = told.text if told.kind == "step" else self.step
            detail = told.text if told.kind != "step" else ""
            fraction = self.fraction if told.fraction is None else told.fraction
            self._enter(states.RUNNING, step, detail, fraction)

    def _fail(self, _failure: Failure) -> None:
        self._enter(InstallationState.FAILED, "The installation stopped", _NOT_STARTED, 0.0)

    def _finish(self) -> None:
        self._worker = None
        if not self.state.is_busy:  # otherwise the program is closing
            self._session.restart()

    def _enter(self, state: InstallationState, step: str, detail: str, fraction: float) -> None:
        self.state, self.step, self.detail, self.fraction = state, step, detail, fraction
        self.changed.emit()
