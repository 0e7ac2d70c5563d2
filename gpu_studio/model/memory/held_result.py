"""What an experiment reached, kept in sight: it frees everything within milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.model.memory.oom_experiment import OomState

if TYPE_CHECKING:
    from gpu_studio.model.memory.oom_experiment import LabResult, OomExperiment

_FRESH_MS = 8000


class HeldResult(QObject):
    """The last result of an experiment, and whether it is so new that it hides the present.

    Signals:
        aged(): the last result is not new any more.
    """

    aged = Signal()

    def __init__(self, experiment: OomExperiment, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._experiment = experiment
        self._ageing = QTimer(self)
        self._ageing.setSingleShot(True)
        self._ageing.setInterval(_FRESH_MS)
        self._ageing.timeout.connect(self.aged)
        experiment.results_changed.connect(self._begin)

    @property
    def latest(self) -> LabResult | None:
        """The last result; None while an experiment runs, and where nothing was read."""
        results = self._experiment.results
        if not results or self._experiment.state is not OomState.IDLE:
            return None
        return results[-1] if results[-1].reached is not None else None

    @property
    def is_fresh(self) -> bool:
        """Whether there is a result that came some seconds ago."""
        return self._ageing.isActive() and self.latest is not None

    def let_go(self) -> None:
        """Let the present be seen now."""
        self._ageing.stop()
        self.aged.emit()

    def _begin(self) -> None:
        self._ageing.start()
