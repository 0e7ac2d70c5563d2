from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, SamplesMeasured
from gpu_studio.engine.benchmark import admission, cold_cache
from gpu_studio.engine.benchmark.cold_cache import ColdStopwatch, buffer_bytes, last_level_bytes
from tests.engine.answers import ask, only, run_request

CPU = torch.device("cpu")


def list_cache(cpus: Path, cpu: int, index: int, level: int, size: str, shared: str) -> None:
    folder = cpus / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", str(level)), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(text + "\n")


def test_the_last_caches_are_those_of_the_highest_level_each_once(tmp_path: Path):
    for cpu in range(4):
        list_cache(tmp_path, cpu, 0, 1, "48K", str(cpu))
        list_cache(tmp_path, cpu, 3, 3, "32M", "0-1" if cpu < 2 else "2-3")
    assert last_level_bytes.__wrapped__(tmp_path) == 64 << 20


@pytest.mark.parametrize(("cache_mib", "written_mib"), [(0.5, 64), (50, 100), (None, 256)])
def test_on_a_card_it_is_at_least_what_takes_longer_than_a_launch(
    monkeypatch: pytest.MonkeyPatch, cache_mib: float | None, written_mib: int
):
    card = SimpleNamespace(
        name="A card", major=8, minor=6, multi_processor_count=30, total_memory=12 << 30,
        L2_cache_size=int(cache_mib * (1 << 20)) if cache_mib else 0,
    )  # fmt: skip
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    assert buffer_bytes(torch.device("cuda", 0)) == written_mib << 20


def test_the_cache_is_overwritten_before_each_call_and_outside_of_its_time(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(cold_cache, "last_level_bytes", lambda: 1 << 10)
    now_s, log = [0.0], []
    monkeypatch.setattr(cold_cache.time, "perf_counter_ns", lambda: round(now_s[0] * 1e9))

    class Inner:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            assert calls == 1
            call()
            return 0.5, 0.5

    class Buffer:
        def add_(self, value: float) -> None:
            assert value
            log.append("overwritten")
            now_s[0] += 1.0

    def call() -> None:
        log.append("called")
        now_s[0] += 0.5

    stopwatch = ColdStopwatch(Inner(), CPU)
    assert stopwatch._buffer.nbytes == 2 << 10
    stopwatch._buffer = Buffer()
    for _ in range(2):
        assert stopwatch.time(call, 1) == (0.5, 1.5)
    assert log == ["overwritten", "called"] * 2


def test_a_run_with_a_cold_cache_times_one_call_a_sample(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cold_cache, "last_level_bytes", lambda: 1 << 20)
    events = ask(run_request(cache="cold"))
    result, lines = events[-1], only(SamplesMeasured, events)
    assert isinstance(result, RunFinished)
    assert (result.cache, result.calls_per_sample) == ("cold", 1)
    assert result.samples == sum(len(line.samples_s) for line in lines)


def test_overwriting_counts_for_the_budget(monkeypatch: pytest.MonkeyPatch):
    """Many short calls would take for ever without it."""
    monkeypatch.setattr(cold_cache, "last_level_bytes", lambda: 1 << 20)
    monkeypatch.setattr(ColdStopwatch, "time", lambda self, call, calls: (1e-3, 1.0))
    events = ask(run_request(cache="cold", budget_s=3.0))
    assert only(SamplesMeasured, events)[-1].spent_s == 3.0
    assert events[-1].samples == 3


def test_what_is_written_over_the_cache_must_fit_as_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cold_cache, "last_level_bytes", lambda: 1 << 30)
    monkeypatch.setattr(admission, "free_bytes", lambda device: 1 << 30)
    (*_, failed) = ask(run_request(cache="cold"))
    assert isinstance(failed, RunFailed)
    assert failed.failure.kind is FailureKind.TOO_LARGE
