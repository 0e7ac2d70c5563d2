"""AMD's and Intel's cards, as far as Python can stand in for them: each request is answered."""

import importlib.util
import subprocess
import sys

import pytest

from gpu_studio.core.check.stages import STAGE_NAMES
from gpu_studio.core.messages.check_messages import (
    CheckFindingMade,
    CheckRoundFinished,
    CheckStageFinished,
    CheckStarted,
    RunCheck,
)
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    CacheEmptied,
    EmptyCache,
    OomFinished,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, PitfallFinished, RunPitfall
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    PlaceFinished,
    PlaceModel,
    UseDevice,
)
from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunStarted
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.workloads.registry import PICTURES, WORKLOADS
from tests.engine.accelerators import quick_stand_in
from tests.engine.answers import only, run_request
from tests.patience import PATIENCE_S

BACKENDS = importlib.util.find_spec("torch.utils.backend_registration")
pytestmark = pytest.mark.skipif(
    BACKENDS is None
    or b"privateuseone_for_python" not in BACKENDS.loader.get_data(BACKENDS.origin),
    reason="this PyTorch lets no Python stand in for a device",
)
MIB = 1 << 20
# It takes seconds and needs nothing of a card that train_step does not.
SLOW = "dataloader"
NAMES = [one.description.name for one in (*WORKLOADS, *PICTURES) if one.description.name != SLOW]
# What a maker's cards cannot run, by a word of the reason.
CANNOT = {
    ("amd", "custom_kernel"): "NVRTC",
    ("intel", "custom_kernel"): "NVRTC",
    ("intel", "data_parallel"): "DistributedDataParallel",
    ("intel", "visible_devices_too_late"): "ZE_AFFINITY_MASK",
}
PITFALL_NAMES = [one.description.name for one in PITFALLS]
UNTESTED = "not tested on this kind of card yet"


def requests_to(device: str) -> list[Request]:
    runs = [
        run_request(device=device, workload=one.name, run_id=one.name, size=min(one.sizes),
                    budget_s=0.01)
        for one in (workload.description for workload in WORKLOADS)
        if one.name in NAMES
    ]  # fmt: skip
    races = [
        run_request(device=device, workload=one.name, run_id=one.name, size=min(one.sizes),
                    budget_s=0.01, race=RaceParameters())
        for one in (picture.description for picture in PICTURES)
    ]  # fmt: skip
    return [
        DescribeEngine(),
        UseDevice(device=device),
        run_request(device="cuda:0"),
        PlaceModel(model="linear_10", device=device),
        RunMemoryExperiment(
            preset="custom", device=device, plan=AllocationPlan(size=2048), budget_bytes=128 * MIB,
        ),
        EmptyCache(device=device),
        run_request(device=device, workload="matmul", run_id="float64", dtype="float64"),
        *runs, *races,
    ]  # fmt: skip


def answers(maker: str) -> list[Event]:
    device = f"{maker}:0"
    small = [
        RunCheck(device=device, round_s=0.5),
        *(RunPitfall(name=name, device=device) for name in PITFALL_NAMES),
    ]
    lines = [encode(one).decode() for one in requests_to(device)]
    smaller = [encode(one).decode() for one in small]
    done = subprocess.run(
        [sys.executable, "-m", quick_stand_in.__name__, maker, *lines, quick_stand_in.SMALL,
         *smaller],
        capture_output=True, timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr.decode()
    return [decode_event(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module", params=["amd", "intel"])
def maker(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def events(maker) -> list[Event]:
    """One process answers it all: PyTorch takes a device of Python once, and seconds to load."""
    return answers(maker)


def test_everything_is_answered_on_the_cards_of(maker, events):
    for name in NAMES:
        _runs_or_says_why_not(maker, events, name)
    _says_what_it_is_built_for(maker, events)
    _is_the_current_card_and_no_other_is_there(maker, events)
    _moves_a_model_and_counts_its_memory(events)
    _ends_a_full_budget_in_an_error_that_is_read(events)
    _refuses_float64_without_its_arithmetic(maker, events)
    _names_the_switches_of_convolutions_or_lacks_them(maker, events)


def test_every_stage_and_pitfall_runs_on_the_cards_of(maker, events):
    """`torch.cuda` raises there if this program asks it on an Intel card."""
    _every_stage_finds_the_card_good(maker, events)
    for name in PITFALL_NAMES:
        _shows_or_says_why_not(maker, events, name)


def _runs_or_says_why_not(maker, events, name):
    finished = [one for one in only(RunFinished, events) if one.run_id == name]
    failed = [one for one in only(RunFailed, events) if one.run_id == name]
    reason = CANNOT.get((maker, name))
    if reason is None:
        assert [one.verified for one in finished] == [True], (name, failed)
        assert "not tested" in finished[0].doubts
    else:
        assert reason in failed[0].failure.message
        assert not finished


def _says_what_it_is_built_for(maker, events):
    (described,) = only(EngineDescribed, events)
    assert described.build_kind == {"amd": "rocm", "intel": "xpu"}[maker]
    cards = [(card.maker, card.name, card.is_integrated) for card in described.cards]
    assert (
        cards
        == {
            "amd": [("AMD", "AMD Radeon Graphics", True), ("AMD", "AMD Radeon RX 6600", False)],
            "intel": [("Intel", "Intel(R) Arc(TM) A380 Graphics", False)],
        }[maker]
    )
    # PyTorch fills in numbers of NVIDIA's for a Radeon as well.
    assert {(card.uuid, card.compute_capability) for card in described.cards} == {(None, None)}
    # The Ryzen's own graphics are PyTorch's first card, and not the one to begin with.
    assert described.first_card == len(cards) - 1
    assert described.cards[-1].pci_bus_id == "00000000:03:00.0"
    assert [card.architecture for card in described.cards] == {
        "amd": ["gfx1036", "gfx1032"], "intel": [None],
    }[maker]  # fmt: skip


def _is_the_current_card_and_no_other_is_there(maker, events):
    (used,) = only(DeviceUsed, events)
    assert used.device == f"{maker}:0"
    assert f"torch.{maker}.set_device(0)" in used.snippet
    snippets = {one.run_id: one.snippet for one in only(RunStarted, events)}
    assert f'torch.{maker}.synchronize("{maker}:0")' in snippets["launch"]
    refused = only(RunFailed, events)[0].failure.message
    assert refused.startswith(f"There is no cuda:0 here; there are cpu, {maker}:0")


def _moves_a_model_and_counts_its_memory(events):
    (placed,) = only(PlaceFinished, events)
    assert (placed.same_output, placed.allocated_delta_bytes) == (True, 440)


def _ends_a_full_budget_in_an_error_that_is_read(events):
    (finished,) = only(OomFinished, events)
    assert (finished.outcome, finished.tensors) == ("over_budget", 8)
    assert finished.tried_bytes == 16 * MIB
    assert "not tested on this kind of card yet" in finished.explanation
    (emptied,) = only(CacheEmptied, events)
    assert emptied.before.releasable_bytes == emptied.freed_bytes == 128 * MIB


def _refuses_float64_without_its_arithmetic(maker, events):
    refused = [one.failure.message for one in events if isinstance(one, (RunFailed, RequestFailed))]
    has_refused = any("has no arithmetic for float64" in one for one in refused)
    assert has_refused is (maker == "intel")


def _names_the_switches_of_convolutions_or_lacks_them(maker, events):
    (run,) = [one for one in only(RunFinished, events) if one.run_id == "conv2d"]
    word = {"amd": "MIOpen", "intel": "oneDNN"}[maker]
    assert word in " ".join(run.details.findings)
    # Without a way to let the card wait, launching and computing cannot be told apart.
    (launched,) = [one for one in only(RunFinished, events) if one.run_id == "launch"]
    assert bool(launched.details.parts_s) is (maker == "amd")


def _every_stage_finds_the_card_good(maker, events):
    (started,) = only(CheckStarted, events)
    assert UNTESTED in started.device.untested
    assert only(CheckRoundFinished, events)
    findings = [one.finding for one in only(CheckFindingMade, events)]
    finished = {one.stage: one for one in only(CheckStageFinished, events)}
    assert tuple(finished) == STAGE_NAMES
    for stage in finished.values():
        assert (stage.errors, bool(stage.tested)) == (0, True), (stage, findings)
    assert not [one for one in findings if one.severity == "doubt"], findings
    notes = " ".join(one.sentence for one in findings if one.severity == "note")
    assert ("has no arithmetic for float64" in notes) is (maker == "intel")


def _shows_or_says_why_not(maker, events, name):
    finished = [one for one in only(PitfallFinished, events) if one.name == name]
    failed = [one for one in only(PitfallFailed, events) if one.name == name]
    reason = CANNOT.get((maker, name))
    if reason is not None:
        assert reason in failed[0].failure.message
        assert not finished
        return
    assert finished, (name, failed)
    assert UNTESTED in finished[0].untested
    for outcome in (finished[0].broken, finished[0].fixed):
        assert outcome.sentence
        assert not outcome.stand_in
    assert not finished[0].fixed.error
