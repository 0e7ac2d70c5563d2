"""Another PC that a test scripts: what it answers first, its engines and its sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from tests.fakes.descriptions import described_for
from tests.fakes.pc import SteadySensors, gt_1030
from tests.fakes.scripted_engine import Engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.other_pc import OtherPc
    from tests.fakes.scripted_engine import ScriptedEngine


class Greeted(msgspec.Struct, frozen=True):
    system: str = "Linux"
    engine_trouble: str = ""


class OtherPcs:
    """Satisfies `model.pc_line.PcPort`: every PC has the same devices and scripts.

    Attributes:
        engines: makes their engines.
        refusal: why a PC cannot be reached; empty if it can.
        greeting: what it answers.
        sources: the streams of sensors so far.
        asked: the PCs that were greeted.
    """

    def __init__(self, inventory: Inventory | None = None) -> None:
        self.inventory = inventory or gt_1030()
        self.engines = Engines({DescribeEngine: [described_for(self.inventory)]})
        self.refusal = ""
        self.greeting = Greeted()
        self.sources: list[SteadySensors] = []
        self.asked: list[str] = []

    def greetings(self, pc: OtherPc, is_over: Callable[[], bool]) -> Iterator[Greeted]:
        self.asked.append(pc.name)
        if self.refusal:
            raise StudioError(FailureKind.BAD_REQUEST, self.refusal)
        if not is_over():
            yield self.greeting

    def engine(self, _pc: OtherPc, environment: EngineEnvironment) -> ScriptedEngine:
        return self.engines(environment)

    def sensors(self, _pc: OtherPc) -> SteadySensors:
        self.sources.append(SteadySensors(self.inventory))
        return self.sources[-1]


def line_lost(name: str = "attic") -> RequestFailed:
    """Return how an engine ends whose line was cut."""
    message = f"The connection to {name} was lost."
    return RequestFailed(failure=Failure(FailureKind.LINE_LOST, message, fatal=True))
