import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, PitfallStarted, RunPitfall
from gpu_studio.core.switcher.pitfall_words import changed_lines
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.pitfalls import out_of_memory, real_errors, registry
from gpu_studio.engine.pitfalls.pitfall import Bench
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.sensor import CpuWatch
from tests.engine.answers import ask
from tests.engine.pitfalls.outcomes import both, finish, run_here
from tests.patience import until

NAMES = [pitfall.description.name for pitfall in PITFALLS]
# Their parts are new processes, a second or two each.
IN_FRESH_PROCESSES = {"starved_gpu", "visible_devices_too_late", "sticky_error", "fresh_results"}
REAL_ON_ANY_PC = {"old_amp_import"}


def test_the_engine_reports_which_there_are():
    (described,) = ask(DescribeEngine())
    assert [pitfall.name for pitfall in described.pitfalls] == NAMES
    assert NAMES[:6] == [
        "mixed_devices", "model_on_cpu", "out_of_memory", "tiny_model", "starved_gpu",
        "no_synchronize",
    ]  # fmt: skip
    for pitfall in described.pitfalls:
        assert pitfall.title
        assert pitfall.shows
        assert pitfall.sentence.endswith(".")
        assert len(pitfall.why) > 100, pitfall.name  # a paragraph
        assert pitfall.remedy
        assert pitfall.source


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
@pytest.mark.parametrize("pitfall", PITFALLS, ids=NAMES)
def test_every_fix_is_a_few_lines_long(pitfall, device):
    """The lesson has to fit beside its bars; a longer change would be another script."""
    parts = (pitfall.snippet(part, device) for part in ("broken", "fixed"))
    lines = [line for place in changed_lines(*parts) for line in place]
    assert any(line.is_added for line in lines)
    assert len(lines) <= 14


@pytest.mark.parametrize("name", [name for name in NAMES if name not in IN_FRESH_PROCESSES])
def test_a_part_alone_and_both_parts(name: str):
    events = ask(RunPitfall(name=name, device="cpu", part="fixed"))
    started, finished = events
    assert isinstance(started, PitfallStarted)
    assert (started.name, started.part) == (name, "fixed")
    assert finished.broken is None
    assert finished.fixed.part == "fixed"
    assert finished.fixed.sentence
    assert finished.snippet == started.snippet
    assert finished.broken_snippet != finished.fixed_snippet
    assert finished.elapsed_s > 0
    assert not finished.comparison


@pytest.mark.parametrize("name", sorted(set(NAMES) - REAL_ON_ANY_PC - IN_FRESH_PROCESSES))
def test_what_stands_in_for_a_card_is_labelled(name: str):
    finished = finish(name)
    stand_ins = [outcome.stand_in for outcome in (finished.broken, finished.fixed) if outcome]
    assert any("This PC has no card" in stand_in for stand_in in stand_ins)
    assert "stands in" in finished.fixed.stand_in


def test_without_a_card_the_code_to_compare_is_that_of_a_card():
    finished = finish("mixed_devices")
    assert '.to("cuda")' in finished.broken_snippet
    assert "meta" not in finished.broken_snippet + finished.fixed_snippet
    assert "meta" in finished.snippet, "what ran here"


@pytest.mark.parametrize("others", [True, False, None])
def test_an_outcome_says_whether_other_programs_disturbed_it(
    monkeypatch: pytest.MonkeyPatch, others: bool | None
):
    class Watch(CpuWatch):
        def end(self) -> None:
            self.other_processes = others

    monkeypatch.setattr(registry, "CpuWatch", Watch)
    finished = finish("mixed_devices")
    assert finished.broken.is_disturbed is finished.fixed.is_disturbed is (others is True)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (RunPitfall(name="banana", device="cpu"), "Choose one of: mixed_devices"),
        (RunPitfall(name="tiny_model", device="cpu", part="half"), "“broken”, “fixed” or “both”"),
        (RunPitfall(name="tiny_model", device="cuda:7"), "There is no cuda:7 here"),
    ],
)
def test_what_cannot_be_run_is_reported(request_: RunPitfall, words: str):
    (failed,) = ask(request_)
    assert isinstance(failed, PitfallFailed)
    assert words in failed.failure.message


def test_a_stop_ends_it(monkeypatch: pytest.MonkeyPatch):
    stop = threading.Event()
    events = []
    for event in Dispatcher().run(RunPitfall(name="tiny_model", device="cpu"), stop):
        events.append(event)
        stop.set()
    assert [type(event) for event in events] == [PitfallStarted, PitfallFailed]
    assert events[-1].failure.message == "You stopped it."


def test_a_failure_that_is_not_the_point_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(out_of_memory, "_fill", fail)
    (_, failed) = ask(RunPitfall(name="out_of_memory", device="cpu"))
    assert isinstance(failed, PitfallFailed)
    assert failed.failure.kind is FailureKind.INTERNAL


# Never ends by itself, and says in a file that it began: its starter has gone by then.
_ENDLESS = """
import os, pathlib, time
pathlib.Path({begun!r}).with_suffix(".new").write_text(f"{{os.getpid()}} {{os.getcwd()}}")
pathlib.Path({begun!r}).with_suffix(".new").rename({begun!r})
time.sleep(3600)
"""
_ENGINE = """
import threading
import torch
from gpu_studio.engine.pitfalls.pitfall import Bench
Bench(torch.device("cpu"), threading.Event()).run_script({script!r})
"""


def _is_over(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def bench() -> Bench:
    return Bench(torch.device("cpu"), threading.Event())


def test_a_stop_ends_a_fresh_process():
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with pytest.raises(StudioError, match="stopped"):
        Bench(torch.device("cpu"), stop).run_script("import time; time.sleep(60)")
    timer.join()


def test_a_fresh_process_reports_its_output_and_its_error():
    end = bench().run_script("print('é'); raise ValueError('no')")
    assert (end.output, end.error) == ("é", "ValueError: no")
    end = bench().run_script("import os; os._exit(3)")
    assert end.output == ""
    assert "exit status 3" in end.error


def test_a_fresh_process_does_not_outlive_a_killed_engine(tmp_path):
    begun = tmp_path / "begun"
    script = _ENDLESS.format(begun=str(begun))
    engine = subprocess.Popen([sys.executable, "-c", _ENGINE.format(script=script)])
    until(begun.exists)
    pid, folder = begun.read_text().split(" ", 1)
    fresh = psutil.Process(int(pid))
    engine.kill()
    engine.wait()
    until(lambda: _is_over(fresh))
    assert not Path(folder).exists()


def test_a_fresh_process_is_as_one_that_a_person_starts():
    end = bench().run_script(
        "import os, sys\n"
        "print(__name__, sys.argv == [__file__], sys.path[0] == os.path.dirname(__file__))\n"
        "print(repr(sys.stdin.read()), 'torch' in sys.modules, 'gpu_studio' in sys.modules)"
    )
    assert (end.output.splitlines(), end.error) == (["__main__ True True", "'' False False"], "")


def test_mixed_devices_is_a_real_error_that_names_both():
    broken, fixed, _ = both("mixed_devices")
    assert broken.error.startswith("RuntimeError")
    assert "meta" in broken.error
    assert "cpu" in broken.error
    assert not fixed.error
    assert "(32, 500)" in fixed.sentence


def test_out_of_memory_in_the_allocators_words_and_what_fits():
    broken, _, figures = both("out_of_memory")
    assert broken.error.startswith("OutOfMemoryError: CUDA out of memory. Tried to allocate")
    assert figures["batch"] == figures["batch_broke"] / 2 == figures["batch_no_grad"] / 2
    assert figures["peak_bytes"] < figures["budget_bytes"]
    assert figures["peak_no_grad_bytes"] < figures["peak_bytes"]


def test_a_kept_exception_keeps_its_tensors():
    broken, fixed, _ = both("exception_keeps_tensors")
    assert broken.figures[0].value == real_errors._COUNT * 4
    assert fixed.figures[0].value == 0


def test_the_old_names_of_amp_warn():
    broken, fixed, _ = both("old_amp_import")
    assert "torch.amp" in broken.error
    assert broken.error.count("FutureWarning") == broken.figures[0].value == 2
    assert not fixed.error
    assert not broken.stand_in


def test_a_variable_that_is_set_too_late_changes_nothing():
    broken, fixed, _ = both("visible_devices_too_late")
    wanted = 2 if torch.get_num_threads() == 1 else 1
    assert broken.figures[0].value == torch.get_num_threads()
    assert fixed.figures[0].value == wanted
    assert "OMP_NUM_THREADS" in broken.stand_in


def test_an_error_of_the_cpu_does_not_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "run_script", run_here)
    broken, fixed, figures = both("sticky_error")
    assert broken.error == "look_up IndexError index out of range in self"
    assert broken.figures[0].value == 1
    assert not fixed.error
    assert figures["errors"] == 0
