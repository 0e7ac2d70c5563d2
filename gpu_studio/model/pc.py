"""A PC whose devices the window has: this one, or a `model.remote_pc.RemotePc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from gpu_studio.core.notice import Notice
from gpu_studio.model.doctor import Doctor
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.sensors import Sensors

if TYPE_CHECKING:
    from gpu_studio.core.engine import EngineFactory
    from gpu_studio.model.doctor import Probe
    from gpu_studio.model.sensors import SensorSource

_STOP_OVER_LINE_MS = 2000  # a round trip of a bad mobile line, with what waits in it


class Pc(QObject):
    """The engines and the sensors of a PC, and the findings about it.

    Args:
        name: what the user calls another PC; empty for this one.
        engine_factory: creates an engine there.
        lab_factory: creates an engine there for what may break it.
        source: the stream of its telemetry; None until another PC is connected.
        probe: runs a real kernel on each of its cards; None if that is not possible.
        parent: owns it.

    Attributes:
        session: the conversation with the engine that measures.
        lab: the conversation with the memory lab's own engine, so that an experiment can only break
            that: it starts for an experiment and ends with it, because its context uses memory of
            the card.
        lab_factory: creates the engines of other work that may break one, such as a check.
        notice: how it is connected, and what can be done about it; empty for this one.
    """

    def __init__(
        self,
        name: str,
        engine_factory: EngineFactory,
        lab_factory: EngineFactory,
        source: SensorSource | None,
        probe: Probe | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.name = name
        self.lab_factory = lab_factory
        # A stop crosses the line and its answer comes back, before the engine counts as deaf.
        patience_ms = _STOP_OVER_LINE_MS if name else None
        self.session = EngineSession(
            engine_factory, self, wakes_cards=False, stop_patience_ms=patience_ms
        )
        self.lab = EngineSession(lab_factory, self, stop_patience_ms=patience_ms)
        self.sensors = Sensors(source, self, shares_clock=not name)
        self.doctor = Doctor(self.session, self.sensors, probe, self)
        self.notice = Notice()

    @property
    def why_not(self) -> str:
        """Why nothing can be asked of it, as a sentence; empty if something can."""
        return ""

    @property
    def engine_trouble(self) -> str:
        """Why it has no engine although it is connected; empty if it has one, and for this PC."""
        return ""

    @property
    def is_shut(self) -> bool:
        """Whether the user disconnected it; never this PC."""
        return False

    def close(self) -> None:
        """End all its work and its processes."""
        self.doctor.close()
        self.lab.close()
        self.session.close()
        self.sensors.close()
