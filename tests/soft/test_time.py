"""Kernel time: launches return at once, streams are busy, events and synchronize tell the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.soft.child import NoAnswerError
from tests.softcards.catalogue import RTX_3060

if TYPE_CHECKING:
    from tests.soft.conftest import MakeChild, MakePc

# What the cards' clocks say is compared with the clock on the wall.
pytestmark = pytest.mark.alone

SLOW = replace(RTX_3060, kernel_ms=10.0)

SETUP = """
import time
x = torch.empty(16, device="cuda")
torch.cuda.synchronize()
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
def elapsed_ms(work):
    begin = time.perf_counter()
    value = work()
    return (time.perf_counter() - begin) * 1000, value
def launch(number):
    for _ in range(number):
        x.add_(1)
"""


def test_events_measure_kernel_time_times_launches(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    one.run(SETUP)
    measured = one.run(
        """
        launch(200)  # two seconds: the card stays behind the program, however slow it is
        start.record()
        launch(20)
        end.record()
        end.synchronize()
        start.elapsed_time(end)
        """
    )
    assert measured == pytest.approx(200.0, rel=1e-4)


def test_kernel_time_can_change_while_a_program_runs(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(SLOW)
    one = child(pc)
    one.run(SETUP)
    pc.set(0, kernel_ns=20_000_000)
    measured = one.run(
        """
        launch(100)
        start.record()
        launch(3)
        end.record()
        end.synchronize()
        start.elapsed_time(end)
        """
    )
    assert measured == pytest.approx(60.0, rel=1e-4)


def test_a_launch_returns_before_its_kernel_ends(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    one.run(SETUP)
    launched_ms, waited_ms, query = one.run(
        """
        launched, _ = elapsed_ms(lambda: launch(200))
        query = torch.cuda.current_stream().query()
        waited, _ = elapsed_ms(torch.cuda.synchronize)
        [launched, waited, query]
        """
    )
    assert launched_ms < 1900, "timed without synchronize, the work looks free"
    assert query is False
    assert launched_ms + waited_ms >= 1999
    assert one.run("torch.cuda.current_stream().query()") is True


def test_launches_block_when_told_to(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW), CUDA_LAUNCH_BLOCKING="1")
    one.run(SETUP)
    assert one.run("elapsed_ms(lambda: launch(20))[0]") >= 199
    assert one.run("torch.cuda.current_stream().query()") is True


def test_an_event_is_reached_after_the_work_before_it(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    one.run(SETUP)
    before, after = one.run(
        """
        launch(200)
        end.record()
        before = end.query()
        end.synchronize()
        [before, end.query()]
        """
    )
    assert [before, after] == [False, True]


def test_reading_a_value_waits_for_the_card(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    one.run(SETUP)
    waited_ms = one.run("elapsed_ms(lambda: (launch(20), x[0].item()))[0]")
    assert waited_ms >= 199


def test_streams_run_beside_each_other(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    one.run(SETUP)
    together_ms = one.run(
        """
        def both():
            for stream in (torch.cuda.Stream(), torch.cuda.Stream()):
                with torch.cuda.stream(stream):
                    launch(150)
            torch.cuda.synchronize()
        elapsed_ms(both)[0]
        """
    )
    assert 1499 <= together_ms < 2999  # one after the other


def test_a_stream_waits_for_an_event_of_another(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    one.run(SETUP)
    chained_ms = one.run(
        """
        def chain():
            first, second = torch.cuda.Stream(), torch.cuda.Stream()
            with torch.cuda.stream(first):
                launch(20)
            second.wait_stream(first)
            with torch.cuda.stream(second):
                launch(20)
            torch.cuda.synchronize()
        elapsed_ms(chain)[0]
        """
    )
    assert chained_ms >= 399


def test_cards_are_waited_for_one_by_one(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW, SLOW))
    one.run(SETUP)
    other_ms, own_ms = one.run(
        """
        launch(200)
        other, _ = elapsed_ms(lambda: torch.cuda.synchronize(1))
        own, _ = elapsed_ms(lambda: torch.cuda.synchronize(0))
        [other, own]
        """
    )
    assert other_ms < 1900
    assert own_ms > 50


def test_pinned_memory_is_copied_beside_the_program(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(replace(RTX_3060, host_copy_mb_s=100)))
    one.run(SETUP)
    pageable_ms, pinned_ms, whole_ms = one.run(
        """
        pageable = torch.ones(100 * MIB, dtype=torch.uint8)
        pinned = pageable.pin_memory()
        target = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
        target.copy_(pageable)
        torch.cuda.synchronize()
        first, _ = elapsed_ms(lambda: target.copy_(pageable, non_blocking=True))
        torch.cuda.synchronize()
        second, _ = elapsed_ms(lambda: target.copy_(pinned, non_blocking=True))
        rest, _ = elapsed_ms(torch.cuda.synchronize)
        [first, second, second + rest]
        """
    )
    assert pageable_ms >= 2097, "1049 ms at 100 MB/s, and twice that through a staging buffer"
    assert pinned_ms < 1000
    assert whole_ms >= 1048


def test_a_kernel_that_hangs_never_ends(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(SETUP)
    pc.fault("launch", hang=True)
    one.run("launch(1)")
    one.ask("torch.cuda.synchronize()")
    with pytest.raises(NoAnswerError):
        one.answer(timeout_s=1)


def test_the_card_is_busy_while_a_kernel_runs(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(SLOW))
    idle, busy = one.run(
        SETUP
        + """
import pynvml
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
def seen():
    return [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            pynvml.nvmlDeviceGetPerformanceState(handle),
            pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)]
time.sleep(0.4)
idle = seen()
launch(200)
[idle, seen()]
"""
    )
    assert idle == [0, 8, 139, 1]
    assert busy == [100, 0, RTX_3060.clock_mhz, 0]
