"""Another PC that a test scripts: what it answers first, its engines and its sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.line_trouble import LineProblem, LineTrouble
from gpu_studio.core.line_values import event_here, sensors_here
from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.messages.line_messages import EngineReadiness, Greeting, PcSystem
from tests.fakes.descriptions import described_for
from tests.fakes.pc import SteadySensors, gt_1030
from tests.fakes.scripted_engine import Engines

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.other_pc import OtherPc
    from tests.fakes.scripted_engine import ScriptedEngine


class Introduced(NamedTuple):
    """Satisfies `model.pc_line.PcIntroduction`."""

    pc: OtherPc
    greeting: Greeting | None
    trouble: LineTrouble | None = None
    detail: str = ""


class OtherPcs:
    """Satisfies `model.pc_line.PcPort`: one PC, “attic”, with a GT 1030.

    Attributes:
        engines: makes their engines.
        refusal: why it cannot be reached; None if it can.
        readiness: whether it has an engine.
        sources: the streams of sensors so far.
        asked: the PCs that were greeted.
    """

    def __init__(self, inventory: Inventory | None = None) -> None:
        there = inventory or gt_1030()
        self.inventory = sensors_here(there, "attic")
        self.engines = Engines({DescribeEngine: [event_here(described_for(there), "attic")]})
        self.refusal: LineProblem | None = None
        self.readiness = EngineReadiness.READY
        self.sources: list[SteadySensors] = []
        self.asked: list[str] = []

    def greet(self, pc: OtherPc, is_over: Callable[[], bool]) -> Introduced:
        self.asked.append(pc.name)
        if self.refusal is not None:
            return Introduced(pc, None, LineTrouble(problem=self.refusal, pc=pc.name))
        greeting = Greeting(protocol="", version="", system=PcSystem.LINUX, engine=self.readiness)
        return Introduced(pc, greeting)

    def engine(self, _pc: OtherPc, environment: EngineEnvironment) -> ScriptedEngine:
        return self.engines(environment)

    def sensors(self, _pc: OtherPc) -> SteadySensors:
        self.sources.append(SteadySensors(self.inventory))
        return self.sources[-1]


def line_lost() -> RequestFailed:
    """Return how an engine ends whose line was cut."""
    return RequestFailed(failure=LineTrouble(problem=LineProblem.LOST, pc="attic").failure)
