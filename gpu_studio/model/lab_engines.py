"""The memory lab's own engines: created on first use, ended after their work.

An experiment can only break its own engine: the program's engine keeps its context, its tensors
and its runs. A real engine ends with its experiment, because its context uses memory of the card; a
modeled one costs nothing and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.task import Task

if TYPE_CHECKING:
    from gpu_studio.core.engine import EngineFactory

_LONGEST_END_MS = 1500


class LabEngines(QObject):
    """At most one real engine and one modeled one.

    Args:
        main: the program's own session: a real engine of the lab sees the same cards.
        factory: creates a real engine.
        modelled_factory: creates a modeled one; None if modeled cards are not available.

    Signals:
        session_began(EngineSession): a new session exists but has not started.
        session_ended(EngineSession): a session has ended or is ending.
    """

    session_began = Signal(object)
    session_ended = Signal(object)

    def __init__(
        self,
        main: EngineSession,
        factory: EngineFactory,
        modelled_factory: EngineFactory | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._main = main
        self._factories = {False: factory, True: modelled_factory or factory}
        self._sessions: dict[bool, EngineSession] = {}
        self._endings: dict[Task, EngineSession] = {}
        self._closed = False

    @property
    def real(self) -> EngineSession | None:
        """The real engine's session; None if there is none."""
        return self._sessions.get(False)

    @property
    def modelled(self) -> EngineSession | None:
        """The modeled engine's session; None before its first use."""
        return self._sessions.get(True)

    def engage(self, *, is_modelled: bool, conf: str = "", fresh: bool = True) -> EngineSession:
        """Return a started session with these options of the allocator.

        Args:
            is_modelled: whether to return the modeled one.
            conf: the options, in the format of PYTORCH_CUDA_ALLOC_CONF.
            fresh: start a new engine; otherwise use an existing one.
        """
        session = self._sessions.get(is_modelled)
        if session is not None and not fresh:
            return session
        # The same numbers must mean the same cards in both engines.
        visible_devices = None if is_modelled else self._main.environment.visible_devices
        environment = EngineEnvironment(
            visible_devices=visible_devices, allocator_configuration=conf or None
        )
        if session is not None and is_modelled:
            session.restart(environment)
            return session
        self.end(is_modelled=is_modelled)
        session = EngineSession(self._factories[is_modelled], self, environment=environment)
        self._sessions[is_modelled] = session
        self.session_began.emit(session)
        session.start()
        return session

    def end(self, *, is_modelled: bool = False) -> None:
        """End an engine without waiting for it."""
        session = self._sessions.pop(is_modelled, None)
        if session is None:
            return
        ending = session.dismiss()
        self.session_ended.emit(session)
        if ending is not None:
            self._endings[ending] = session
            ending.finished.connect(self._forget_ended)

    def close(self) -> None:
        """End everything and wait for it."""
        for is_modelled in list(self._sessions):
            session = self._sessions.pop(is_modelled)
            session.close()
        for ending in self._endings:
            ending.wait(_LONGEST_END_MS)

    def _forget_ended(self) -> None:
        ending = self.sender()
        assert isinstance(ending, Task)
        session = self._endings.pop(ending)
        if session.has_ended:  # otherwise a hung driver blocks a thread, which must not be deleted
            session.deleteLater()
