import contextlib
import multiprocessing.connection
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from gpu_studio.core.benchmark.workloads import DATALOADER
from gpu_studio.core.messages.engine_messages import Stop
from gpu_studio.core.messages.run_messages import RunFinished, RunStopped, SamplesMeasured
from gpu_studio.core.protocol import encode
from gpu_studio.engine.workloads import dataloader, feeding
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.dataloader import Dataloader
from gpu_studio.engine.workloads.feeding import DATA_SETS, Feed
from tests.engine.answers import ask, run_request
from tests.engine.engine_child import EngineChild
from tests.patience import PATIENCE_S, outliving

# PyTorch says so where a PC, or what it lends to this process, has one core.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
CPU = torch.device("cpu")
WORKLOAD = Dataloader()
SMALL = {"data_set": "1000x10"}

WAYS = DATALOADER.options[0].values


def case_of(size: int = 32, **options: str) -> Case:
    return make_case(WORKLOAD.description, CPU, size, options={**SMALL, **options})


def workers_of(feed: Feed) -> list[int]:
    return [worker.pid for worker in feed._loader._iterator._workers]


def run_with_workers(budget_s: float) -> Any:
    return run_request(
        workload="dataloader", budget_s=budget_s, options={**SMALL, "num_workers": "1"}
    )


@pytest.mark.parametrize(("way", "data_set"), list(zip(WAYS, cycle(DATA_SETS))))
def test_what_arrives_and_teaches_right_is_verified(way: str, data_set: str):
    check = WORKLOAD.verify(case_of(100, way=way, data_set=data_set))
    assert check.verified, check.sentence
    samples = DATA_SETS[data_set].samples
    assert check.compared[0] == f"all {samples} samples"


@pytest.mark.parametrize("size", [7, 5000])
def test_a_last_batch_may_be_smaller(size: int):
    check = WORKLOAD.verify(case_of(size))
    assert check.verified, check.sentence


def test_the_data_sets_are_those_of_the_documents():
    inputs, targets = DATA_SETS["10000x100"].draw()
    assert (inputs.shape, targets.shape) == ((10000, 100), (10000, 50))
    inputs, labels = DATA_SETS["1000x10"].draw()
    assert (inputs.shape, labels.shape) == ((1000, 10), (1000,))
    assert set(labels.tolist()) == {0, 1}
    assert WORKLOAD.description.sizes[0] == 32
    for data_set in DATA_SETS.values():
        assert data_set.size_bytes == sum(part.nbytes for part in data_set.draw())


def test_an_epoch_is_one_sample_of_all_samples():
    request = run_request(workload="dataloader", options=SMALL)
    result = ask(request)[-1]
    assert isinstance(result, RunFinished)
    assert result.calls_per_sample == 1
    assert result.throughput == pytest.approx(1000 / result.median_s)
    assert result.throughput_unit == "samples/s"
    assert list(result.details.parts_s) == ["loading", "copying", "computing"]
    assert min(result.details.parts_s.values()) > 0


def test_the_parts_are_where_the_time_goes(monkeypatch: pytest.MonkeyPatch):
    """A clock that the parts themselves move: each takes what it is said to take."""
    now_s = [0.0]
    monkeypatch.setattr(dataloader.time, "perf_counter", lambda: now_s[0])
    batches, to_device = Feed.batches, Feed.to_device

    def slow_batches(self: Feed) -> Any:
        for batch in batches(self):
            now_s[0] += 0.001
            yield batch

    def slow_copy(self: Feed, batch: Any) -> Any:
        now_s[0] += 0.01
        return to_device(self, batch)

    def slow_step(self: Any, batch: Any) -> None:
        now_s[0] += 0.1

    monkeypatch.setattr(Feed, "batches", slow_batches)
    monkeypatch.setattr(Feed, "to_device", slow_copy)
    monkeypatch.setattr(dataloader.Learner, "step", slow_step)
    with contextlib.closing(WORKLOAD.prepare(case_of(100))) as call:
        parts_s = call.parts_s()
        (found,) = call.findings()
    assert parts_s == pytest.approx({"loading": 0.01, "copying": 0.1, "computing": 1.0})
    assert found.count("1.11\u202fs") == 2


def test_choices_that_mean_nothing_here_are_reported():
    with contextlib.closing(WORKLOAD.prepare(case_of(way="whole_set", num_workers="4"))) as call:
        found = " ".join([str(call.parts_s()), *call.findings()])
    assert "nothing is copied" in found
    assert "no worker was started" in found
    with contextlib.closing(WORKLOAD.prepare(case_of())) as call:
        call.parts_s()
        assert len(call.findings()) == 1


def test_the_start_of_workers_is_reported_and_they_end_with_the_call():
    call = WORKLOAD.prepare(case_of(num_workers="2"))
    pids = workers_of(call._feed)
    assert len(pids) == 2
    assert all(psutil.pid_exists(pid) for pid in pids)
    call()
    assert workers_of(call._feed) == pids  # they stay from one epoch to the next
    call.parts_s()
    assert "Starting the workers took" in call.findings()[1]
    call.close()
    assert not any(psutil.pid_exists(pid) for pid in pids)


def loaders_below(engine: EngineChild) -> list[psutil.Process]:
    """The processes below the engine's own: its fork server's, which are the workers."""
    helpers = psutil.Process(engine.process.pid).children()
    return [one for helper in helpers for one in helper.children()]


@pytest.mark.skipif(sys.platform == "win32", reason="there workers are the engine's own children")
def test_workers_end_with_a_stopped_run_and_with_a_killed_engine(tmp_path: Path):
    engine = EngineChild(tmp_path / "log")
    try:

        def stop(event: Any) -> None:
            if isinstance(event, SamplesMeasured) and not seen:
                seen.extend(loaders_below(engine))
                engine.send(encode(Stop()))

        seen: list[psutil.Process] = []
        events = engine.ask(run_with_workers(3600.0), stop)
        assert isinstance(events[-1], RunStopped)
        assert len(seen) == 1
        assert outliving(seen) == []

        engine.send(encode(run_with_workers(3600.0)))
        while not isinstance(engine.receive(), SamplesMeasured):
            pass
        everyone = psutil.Process(engine.process.pid).children(recursive=True)
        assert len(everyone) >= 2  # the worker and what forks it
        engine.process.kill()
        # Without a watch of their own they stay for good.
        assert outliving(everyone) == []
    finally:
        engine.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe cannot be waited for there")
def test_workers_do_not_hold_the_engines_pipes():
    """A worker with a copy would keep the window waiting after the engine has died."""
    read_end, write_end = os.pipe()
    feed = Feed(case_of(num_workers="1"))
    try:
        os.close(write_end)
        assert multiprocessing.connection.wait([read_end], timeout=PATIENCE_S) == [read_end]
        assert os.read(read_end, 1) == b""  # end of file: no other process can write
    finally:
        feed.close()
        os.close(read_end)


@pytest.mark.parametrize(("way", "data_set"), list(zip(WAYS, cycle(DATA_SETS))))
def test_its_snippet_runs_as_it_stands(way: str, data_set: str, capsys: pytest.CaptureFixture[str]):
    lines = WORKLOAD.snippet(case_of(500, way=way, data_set=data_set))
    exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out.removesuffix(" s a call\n")) > 0
    assert ("non_blocking=True" in lines) == (way == "pinned_non_blocking")
    assert ("DataLoader(dataset" in lines) == (way != "whole_set")


def test_a_snippet_with_workers_runs_as_a_file(tmp_path: Path):
    lines = WORKLOAD.snippet(case_of(500, num_workers="1"))
    path = tmp_path / "feed.py"
    path.write_text(lines)
    printed = subprocess.check_output([sys.executable, str(path)], text=True, timeout=500)
    assert float(printed.removesuffix(" s a call\n")) > 0


def test_the_ways_are_options_of_the_feed(monkeypatch: pytest.MonkeyPatch):
    asked: list[dict[str, Any]] = []

    class Loader:
        def __init__(self, samples: Any, **options: Any) -> None:
            asked.append(options)

    monkeypatch.setattr(feeding, "DataLoader", Loader)
    card = torch.device("cuda", 0)
    for way, pinned, non_blocking in [
        ("batch_by_batch", False, False),
        ("pinned", True, False),
        ("pinned_non_blocking", True, True),
    ]:
        feed = Feed(make_case(WORKLOAD.description, card, 32, options={**SMALL, "way": way}))
        assert asked[-1] == {"batch_size": 32, "pin_memory": pinned}
        assert feed.is_non_blocking is non_blocking
