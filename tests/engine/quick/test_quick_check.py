"""The check of an adapter: sound, and with each fault made on purpose."""

import threading

import pytest

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_words import record_parts
from gpu_studio.core.check.stages import stages_of
from gpu_studio.core.messages.check_messages import (
    CheckFindingMade,
    CheckRoundFinished,
    CheckStageFinished,
    RunCheck,
)
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.engine.check import stage_run
from gpu_studio.engine.quick import check, shaders
from tests.patience import PATIENCE_S

STAGES = ("compute", "memory")


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr(check, "_LARGEST_RAM_PART", 64 << 10)
    monkeypatch.setattr(check, "_MOST_RAM", 256 << 10)
    # On a busy PC, one of each result takes longer than a stage has.
    monkeypatch.setattr(stage_run, "OVERTIME_S", PATIENCE_S)


@pytest.fixture
def checked(dispatcher):
    """Return what makes a round; it returns its events."""

    def checked(device="vulkan:0", stages=STAGES, **other):
        request = RunCheck(device=device, stages=stages, **{"round_s": 1.0, **other})
        return list(dispatcher.run(request, threading.Event()))

    return checked


def of(kind, events):
    return [one for one in events if isinstance(one, kind)]


@pytest.mark.parametrize("device", ["vulkan:0", "opengl:0"])
def test_a_sound_adapter_passes(checked, device):
    events = checked(device)
    assert isinstance(events[-1], CheckRoundFinished)
    assert [one.verdict for one in of(CheckStageFinished, events)] == ["passed", "passed"]
    assert of(CheckFindingMade, events) == []
    memory = of(CheckStageFinished, events)[1]
    assert memory.coverage.tested_bytes >= 64 << 10
    assert "6 of 6 patterns" in memory.tested


@pytest.mark.parametrize("plant", ["bit", "drop"])
def test_each_fault_made_on_purpose_is_found_by_both_stages(checked, plant):
    stages = of(CheckStageFinished, checked(plant=plant))
    assert [one.verdict for one in stages] == ["failed", "failed"]


def test_wrong_words_that_only_the_adapter_reads_are_found(checked, monkeypatch):
    fault = ("words[i] != pattern(i)", "(words[i] ^ u32(i == 77u)) != pattern(i)")
    monkeypatch.setattr(shaders, "PATTERN_READ", shaders.PATTERN_READ.replace(*fault))
    events = checked(stages=("memory",))
    sentences = {one.finding.sentence for one in of(CheckFindingMade, events)}
    assert any("right when they were copied" in one for one in sentences)


def test_an_adapter_that_sees_no_wrong_word_is_not_believed(checked, monkeypatch):
    fault = ("words[i] != pattern(i)", "words[i] != pattern(i) && what[1] == 0xffffffffu")
    blind = shaders.PATTERN_READ.replace(*fault)
    monkeypatch.setattr(shaders, "PATTERN_READ", blind)
    events = checked(stages=("memory",), plant="bit")
    kinds = {one.finding.kind for one in of(CheckFindingMade, events)}
    assert kinds >= {"blind", "wrong_bits"}  # NumPy compares


def test_a_lost_adapter_is_the_stages_failure_and_ends_the_process(checked, monkeypatch):
    def lost(self, *_, **__):
        raise self._wgpu.GPUError("Parent device is lost")

    monkeypatch.setattr("gpu_studio.engine.quick.compute.Compute.batch", lost)
    last = checked()[-1]
    assert isinstance(last, RequestFailed)
    assert last.failure.fatal


def test_the_record_of_a_software_adapter_speaks_of_no_card(checked):
    run = CheckRun(
        CheckPlan(device="vulkan:0", minutes=1, stages=stages_of("vulkan:0")), "2026-11-29T10:00:00"
    )
    run.next_request()
    for event in checked():
        run.apply(event)
    record = run.record()
    words = [record.sentence, record.next_action]
    for part in record_parts(record):
        words += [f"{row.title} {row.words}" for row in part.rows]
    assert record.verdict == "passed"
    words = [one.replace("GPU Studio", "") for one in words]
    cards = [one for one in words if "card" in one or "GPU" in one]
    assert not [one for one in cards if "graphics cards: this was a check of its CPU" not in one]
