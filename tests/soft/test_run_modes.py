from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from tests.engine.answers import run_request
from tests.engine.engine_child import EngineChild
from tests.softcards.cards import Card, soft_cards
from tests.softcards.catalogue import GTX_1650, RTX_3060

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.message import Event
    from tests.softcards.cards import SoftPc
    from tests.softcards.usage import CardUse

# Slow enough for a clock to tell, on a busy PC too, whether somebody waited for a kernel.
_KERNEL_S = 5e-3
SLOW = Card("NVIDIA GeForce GTX 1660", "7.5", mib=5928, sms=22, kernel_ms=1e3 * _KERNEL_S)
_VERY_SLOW_S = 0.1
_MATRIX_BYTES = 512 * 512 * 4


@pytest.fixture(scope="module")
def pc() -> Iterator[SoftPc]:
    pc = soft_cards((GTX_1650, RTX_3060, SLOW))
    yield pc
    pc.close()


@pytest.fixture(scope="module")
def engine(pc: SoftPc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineChild]:
    env = {**pc.env, **EngineEnvironment().variables()}
    one = EngineChild(tmp_path_factory.mktemp("engine") / "log", env=env)
    run_on(one, "cuda:1")  # so that the PC knows the process, whichever test comes first
    yield one
    one.kill()


def run_on(engine: EngineChild, device: str, **changes: Any) -> RunFinished:
    events: list[Event] = engine.ask(
        run_request(device=device, **{"size": 512, "budget_s": 0.05, **changes})
    )
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1]


@pytest.fixture
def very_slow(pc: SoftPc) -> Iterator[None]:
    """Make a kernel of the slow card longer than a busy PC interrupts a program."""
    pc.set(2, kernel_ns=round(1e9 * _VERY_SLOW_S))
    yield
    pc.set(2, kernel_ns=round(1e9 * _KERNEL_S))


def used(pc: SoftPc, engine: EngineChild) -> tuple[CardUse, ...]:
    return pc.use_of(engine.process.pid).cards


def test_with_transfers_each_call_copies_in_and_out(pc: SoftPc, engine: EngineChild) -> None:
    run_on(engine, "cuda:1")
    before = used(pc, engine)
    result = run_on(engine, "cuda:1", workload="matmul", transfers=True)
    after = used(pc, engine)
    calls = result.samples * result.calls_per_sample
    assert result.transfers
    assert after[1].copied_in_bytes - before[1].copied_in_bytes > calls * 2 * _MATRIX_BYTES
    assert after[1].copied_out_bytes - before[1].copied_out_bytes > calls * _MATRIX_BYTES
    assert after[0] == before[0]
    assert result.reached.ceiling.startswith("PCIe link")


def test_with_a_cold_cache_something_larger_is_written_before_each_call(
    pc: SoftPc, engine: EngineChild
) -> None:
    before = used(pc, engine)[1].launches
    result = run_on(engine, "cuda:1", workload="matmul", cache="cold")
    launches = used(pc, engine)[1].launches - before
    assert (result.cache, result.calls_per_sample) == ("cold", 1)
    assert launches >= 2 * result.samples
    # What is written over the cache is none of the run's own memory.
    assert result.details.peak_allocated_bytes == 3 * _MATRIX_BYTES


def test_the_naive_stopwatch_does_not_wait_for_the_card(
    very_slow: None, engine: EngineChild
) -> None:
    result = run_on(engine, "cuda:2", naive=True)
    assert result.median_s >= 0.99 * 14 * _VERY_SLOW_S
    assert result.details.naive is not None
    # Its process starts CUDA and has the kernels queued long before the card is done.
    assert result.details.naive.finished_s - result.details.naive.printed_s >= 0.5 * result.median_s
    assert result.details.naive.finished_s >= 0.99 * 14 * _VERY_SLOW_S
    assert "starting CUDA" in result.details.naive.sentence
    assert "without waiting" in result.details.naive.sentence


def test_the_parts_of_a_call_are_told_apart(
    pc: SoftPc, very_slow: None, engine: EngineChild
) -> None:
    pc.set(2, host_copy_mb_s=10)
    result = run_on(engine, "cuda:2", workload="matmul")
    pc.set(2, host_copy_mb_s=SLOW.host_copy_mb_s)
    assert list(result.details.parts_s) == ["copy in", "launch", "compute", "copy out"]
    assert result.details.parts_s["compute"] >= 0.99 * _VERY_SLOW_S
    assert result.details.parts_s["launch"] < _VERY_SLOW_S  # it does not wait
    # Two matrices are copied in, one out, as fast as this card copies.
    copy_s = _MATRIX_BYTES / 10e6
    assert result.details.parts_s["copy out"] >= 0.99 * copy_s
    assert result.details.parts_s["copy in"] >= 0.99 * 2 * copy_s


@pytest.mark.parametrize(
    ("options", "copied_in", "copied_out"),
    [
        ({"direction": "h2d"}, True, False),
        ({"direction": "h2d", "memory": "pinned"}, True, False),
        ({"direction": "d2h"}, False, True),
        ({"direction": "d2h", "memory": "pinned"}, False, True),
        ({}, False, False),
    ],
)
def test_a_copy_goes_where_it_says(
    pc: SoftPc,
    engine: EngineChild,
    options: dict[str, str],
    copied_in: bool,
    copied_out: bool,
) -> None:
    run_on(engine, "cuda:1", workload="copy", size=1)
    before = used(pc, engine)
    result = run_on(engine, "cuda:1", workload="copy", size=1, options=options)
    after = used(pc, engine)
    assert result.verified is True  # soft cards keep what is copied to them
    calls_bytes = result.samples * result.calls_per_sample << 20
    assert (after[1].copied_in_bytes - before[1].copied_in_bytes > calls_bytes) is copied_in
    assert (after[1].copied_out_bytes - before[1].copied_out_bytes > calls_bytes) is copied_out
    assert after[0] == before[0]
    assert result.reached.ceiling.startswith("PCIe link" if options else "memory bandwidth")


def test_asking_and_waiting_are_told_apart(very_slow: None, engine: EngineChild) -> None:
    result = run_on(engine, "cuda:2", workload="launch", size=1)
    (finding,) = result.details.findings
    asked, waited = (
        float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3}[unit]
        for number, unit in re.findall(r"([\d.]+)\s(ns|µs|ms)", finding)[:2]
    )
    assert asked < _VERY_SLOW_S
    assert waited >= 0.99 * _VERY_SLOW_S
    assert result.median_s >= 0.99 * _VERY_SLOW_S


def test_what_a_card_needs_in_the_cpus_memory_is_refused_in_a_sentence(
    engine: EngineChild,
) -> None:
    last = engine.ask(run_request(device="cuda:1", workload="copy", size=1 << 20))[-1]
    assert isinstance(last, RunFailed)
    assert "needs" in last.failure.message
