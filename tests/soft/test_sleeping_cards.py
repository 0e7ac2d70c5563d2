"""An engine that leaves sleeping cards alone: no call reaches the driver.

Here every call into CUDA and NVML would never return, so an answer proves that none was made.
"""

import pytest

from tests.soft.child import NoAnswerError
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import RTX_3060

PREPARED = """
import threading
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.engine.dispatcher import Dispatcher
dispatcher = Dispatcher(are_cards_asleep=lambda: True)
def ask(request):
    return list(dispatcher.run(request, threading.Event()))
(described,) = ask(DescribeEngine(wakes_cards=False))
described.cards_asleep
"""
WORK = """
ask(ReadMemory(device="cpu"))
run = RunWorkload(
    run_id="1", workload="matmul", device="cpu", size=64, dtype="float32", budget_s=0.05
)
type(ask(run)[-1]).__name__
"""


def test_an_engine_with_sleeping_cards_calls_no_driver(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    pc.fault("cuda*", hang=True)
    pc.fault("nvml*", hang=True)
    one = child(pc)
    assert one.run(PREPARED) is True
    assert one.run(WORK) == "RunFinished"
    with pytest.raises(NoAnswerError):  # the first question to CUDA is one too many
        one.run("ask(DescribeEngine())", timeout_s=3)
