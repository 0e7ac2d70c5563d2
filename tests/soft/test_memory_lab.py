import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.memory.presets import PRESETS, Preset
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    MemoryRead,
    OomFinished,
    ReadSegments,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.messages.message import Event
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from tests.engine.answers import only
from tests.engine.engine_child import EngineChild
from tests.soft.conftest import MakePc
from tests.softcards.cards import MIB, Card

# The size of a GT 1030 with code in every build; its context takes what the simulated one's does.
SMALL = Card("NVIDIA GeForce GTX 1650", "7.5", mib=1996, sms=3)
MODELLED = "model:1996"
PLAN = AllocationPlan(size=700)
EXPANDABLE = "expandable_segments:True"
# Read at every step, as many tensors as these make would take too long.
MANY = ("many_small",)


@pytest.fixture
def pc(soft_pc: MakePc) -> Any:
    return soft_pc(SMALL)


@pytest.fixture
def engine(pc: Any, tmp_path: Path) -> Iterator[Any]:
    started: list[EngineChild] = []

    def start(conf: str = "", prelude: str = "") -> EngineChild:
        variables = EngineEnvironment(allocator_configuration=conf or None).variables()
        log = tmp_path / f"log{len(started)}"
        started.append(EngineChild(log, prelude, env={**pc.env, **variables}))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def experiment(preset: str, device: str, **changes: Any) -> RunMemoryExperiment:
    plan = PLAN if preset == "custom" else None
    parameters = {"plan": plan, "reads_every_step": preset not in MANY, **changes}
    return RunMemoryExperiment(preset=preset, device=device, **parameters)


def told(events: list[Event], preset: str) -> list[Any]:
    """Return the part that must be equal in both: no times, addresses or timed readings."""
    first = next(read.taken_at_s for read in only(MemoryRead, events))
    assert all(read.taken_at_s >= first for read in only(MemoryRead, events))
    collected = []
    for event in events:
        match event:
            case MemoryRead():
                if preset not in MANY or event.mark not in ("allocated", "freed"):
                    collected.append(plain(event))
            case SegmentsRead():
                if event.read.mark not in ("allocated", "freed"):
                    collected.append(plain(event))
            case OomFinished():
                collected.append(plain(event))
            case StageBegan():
                collected.append((event.stage, event.sentence))
    return collected


def plain(event: Any) -> dict[str, Any]:
    fields = msgspec.structs.asdict(event)
    # What the driver counts for a process is NVML's: a model has no process.
    for name in ("taken_at_s", "device", "modelled", "snippet", "engine_bytes"):
        fields.pop(name, None)
    if isinstance(event, SegmentsRead):
        fields["read"] = plain(event.read)
        first = event.addresses[0] if event.addresses else 0
        fields["addresses"] = [address - first for address in event.addresses]
    if isinstance(event, OomFinished):
        # The sentences about processes are NVML's: a model has none.
        text = event.error_text
        for begin, end in (("Including non-PyTorch", "in use. "), ("Process ", "in use. ")):
            while begin in text:
                i = text.index(begin)
                text = text[:i] + text[text.index(end, i) + len(end) :]
        fields["error_text"] = text.split(" If reserved but")[0]
    return fields


def compare(one: EngineChild, model: ModelledEngine, preset: Preset, whole_card: bool) -> None:
    real_events = one.ask(experiment(preset.name, "cuda:0", whole_card=whole_card))
    model_events = list(model.run(experiment(preset.name, MODELLED, whole_card=whole_card)))
    finished = real_events[-1]
    assert isinstance(finished, OomFinished), finished
    real, modelled = told(real_events, preset.name), told(model_events, preset.name)
    for ours, theirs in zip(modelled, real, strict=False):
        assert ours == theirs, f"{preset.name}, whole card {whole_card}: (model, PyTorch)"
    assert len(modelled) == len(real)
    if not finished.conf and preset.name != "custom":
        assert finished.outcome == model_events[-1].outcome == preset.ends_in[whole_card]
    assert all(event.modelled for event in model_events)
    assert not any(event.modelled for event in real_events)


@pytest.mark.cuda13  # the model is of the allocator in that PyTorch
@pytest.mark.parametrize("conf", ["", EXPANDABLE])
def test_a_soft_card_and_the_modelled_one_report_the_same(engine: Any, conf: str) -> None:
    """One after another in one engine: what was reserved, retried and refused before stays."""
    one = engine(conf)
    model = ModelledEngine(EngineEnvironment(allocator_configuration=conf or None))
    for preset in PRESETS:
        for whole_card in (False, True):
            compare(one, model, preset, whole_card)


WAITING = """
import os, time
from gpu_studio.engine.memory import cuda_memory

class Waiting(cuda_memory.CudaMemory):
    asked = 0

    def empty(self, size_bytes):
        self.asked += 1
        while self.asked == 3 and not os.path.exists({gate!r}):
            time.sleep(0.01)
        return super().empty(size_bytes)

cuda_memory.CudaMemory = Waiting
"""


def test_a_process_that_takes_memory_meanwhile_is_named(
    engine: Any, pc: Any, tmp_path: Path
) -> None:
    """The third tensor waits until the other process has taken what it takes."""
    gate = tmp_path / "taken"

    def take(event: Event) -> None:
        if isinstance(event, MemoryRead) and event.step == 2 and not gate.exists():
            pc.set(0, other_bytes=1000 * MIB)
            gate.touch()

    one = engine(prelude=WAITING.format(gate=str(gate)))
    finished = one.ask(experiment("gt1030", "cuda:0", whole_card=True), take)[-1]
    assert finished.outcome == "taken_by_others"
    assert finished.others_grew_bytes == 1000 * MIB
    assert "1000\u202fMiB" in finished.explanation


@pytest.mark.parametrize("count", [3, None])
def test_the_driver_is_asked_for_the_engines_own_where_an_experiment_ends(
    soft_pc: MakePc, tmp_path: Path, count: int | None
) -> None:
    """On the second card, with and without an error; two decimals of a text do not matter."""
    pc = soft_pc(SMALL, Card("NVIDIA GeForce RTX 3060", "8.6", mib=4000, sms=28))
    one = EngineChild(tmp_path / "log", env={**pc.env, **EngineEnvironment().variables()})
    used = []

    def look(event: Event) -> None:
        if isinstance(event, SegmentsRead) and event.read.mark in ("held", "oom"):
            used.append(event.read.engine_bytes)

    plan = AllocationPlan(size=5000, count=count)
    request = RunMemoryExperiment(preset="custom", device="cuda:1", plan=plan)
    events = one.ask(request, look)
    finished = events[-1]
    freed = only(MemoryRead, events)[-1]
    own_bytes = pc.use_of(one.process.pid).cards[1].size_bytes
    assert freed.reserved_bytes == finished.reserved_bytes
    assert used == [own_bytes], "nothing was given back since"
    assert own_bytes > finished.reserved_bytes
    assert freed.engine_bytes is None, "asked only where it ends"
    if count is None:
        last = only(SegmentsRead, events)[-1].read
        result = read_oom_text(finished.error_text)
        assert finished.free_bytes == last.free_bytes != result.free_bytes
        assert finished.limit_bytes == last.limit_bytes != result.limit_bytes
        assert finished.total_bytes == 4000 * MIB != result.total_bytes
    one.kill()


def test_the_cards_memory_is_free_afterwards(engine: Any, pc: Any) -> None:
    one = engine()
    for preset in ("fragmentation", "leak"):
        events = one.ask(experiment(preset, "cuda:0"))
        freed = only(MemoryRead, events)[-1]
        assert freed.mark == "freed"
        assert freed.limit_bytes is None, "the budget is gone"
        assert freed.allocated_bytes == 0


def test_segments_are_reported_of_a_card_in_use(engine: Any) -> None:
    one = engine()
    (before,) = one.ask(ReadSegments(device="cuda:0"))
    assert before.addresses == ()
    one.ask(experiment("gt1030", "cuda:0"))
    (read,) = one.ask(ReadSegments(device="cuda:0"))
    assert read.sizes == (256 * MIB,) * 5
    assert read.block_states == "2" * 5


def test_the_terminal_reports_the_same_of_both(pc: Any, tmp_path: Path) -> None:
    env = {**pc.env, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    ends = {}
    for device in ("cuda:0", MODELLED):
        command = [sys.executable, "-m", "gpu_studio", "memory"]
        oom = [*command, "oom", "--preset", "gt1030", "--device", device, "--json"]
        oom += ["--budget-mib", "1024"]  # without one, a simulated card is filled
        ran = subprocess.run(oom, env=env, capture_output=True, timeout=400)
        assert (ran.returncode, ran.stderr) == (0, b"")
        finished = json.loads(ran.stdout.splitlines()[-1])
        assert finished["type"] == "oom_finished"
        names = ("outcome", "allocated_bytes", "reserved_bytes", "free_bytes", "budget_bytes")
        fit = [*command, "fit", "--device", device, "--json"]
        ran = subprocess.run(fit, env=env, capture_output=True, timeout=400)
        value = json.loads(ran.stdout)
        fits = [value[name] for name in ("free_bytes", "training_bytes")]
        ends[device] = [*(finished[name] for name in names), *fits]
    assert ends["cuda:0"] == ends[MODELLED]
    assert ends["cuda:0"][0] == "over_budget"


def test_the_code_of_every_experiment_runs_as_it_stands(pc: Any, child: Any) -> None:
    """And ends with as many bytes as the experiment, where nothing was dropped before."""
    for preset in PRESETS:
        request = experiment(preset.name, MODELLED)
        finished = list(ModelledEngine().run(request))[-1]
        program = child(pc)
        program.run(finished.snippet)
        allocated = program.run("torch.cuda.memory_allocated(device)")
        program.kill()
        assert allocated == finished.allocated_bytes or preset.name == "leak", preset.name
