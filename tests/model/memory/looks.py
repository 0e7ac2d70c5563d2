"""What the tests of the memory model look at, and the experiments they run."""

from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.model.memory.now_model import NowModel
from tests.fakes.memory_answers import memory_read

MIB = 1 << 20
EXPERIMENT = RunMemoryExperiment(preset="gt1030", device="cuda:0", budget_bytes=1200 * MIB)


def parts(model):
    """The tank in MiB; empty before the first reading."""
    shown = model.tank.parts if model.tank is not None else ()
    return {part.key: part.size_bytes // MIB for part in shown}


def now(model):
    """What the page Now shows of it."""
    return NowModel(model, model)


def idle(qtbot, studio):
    qtbot.waitUntil(lambda: studio.session.is_free)


def breaking(*ending):
    """The answers of an experiment that breaks, then these."""
    yield memory_read(mark="start")
    yield memory_read(allocated=1024, reserved=1024, mark="oom", taken_at_s=10.5)
    yield from ending


def at_the_pause(qtbot, engines):
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())
