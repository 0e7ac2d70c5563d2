"""The way of an installed build to the engine, which may be at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core import limits
from gpu_studio.model.engine_session import EngineState

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.engine_session import EngineSession

_AT_REST = (EngineState.READY, EngineState.FAILED, EngineState.ABSENT)
NOT_INSTALLED = "PyTorch is not installed yet: see the top of this window."
MADE_FOR_OTHER = "PyTorch must be installed again for this Python: see the top of this window."


class EngineHandover(QObject):
    """Gives a build to the engine, or takes it away, as soon as the engine has nothing to do.

    Attributes:
        best: the build that the next engine uses; "" if there is none.
        in_use: the build of the present engine; "" if there is no engine.

    Signals:
        changed(): one of the attributes changed, or the state of the engine.
    """

    changed = Signal()

    def __init__(
        self, session: EngineSession, lab: EngineSession, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._lab = session, lab
        self.best = self.in_use = ""
        self._is_closed = False
        self._postponed: Callable[[], None] | None = None
        self._settled = QTimer(self, singleShot=True, interval=limits.current.handover_ms)
        self._settled.timeout.connect(self._on_settled)
        session.state_changed.connect(self._on_state_changed)

    @property
    def taking_over(self) -> str:
        """The build that waits for the engine to have nothing to do; "" if none does."""
        return self.best if self.in_use and self.best != self.in_use else ""

    @property
    def is_free(self) -> bool:
        """Whether no engine works: not this one, not the lab's, and none that it made room for."""
        made_room = self._session.is_released and bool(self.in_use)
        at_rest = all(one.state in _AT_REST for one in (self._session, self._lab))
        return at_rest and not made_room

    def set_best(self, best: str, absence: str) -> None:
        """Use a build from the next `start` on; without one, the engine is absent, and this why."""
        self.best = best
        if not self.in_use:
            self._session.set_absence("" if best else absence)

    def start(self) -> None:
        """Start the engine with the best build, or let it take over from another one."""
        if self.taking_over:
            self._settled.start()
        elif self.best and not self.in_use:
            self._use_best()

    def switch_now_if_idle(self) -> None:
        """Let the best build take over now if the engine has nothing to do."""
        QTimer.singleShot(0, self, self._on_settled)

    def without(self, family: str, work: Callable[[], None]) -> None:
        """Do something to a build that no engine uses meanwhile."""
        if family != self.in_use:
            work()
        elif not self.is_free:
            self._postponed = lambda: self.without(family, work)
            self._settled.start()
        else:
            self._lab.end()
            self.in_use = ""
            ending = self._session.release()
            if ending is None:  # it has none
                work()
            else:
                ending.finished.connect(work)

    def close(self) -> None:
        """Give the engine no other build."""
        self._settled.stop()
        self._is_closed = True

    def _on_settled(self) -> None:
        if self._is_closed:
            return
        if self._postponed is not None:
            postponed, self._postponed = self._postponed, None
            postponed()
        elif self.best and self.best != self.in_use:
            is_idle = self._session.is_free or self._session.state is EngineState.FAILED
            if is_idle and self.is_free:
                self._lab.end()
                self._use_best()
                self.changed.emit()
            else:
                self._settled.start()  # a check or an experiment may take minutes

    def _use_best(self) -> None:
        self.in_use = self.best
        self._session.restart()

    def _on_state_changed(self, state: EngineState) -> None:
        if state is EngineState.STARTING and self.best:
            self.in_use = self.best  # each new engine takes the best build of its moment
        if (self.taking_over or self._postponed) and state in _AT_REST:
            self._settled.start()
        self.changed.emit()
