from dataclasses import replace

import pytest

from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import RTX_3060

# What the cards' clocks say is compared with the clock on the wall.
pytestmark = pytest.mark.alone

SLOW = replace(RTX_3060, kernel_ms=10.0)

SETUP = """
import time
x = torch.empty(16, device="cuda")
torch.cuda.synchronize()
def elapsed_ms(work):
    begin = time.perf_counter()
    value = work()
    return (time.perf_counter() - begin) * 1000, value
def launch(number):
    for _ in range(number):
        x.add_(1)
"""


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
