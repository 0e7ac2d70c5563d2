import pytest

from tests.soft.child import NoAnswerError
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import GTX_1650, RTX_3060, RTX_4090

IDENTITIES = """
import pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
nvml = [[pynvml.nvmlDeviceGetUUID(h), pynvml.nvmlDeviceGetName(h),
         pynvml.nvmlDeviceGetPciInfo(h).bus] for h in handles]
props = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
cuda = [["GPU-" + str(p.uuid), p.name] for p in props]
"""
COUNTS = "[torch.cuda.device_count(), torch._C._cuda_getDeviceCount()]"


@pytest.mark.parametrize(
    "cards", [[RTX_3060], [GTX_1650, RTX_3060], [GTX_1650, RTX_4090, RTX_3060, GTX_1650]], ids=len
)
def test_cuda_and_nvml_report_the_same_cards(cards, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(*cards)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    cuda, nvml = one.run(IDENTITIES + "[cuda, nvml]")
    assert nvml == [[card.uuid, card.name, bus] for bus, card in enumerate(pc.cards, start=1)]
    assert cuda == [identity[:2] for identity in nvml]
    assert len({card.uuid for card in pc.cards}) == len(cards)


@pytest.mark.parametrize("length", [40, 12], ids=["whole", "beginning"])
def test_cards_are_made_visible_by_uuid(length: int, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    wanted = ",".join((card.uuid or "")[:length] for card in reversed(pc.cards))
    one = child(pc, CUDA_VISIBLE_DEVICES=wanted)
    cuda = one.run(IDENTITIES + "cuda")
    assert [uuid for uuid, _ in cuda] == [card.uuid for card in reversed(pc.cards)]
    assert one.run(COUNTS) == [2, 2]


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
