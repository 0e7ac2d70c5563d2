"""Another PC that a test scripts: what it answers first, its engines and its sensors."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.messages.message import Greeting
from gpu_studio.core.other_pc import Introduction, LineProblem, OtherPc
from gpu_studio.line.line_values import event_here, sensors_here
from tests.fakes.descriptions import described_for
from tests.fakes.pc import SteadySensors, gt_1030
from tests.fakes.scripted_engine import Engines
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.messages.message import EngineReadiness
    from gpu_studio.model.pc import RemotePc
    from gpu_studio.model.studio import Studio
    from tests.fakes.scripted_engine import ScriptedEngine

ATTIC = OtherPc(name="attic", host="lea@192.0.2.7")


def add_attic(studio: Studio) -> RemotePc:
    """Add “attic”, without asking first whether it answers."""
    pc = studio.pcs.new(ATTIC)
    studio.pcs.add(pc)
    return pc


class OtherPcs:
    """Satisfies `model.pc.PcPort`: one PC, “attic”, with a GT 1030.

    Attributes:
        engines: makes their engines.
        refusal: why it cannot be reached; None if it can.
        engine_there: whether it has an engine.
        answers: cleared, it keeps a greeting waiting until the question is closed.
        sources: the streams of sensors so far.
        asked: the PCs that were greeted.
    """

    def __init__(self, inventory: Inventory | None = None) -> None:
        there = inventory or gt_1030()
        self.inventory = sensors_here(there, "attic")
        self.engines = Engines({DescribeEngine: [event_here(described_for(there), "attic")]})
        self.refusal: LineProblem | None = None
        self.engine_there: EngineReadiness = "ready"
        self.answers = threading.Event()
        self.answers.set()
        self.sources: list[SteadySensors] = []
        self.asked: list[str] = []

    def hello(self, pc: OtherPc) -> Hello:
        return Hello(self, pc)

    def engine(self, _pc: OtherPc, environment: EngineEnvironment) -> ScriptedEngine:
        return self.engines(environment)

    def sensors(self, _pc: OtherPc) -> SteadySensors:
        self.sources.append(SteadySensors(self.inventory))
        return self.sources[-1]


class Hello:
    def __init__(self, port: OtherPcs, pc: OtherPc) -> None:
        self._port, self._pc = port, pc
        port.asked.append(pc.name)

    def answer(self) -> Introduction:
        assert self._port.answers.wait(PATIENCE_S)
        if self._port.refusal is not None:
            return Introduction(self._pc, problem=self._port.refusal)
        there = self._port.engine_there
        greeting = Greeting(protocol="", version="", system="linux", engine=there)
        return Introduction(self._pc, greeting)

    def close(self) -> None:
        self._port.answers.set()


def line_lost() -> RequestFailed:
    """Return how an engine ends whose line was cut."""
    return RequestFailed(failure=LineProblem.LOST.failure(ATTIC))
