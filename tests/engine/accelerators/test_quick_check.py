"""The check and the pitfalls on AMD's and Intel's cards, as far as Python can stand in for them."""

from __future__ import annotations

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
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, PitfallFinished, RunPitfall
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.engine.pitfalls.registry import PITFALLS
from tests.engine.accelerators.test_second_accelerator import pytestmark as needs_backends
from tests.engine.answers import only
from tests.patience import PATIENCE_S

pytestmark = needs_backends
NAMES = [one.description.name for one in PITFALLS]
# What a maker's cards cannot show, by a word of the reason.
CANNOT = {("intel", "visible_devices_too_late"): "ZE_AFFINITY_MASK"}
UNTESTED = "not tested on this kind of card yet"


@pytest.mark.parametrize("maker", ["amd", "intel"])
def test_every_stage_and_pitfall_runs_on_the_cards_of(maker):
    """One process answers it all: PyTorch takes a device of Python once, and seconds to load.

    `torch.cuda` raises there if this program asks it on an Intel card.
    """
    device = f"{maker}:0"
    requests = [
        RunCheck(check_id="check", device=device, budget_s=0.5),
        *(RunPitfall(name=name, device=device) for name in NAMES),
    ]
    lines = [encode(one).decode() for one in requests]
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.accelerators.quick_stand_in", maker, *lines],
        capture_output=True, timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr.decode()
    events = [decode_event(line) for line in done.stdout.splitlines()]
    _every_stage_finds_the_card_good(maker, events)
    for name in NAMES:
        _shows_or_says_why_not(maker, events, name)
    _each_shows_what_it_is_about(events)


def _every_stage_finds_the_card_good(maker, events):
    (started,) = only(CheckStarted, events)
    assert UNTESTED in started.device.untested
    assert only(CheckRoundFinished, events)
    findings = [one.finding for one in only(CheckFindingMade, events)]
    finished = {one.stage: one for one in only(CheckStageFinished, events)}
    assert tuple(finished) == STAGE_NAMES
    for stage in finished.values():
        assert (stage.errors, bool(stage.tested)) == (0, True), (stage, findings)
    # The CPU's generator stands in for the card's: another algorithm, and no error of the card.
    doubts = [one for one in findings if one.severity == "doubt"]
    assert doubts
    assert {one.kind for one in doubts} == {"not_repeatable"}, doubts
    assert all("from a seed (Philox" in one.sentence for one in doubts), doubts
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


def _each_shows_what_it_is_about(events):
    shown = {one.name: one.broken for one in only(PitfallFinished, events)}
    assert "two devices" in shown["mixed_devices"].error
    assert "out of memory" in shown["out_of_memory"].error
    assert "IndexError" in shown["sticky_error"].error
    assert shown["exception_keeps_tensors"].figures[0].value > 0
    assert "not built for" not in shown["float16_on_old_card"].sentence
