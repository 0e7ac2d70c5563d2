"""The pitfalls lab on the CPU: what is real here is real, and what stands in says so."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

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
    no_synchronize,
    out_of_memory,
    tiny_model,
)
from gpu_studio.engine.pitfalls.lab import PITFALLS, find_pitfall
from gpu_studio.engine.pitfalls.pitfall import Bench, ScriptEnd, error_of
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


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


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


def test_a_sample_in_a_batch_costs_its_share_of_the_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "median_s", lambda *_, **__: 0.0512)
    broken, fixed, _ = both("tiny_model")
    alone, together = (part.figures[0].value for part in (broken, fixed))
    assert (alone, together) == (0.0512, 0.0512 / tiny_model._ROWS)
    assert plain(fixed.sentence) == "A sample in a batch of 256 takes 200 µs on the CPU."


@pytest.mark.parametrize(
    ("card_s", "words"),
    [
        (4e-5, "on cuda:0 and 10.0 µs on the CPU: the card is 4.0 × slower."),
        (5e-6, "on cuda:0 and 10.0 µs on the CPU: the card is 2.0 × faster."),
    ],
)
def test_which_of_both_is_slower_is_said_by_what_was_measured(
    card_s: float, words: str, monkeypatch: pytest.MonkeyPatch
):
    times = {"cpu": 1e-5, "cuda": card_s}
    monkeypatch.setattr(tiny_model, "_sample_s", lambda device, *_: times[device.type])
    told = tiny_model.TinyModel().run("broken", Bench(torch.device("cuda:0"), threading.Event()))
    assert plain(told.sentence).endswith(words)


def test_without_the_wait_the_watch_stops_before_the_work_is_done(monkeypatch: pytest.MonkeyPatch):
    """The work cannot end before it is asked to: it waits until the first watch has stopped."""
    stopped = threading.Event()
    watch = no_synchronize.time.perf_counter

    class Watch:
        readings: ClassVar[list[float]] = []

        @classmethod
        def perf_counter(cls) -> float:
            cls.readings.append(watch())
            if len(cls.readings) == 2:
                stopped.set()
            return cls.readings[-1]

    def multiply(a: torch.Tensor, b: torch.Tensor) -> None:
        if Watch.readings:  # not the first call, which is not timed
            assert stopped.wait(60)

    monkeypatch.setattr(no_synchronize, "time", Watch)
    monkeypatch.setattr(torch, "matmul", multiply)
    handed_s, done_s = no_synchronize._on_thread()
    assert handed_s == Watch.readings[1] - Watch.readings[0]
    assert done_s == Watch.readings[2] - Watch.readings[0] >= handed_s


@pytest.mark.parametrize(
    ("done_s", "words"),
    [
        (2.0, "It is a lie: the work took 100 ms a call, 10.0 × as long."),
        (0.201, "that is about what the work took: the queue was full"),
    ],
)
def test_what_the_clock_without_a_wait_is_worth(
    done_s: float, words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(no_synchronize, "_on_thread", lambda: (0.2, done_s))
    broken, fixed, figures = both("no_synchronize")
    assert plain(broken.sentence).startswith("The clock says 10.0 ms a call")
    assert words in plain(broken.sentence)
    assert "without it the same clock had said 10.0 ms" in plain(fixed.sentence)
    assert figures == {"printed_s": 0.2 / 20, "call_s": done_s / 20}


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
    told = plain(fixed.sentence)
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


def test_a_starved_device_waits_for_every_picture():
    finished = finish("starved_gpu")
    for part in (finished.broken, finished.fixed):
        figures = {one.name: one.value for one in part.figures}
        assert figures["busy"] == pytest.approx(figures["work_s"] / figures["whole_s"])
        assert figures["whole_s"] == pytest.approx(figures["work_s"] + figures["wait_s"])
    # Without workers nothing is loaded while the device computes: 7 batches of 16 pictures are
    # timed, and each waits two milliseconds for its disk.
    waited = next(one.value for one in finished.broken.figures if one.name == "wait_s")
    assert waited >= 7 * 16 * 0.002


@pytest.mark.parametrize(
    ("fixed_s", "start", "end"),
    [
        ((0.1, 0.05), "With the fix: waiting for data 50.0 ms instead of 300 ms; ", "400 ms."),
        ((0.5, 0.1), "The fix helped only in part here: waiting for data 100 ms", "do not pay."),
        ((0.1, 0.6), "The fix did not pay here: waiting for data 600 ms", "they do not pay."),
        ((0.1, 0.3), "The fix did not pay here: waiting for data 300 ms", "they do not pay."),
    ],
)
def test_what_workers_did_is_said_whichever_way_it_went(
    fixed_s: tuple[float, float], start: str, end: str, monkeypatch: pytest.MonkeyPatch
):
    def run_script(_: Bench, script: str) -> ScriptEnd:
        work_s, wait_s = (0.1, 0.3) if "num_workers=0" in script else fixed_s
        return ScriptEnd(f"{work_s:.6f} s at work, {wait_s:.6f} s waiting", "")

    monkeypatch.setattr(Bench, "run_script", run_script)
    finished = finish("starved_gpu")
    assert plain(finished.broken.sentence).startswith("cpu was at work for 25 % of 400 ms;")
    assert plain(finished.comparison).startswith(start)
    assert plain(finished.comparison).endswith(end)


def test_a_script_of_the_loader_that_breaks_off_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "run_script", lambda *_: ScriptEnd("", "OSError: no room"))
    failed = ask(RunPitfall(name="starved_gpu", device="cpu"))[-1]
    assert isinstance(failed, PitfallFailed)
    assert "OSError: no room" in failed.failure.message


def test_two_times_of_the_same_device_are_not_compared():
    """Without a card broken and fixed train on the CPU: that their times differ means nothing."""
    finished = finish("model_on_cpu")
    assert finished.fixed.sentence.endswith("by chance, and they say nothing of a card.")
    assert "by chance" not in finished.broken.sentence
    assert not finished.comparison


def test_a_part_alone_has_no_comparison():
    assert not ask(RunPitfall(name="tiny_model", device="cpu", part="fixed"))[-1].comparison


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
