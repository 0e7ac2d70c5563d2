"""The pitfalls lab on the CPU: what is real here is real, and what stands in says so."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import (
    DescribeEngine,
    Event,
    PitfallFailed,
    PitfallFinished,
    PitfallStarted,
    RunPitfall,
)
from gpu_studio.engine.dispatch import Dispatcher
from gpu_studio.engine.pitfalls import (
    exception_keeps_tensors,
    float16_on_old_card,
    out_of_memory,
)
from gpu_studio.engine.pitfalls.lab import PITFALLS, find_pitfall
from gpu_studio.engine.pitfalls.pitfall import Bench, error_of
from tests.engine.answers import ask

if TYPE_CHECKING:
    from gpu_studio.core.messages.pitfall_messages import PitfallOutcome

NAMES = [pitfall.description.name for pitfall in PITFALLS]
# Their parts are fresh processes, a second or two each.
IN_FRESH_PROCESSES = {"starved_gpu", "visible_devices_too_late", "sticky_error"}
REAL_ON_ANY_PC = {"old_amp_import"}


def finish(name: str, part: str = "both") -> PitfallFinished:
    events = ask(RunPitfall(name=name, device="cpu", part=part))
    assert isinstance(events[-1], PitfallFinished), events[-1]
    return events[-1]


def both(name: str) -> tuple[PitfallOutcome, PitfallOutcome, dict[str, float]]:
    finished = finish(name)
    assert finished.broken is not None
    assert finished.fixed is not None
    figures = {one.name: one.value for one in (*finished.broken.figures, *finished.fixed.figures)}
    return finished.broken, finished.fixed, figures


def bench() -> Bench:
    return Bench(torch.device("cpu"), threading.Event())


def test_the_engine_tells_which_there_are():
    (described,) = ask(DescribeEngine())
    assert [pitfall.name for pitfall in described.pitfalls] == NAMES
    assert NAMES[:6] == [
        "mixed_devices", "model_on_cpu", "out_of_memory", "tiny_model", "starved_gpu",
        "no_synchronize",
    ]  # fmt: skip
    for pitfall in described.pitfalls:
        assert pitfall.title
        assert pitfall.sentence.endswith(".")
        assert len(pitfall.why) > 100, pitfall.name  # a paragraph
        assert pitfall.remedy
        assert pitfall.source


@pytest.mark.parametrize("name", [name for name in NAMES if name not in IN_FRESH_PROCESSES])
def test_a_part_alone_and_both_parts(name: str):
    events = ask(RunPitfall(name=name, device="cpu", part="fixed"))
    started, finished = events
    assert isinstance(started, PitfallStarted)
    assert (started.name, started.part) == (name, "fixed")
    assert finished.broken is None
    assert finished.fixed.part == "fixed"
    assert finished.fixed.sentence
    assert finished.snippet == finished.fixed_snippet == started.snippet
    assert finished.broken_snippet != finished.fixed_snippet
    assert finished.elapsed_s > 0


@pytest.mark.parametrize("name", sorted(set(NAMES) - REAL_ON_ANY_PC - IN_FRESH_PROCESSES))
def test_what_stands_in_for_a_card_is_labelled(name: str):
    finished = finish(name)
    stand_ins = [outcome.stand_in for outcome in (finished.broken, finished.fixed) if outcome]
    assert any("This PC has no card" in stand_in for stand_in in stand_ins)
    assert "stands in" in finished.fixed.stand_in


def test_mixed_devices_is_a_real_error_that_names_both():
    broken, fixed, _ = both("mixed_devices")
    assert broken.error.startswith("RuntimeError")
    assert "meta" in broken.error
    assert "cpu" in broken.error
    assert not fixed.error
    assert "(32, 500)" in fixed.sentence


def test_a_model_on_the_cpu_does_learn():
    """The chapter says that its loss never goes down."""
    broken, _, figures = both("model_on_cpu")
    losses = broken.curves["loss"]
    assert losses[0] == figures["loss_first"]
    assert losses[-1] == figures["loss_last"] < losses[0] / 4
    assert max(losses) < 2 * losses[0]  # it does not blow up on its way
    assert figures["step_s"] > 0
    assert "It does" in find_pitfall("model_on_cpu").description.remark


def test_out_of_memory_in_the_allocators_words_and_what_fits():
    broken, _, figures = both("out_of_memory")
    assert broken.error.startswith("OutOfMemoryError: CUDA out of memory. Tried to allocate")
    assert figures["batch"] == figures["batch_broke"] / 2 == figures["batch_no_grad"] / 2
    assert figures["peak_bytes"] < figures["budget_bytes"]
    assert figures["peak_no_grad_bytes"] < figures["peak_bytes"]


def test_the_modelled_batch_is_counted_as_pytorch_keeps_it():
    """Training keeps the input and each ReLU's result, and has one more for a moment."""
    peak, error = out_of_memory._fill(1024, trains=True)
    each = 1024 * 1024 * 4
    assert not error
    assert peak == (1 + out_of_memory._LAYERS + 1) * each
    without, _ = out_of_memory._fill(1024, trains=False)
    assert without == 2 * each


def test_a_sample_alone_costs_many_times_one_in_a_batch():
    finished = finish("tiny_model")
    alone, together = (part.figures[0].value for part in (finished.broken, finished.fixed))
    assert together < alone


def test_without_the_wait_the_clock_says_too_little():
    _, _, figures = both("no_synchronize")
    assert figures["printed_s"] < figures["call_s"] / 2


def test_both_dtypes_are_timed_where_they_are_used():
    broken, fixed, figures = both("float16_on_old_card")
    assert figures["slower"] == pytest.approx(figures["float16_s"] / figures["float32_s"])
    assert "on this CPU" in broken.sentence
    assert "float16 is " in fixed.sentence
    assert "So " in fixed.sentence


@pytest.mark.parametrize(
    ("half_s", "words", "advice"),
    [
        (2.0, "float16 is 2.0 × slower", "So take float32 here: 1.00 s."),
        (0.5, "float16 is 2.0 × faster", "So take float16 here: 500 ms."),
        (1.03, "float16 is about as fast", "So float16 gains no time here, only memory."),
    ],
)
def test_what_two_times_say_of_float16(
    half_s: float, words: str, advice: str, monkeypatch: pytest.MonkeyPatch
):
    times = {torch.float16: half_s, torch.float32: 1.0}
    monkeypatch.setattr(float16_on_old_card, "_product_s", lambda dtype, _bench: times[dtype])
    _, fixed, _ = both("float16_on_old_card")
    told = fixed.sentence.replace("\u202f", " ")
    assert words in told
    assert told.endswith(advice)


def test_a_kept_exception_keeps_its_tensors():
    broken, fixed, _ = both("exception_keeps_tensors")
    assert broken.figures[0].value == exception_keeps_tensors._COUNT * 4
    assert fixed.figures[0].value == 0


def test_the_old_names_of_amp_warn():
    broken, fixed, _ = both("old_amp_import")
    assert "torch.amp" in broken.error
    assert broken.error.count("FutureWarning") == broken.figures[0].value == 2
    assert not fixed.error
    assert not broken.stand_in


def test_a_starved_device_waits_less_with_workers():
    finished = finish("starved_gpu")
    broken, fixed = (
        {one.name: one.value for one in part.figures} for part in (finished.broken, finished.fixed)
    )
    assert broken["wait_s"] > fixed["wait_s"]
    assert broken["busy"] < fixed["busy"] <= 1
    # 7 batches of 16 pictures are timed, and each waits two milliseconds for its disk.
    assert broken["wait_s"] >= 7 * 16 * 0.002


def test_a_variable_that_is_set_too_late_changes_nothing():
    broken, fixed, _ = both("visible_devices_too_late")
    wanted = 2 if torch.get_num_threads() == 1 else 1
    assert broken.figures[0].value == torch.get_num_threads()
    assert fixed.figures[0].value == wanted
    assert "OMP_NUM_THREADS" in broken.stand_in


def test_an_error_of_the_cpu_does_not_stay():
    broken, fixed, figures = both("sticky_error")
    assert broken.error == "look_up IndexError index out of range in self"
    assert broken.figures[0].value == 1
    assert not fixed.error
    assert figures["errors"] == 0


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (RunPitfall(name="banana", device="cpu"), "there are mixed_devices"),
        (RunPitfall(name="tiny_model", device="cpu", part="half"), "“broken”, “fixed” or “both”"),
        (RunPitfall(name="tiny_model", device="cuda:7"), "There is no cuda:7 here"),
    ],
)
def test_what_cannot_be_run_is_said(request_: RunPitfall, words: str):
    (failed,) = ask(request_)
    assert isinstance(failed, PitfallFailed)
    assert words in failed.failure.message


def test_a_stop_ends_it(monkeypatch: pytest.MonkeyPatch):
    stop = threading.Event()
    events: list[Event] = []
    for event in Dispatcher().run(RunPitfall(name="tiny_model", device="cpu"), stop):
        events.append(event)
        stop.set()
    assert [type(event) for event in events] == [PitfallStarted, PitfallFailed]
    assert events[-1].failure.message == "It was stopped."


def test_a_stop_ends_a_fresh_process():
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with pytest.raises(StudioError, match="stopped"):
        Bench(torch.device("cpu"), stop).run_script("import time; time.sleep(60)")
    timer.join()


def test_a_fresh_process_tells_its_output_and_its_error():
    end = bench().run_script("print('é'); raise ValueError('no')")
    assert (end.output, end.error) == ("é", "ValueError: no")
    end = bench().run_script("import os; os._exit(3)")
    assert (end.output, end.error) == ("", "The process ended with 3.")


def test_an_error_is_told_without_its_frames():
    kept = []

    def fail() -> None:
        x = torch.ones(3)
        kept.append(x)
        raise KeyError("x")

    assert error_of(fail) == "KeyError: 'x'"
    assert error_of(lambda: None) == ""


def test_a_failure_that_is_not_the_point_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(out_of_memory, "_fill", fail)
    (_, failed) = ask(RunPitfall(name="out_of_memory", device="cpu"))
    assert isinstance(failed, PitfallFailed)
    assert failed.failure.kind is FailureKind.INTERNAL
