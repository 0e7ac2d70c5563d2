import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from gpu_studio.core.messages.pitfall_messages import PitfallFailed, RunPitfall
from gpu_studio.engine.pitfalls import measured, new_processes
from gpu_studio.engine.pitfalls.pitfall import Bench, ScriptEnd
from gpu_studio.engine.pitfalls.registry import find_pitfall
from tests.engine.answers import ask
from tests.engine.pitfalls.outcomes import both, finish, plain, run_here


def test_a_model_on_the_cpu_does_learn():
    """The chapter says that its loss never goes down."""
    broken, _, figures = both("model_on_cpu")
    losses = broken.curves["loss"]
    assert losses[0] == figures["loss_first"]
    assert losses[-1] == figures["loss_last"] < losses[0] / 4
    assert max(losses) < 2 * losses[0]  # it does not blow up on its way
    assert figures["step_s"] > 0
    assert "It does" in find_pitfall("model_on_cpu").description.remark


def test_a_sample_in_a_batch_costs_its_share_of_the_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "median_s", lambda *_, **__: 0.0512)
    broken, fixed, _ = both("tiny_model")
    alone, together = (part.figures[0].value for part in (broken, fixed))
    assert (alone, together) == (0.0512, 0.0512 / measured._SAMPLES)
    assert "batch of 256" in plain(fixed.sentence)
    assert "200 µs" in plain(fixed.sentence)


@pytest.mark.parametrize(
    ("card_s", "words"),
    [
        (4e-5, "on cuda:0 and 10.0 µs on the CPU: the card is 4.0 × slower."),
    ],
)
def test_which_of_both_is_slower_is_reported_by_what_was_measured(
    card_s: float, words: str, monkeypatch: pytest.MonkeyPatch
):
    times = {"cpu": 1e-5, "cuda": card_s}
    monkeypatch.setattr(measured, "_sample_s", lambda device, *_: times[device.type])
    result = measured.TinyModel().run("broken", Bench(torch.device("cuda:0"), threading.Event()))
    assert plain(result.sentence).endswith(words)


@pytest.mark.parametrize(
    ("done_s", "words"),
    [
        (2.0, "That is wrong: the work took 100 ms per call, 10.0 × as long."),
        (0.201, "this time that is close to the truth: the queue was full"),
    ],
)
def test_what_the_clock_without_a_wait_is_worth(
    done_s: float, words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(measured, "_on_thread", lambda: (0.2, done_s))
    broken, fixed, figures = both("no_synchronize")
    assert plain(broken.sentence).startswith("The clock shows 10.0 ms per call")
    assert words in plain(broken.sentence)
    assert "Without it, the same clock showed 10.0 ms" in plain(fixed.sentence)
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
        (2.0, "float16 is 2.0 × slower", "So use float32 here: 1.00 s."),
        (0.5, "float16 is 2.0 × faster", "So use float16 here: 500 ms."),
        (1.03, "float16 is about as fast", "So float16 saves no time here, only memory."),
    ],
)
def test_what_two_times_say_of_float16(
    half_s: float, words: str, advice: str, monkeypatch: pytest.MonkeyPatch
):
    times = {torch.float16: half_s, torch.float32: 1.0}
    monkeypatch.setattr(measured, "_product_s", lambda dtype, _bench: times[dtype])
    _, fixed, _ = both("float16_on_old_card")
    sentence = plain(fixed.sentence)
    assert words in sentence
    assert sentence.endswith(advice)


def test_a_starved_device_waits_for_every_picture(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Without workers the process that trains is the one that waits for the disk."""
    waits_s: list[float] = []
    monkeypatch.setattr(time, "sleep", waits_s.append)
    broken = find_pitfall("starved_gpu").snippet("broken", "cpu")
    exec(compile(broken, "snippet", "exec"), {"__name__": "__main__"})
    assert waits_s == [0.002] * 128
    assert " s waiting" in capsys.readouterr().out


def test_what_the_loaders_script_printed_is_what_is_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "run_script", run_here)
    monkeypatch.setattr(new_processes, "_WORKERS", 0)
    finished = finish("starved_gpu")
    for part in (finished.broken, finished.fixed):
        figures = {one.name: one.value for one in part.figures}
        printed = f"{figures['work_s']:.6f} s at work, {figures['wait_s']:.6f} s waiting"
        assert part.output == printed
        assert figures["whole_s"] == pytest.approx(figures["work_s"] + figures["wait_s"])
        assert figures["busy"] == pytest.approx(figures["work_s"] / figures["whole_s"])


@pytest.mark.parametrize("name", ["starved_gpu", "fresh_results"])
def test_a_script_that_breaks_off_is_a_failure(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "run_script", lambda *_: ScriptEnd("", "OSError: no room"))
    failed = ask(RunPitfall(name=name, device="cpu"))[-1]
    assert isinstance(failed, PitfallFailed)
    assert "OSError: no room" in failed.failure.message


def test_two_times_of_the_same_device_are_not_compared():
    """Without a card broken and fixed train on the CPU: that their times differ means nothing."""
    finished = finish("model_on_cpu")
    assert finished.fixed.sentence.endswith("is chance and says nothing about a card.")
    assert "by chance" not in finished.broken.sentence
    assert not finished.comparison


def test_a_loop_with_new_results_is_timed_beside_one_that_writes_into_the_same():
    finished = finish("fresh_results")
    broken, fixed = finished.broken, finished.fixed
    for part, how in ((broken, "new memory for each result"), (fixed, "into the same memory")):
        assert part.output == f"{part.figures[0].value:.6f} s per call"
        assert plain(part.sentence).startswith("An addition of 64 MiB takes ")
        assert how in part.sentence
        assert not part.stand_in
    assert "y = a + b" in finished.broken_snippet
    assert "torch.add(a, b, out=y)" in finished.fixed_snippet
    assert "time per addition" in finished.comparison


@pytest.mark.parametrize("part", ["broken", "fixed"])
def test_every_worker_has_delivered_before_the_clock_is_read(
    part: str, monkeypatch: pytest.MonkeyPatch
):
    # Where workers are not forked, as on Windows, each takes seconds to import PyTorch.
    seen: list[str] = []

    class Loader:
        def __init__(self, _data: object, batch_size: int, num_workers: int) -> None:
            self.workers = num_workers

        def __iter__(self) -> Iterator[torch.Tensor]:
            for number in range(4):  # the workers take turns
                seen.append(f"worker {number % max(self.workers, 1)}")
                yield torch.zeros(2, 3 * 32 * 32)
            seen.append("the workers end")

    def look() -> float:
        seen.append("clock")
        return float(len(seen))

    monkeypatch.setattr("torch.utils.data.DataLoader", Loader)
    monkeypatch.setitem(sys.modules, "time", SimpleNamespace(perf_counter=look))
    exec(find_pitfall("starved_gpu").snippet(part, "cpu"), {"__name__": "__main__"})
    assert seen[-1] == "the workers end"
    before = seen[: seen.index("clock")]
    assert before == (["worker 0", "worker 1"] if part == "fixed" else ["worker 0", "worker 0"])
