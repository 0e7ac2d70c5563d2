"""Learning, feeding, convolving and sharing on soft cards: where the work and the bytes go.

Kernels compute nothing here, so what was learned is never right; copies are real, so what arrives
is.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gpu_studio.core.benchmark.workloads import DATALOADER
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.engine.workloads.conv2d import CHOICES
from gpu_studio.engine.workloads.train_network import parameters_count
from tests.engine.answers import run_request
from tests.engine.engine_child import EngineChild
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.cards import SoftPc, soft_cards
from tests.softcards.catalogue import GTX_1650, RTX_3060

# Of the data set of the second document: 1000 × 10 float32 and 1000 int64.
SET_BYTES = 48_000
WAYS = DATALOADER.options[0].values

PRELUDE = """
import contextlib, io, torch
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
def case(name, address, size=16, **options):
    workload = find_workload(name)
    return workload, make_case(
        workload.description, torch.device(address), size, "float32", options=options)
def printed_by(name, address, size=16, **options):
    workload, one = case(name, address, size, **options)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(workload.snippet(one), {"__name__": "__main__"})
    return out.getvalue()
"""


class Shared:
    """One engine on one soft PC for many runs, and what a run did to the second card."""

    def __init__(self, pc: SoftPc, one: EngineChild) -> None:
        self._pc, self.one = pc, one

    def run(self, workload: str, size: int, **options: str) -> tuple[RunFinished, int, int]:
        """Return a result on cuda:1, and the card's launches and bytes copied in for it."""
        before = self._use() if self._pc.processes() else None
        result = run(self.one, workload, size, "cuda:1", **options)
        after = self._use()
        if before is None:
            return result, after.launches, after.copied_in_bytes
        return (
            result,
            after.launches - before.launches,
            after.copied_in_bytes - before.copied_in_bytes,
        )

    def users(self) -> list[int]:
        return [use.pid for use in self._pc.processes()]

    def _use(self) -> Any:
        first, second = self._pc.use_of(self.one.process.pid).cards
        assert (first.contexts, first.launches, first.copied_in_bytes) == (0, 0, 0)
        return second


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with soft_cards([GTX_1650, RTX_3060]) as pc:
        env = {**pc.env, **EngineEnvironment().variables()}
        one = EngineChild(tmp_path_factory.mktemp("engine") / "log", env=env)
        yield Shared(pc, one)
        one.kill()


def run(one: EngineChild, workload: str, size: int, device: str, **options: str) -> RunFinished:
    request = run_request(
        workload=workload, size=size, device=device, options=options, budget_s=0.1
    )
    result = one.ask(request)[-1]
    assert isinstance(result, RunFinished), result
    return result


def test_learning_happens_on_its_card_and_its_memory_is_reported(shared: Shared) -> None:
    weights_bytes = 4 * parameters_count()
    for amp in ("off", "on"):
        result, launches, _ = shared.run("train_step", 64, amp=amp)
        # Weights, gradients and momentum; with AMP no step counts here, as nothing computes.
        least = 3 if amp == "off" else 2
        assert result.details.peak_allocated_bytes is not None
        assert least * weights_bytes < result.details.peak_allocated_bytes < 12 * weights_bytes
        assert result.verified is False
        assert len(result.details.curves["loss"]) >= 3
        assert launches > 1000
    assert "AMP multiplied in float16" in result.details.findings[1]
    (read,) = shared.one.ask(ReadMemory(device="cuda:1"))
    assert read.allocated_bytes < 20 << 20  # cuBLAS keeps its workspace, a run nothing


@pytest.mark.parametrize("way", WAYS)
def test_every_sample_arrives_by_every_way(way: str, shared: Shared) -> None:
    result, _, copied_bytes = shared.run("dataloader", 100, data_set="1000x10", way=way)
    # The weights are wrong, as nothing computes here; that is found after all samples were right.
    assert result.verification.startswith("every sample arrived, but the weights are off")
    epochs = copied_bytes / SET_BYTES
    if way == "whole_set":
        assert epochs < 5  # for the check and for the run, and the few weights
        assert "once, before the timing" in result.details.findings[1]
    else:
        assert epochs > result.samples
    assert result.details.peak_allocated_bytes is not None
    assert (result.details.peak_allocated_bytes >= SET_BYTES) == (way == "whole_set")


def test_workers_load_for_a_card_and_never_touch_it(shared: Shared) -> None:
    options = {"data_set": "1000x10", "way": "pinned", "num_workers": "2"}
    result, _, _ = shared.run("dataloader", 100, **options)
    assert result.verification.startswith("every sample arrived")
    assert "Starting the workers took" in result.details.findings[1]
    assert shared.users() == [shared.one.process.pid]


def test_float32_convolutions_use_tf32_on_newer_cards_and_say_so(
    soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(soft_pc(GTX_1650, RTX_3060), CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run(PRELUDE)
    one.run("from gpu_studio.engine.workloads import conv2d")
    found = one.run("[conv2d._uses_tf32(case('conv2d', f'cuda:{i}')[1]) for i in (0, 1)]")
    assert found == [False, True]
    one.run("torch.backends.cudnn.allow_tf32 = False")
    assert one.run("conv2d._uses_tf32(case('conv2d', 'cuda:1')[1])") is False


def test_the_own_kernel_runs_through_the_engine(shared: Shared) -> None:
    result, launches, _ = shared.run("custom_kernel", 64)
    assert result.verified is False  # accepted unread: nothing was computed
    assert "compiled it for sm_86" in result.details.findings[0]
    assert result.details.peak_allocated_bytes == 4 * 64 * 64 * 4
    assert launches > result.samples * result.calls_per_sample


# Copies in place of NCCL's broadcast and sum, as PyTorch itself does it where there is no NCCL.
COPIES = """
from torch.nn.parallel import comm
def broadcast(tensors, devices, buffer_size=0):
    return [tuple(one.to(f"cuda:{device}") for one in tensors) for device in devices]
def add(inputs, destination=None, buffer_size=0):
    return tuple(sum(one.to(f"cuda:{destination}") for one in ones) for ones in zip(*inputs))
comm.broadcast_coalesced, comm.reduce_add_coalesced = broadcast, add
"""


def test_dataparallel_splits_a_batch_among_the_cards(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run(PRELUDE + COPIES)
    one.run("workload, shared = case('data_parallel', 'cuda:1', 64, processes='2')")
    one.run("call = workload.prepare(shared); call(); torch.cuda.synchronize()")
    first, second = pc.use_of(one.pid).cards
    assert first.launches > 0
    assert second.launches > 0
    rates = one.run("call.curves()['samples a second']")
    assert len(rates) == 2
    found = one.run("call.findings()")
    assert "32 on cuda:0, 32 on cuda:1" in found[0]
    assert "collected on cuda:1" in found[0]
    assert "2 cards " in found[1]
    assert one.run("workload.check(case('data_parallel', 'cuda:1', processes='2')[1])") is None


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[("train_step", {"amp": amp}) for amp in ("off", "on")],
        ("train_step", {"amp": "on", "amp_dtype": "bfloat16"}),
        *[("dataloader", {"way": way, "data_set": "1000x10"}) for way in WAYS],
        *[("conv2d", {"cudnn": choice}) for choice in CHOICES],
        ("data_parallel", {}),
    ],
    ids=str,
)
def test_snippets_for_a_card_run_as_they_stand(
    name: str, options: dict[str, Any], soft_pc: MakePc, child: MakeChild
) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run(PRELUDE)
    assert "s a call" in one.run(f"printed_by({name!r}, 'cuda:1', **{options!r})")
    first, second = pc.use_of(one.pid).cards
    assert second.launches > 10
    assert first.launches == 0


def test_a_group_of_processes_shares_two_cards(shared: Shared) -> None:
    """Soft cards have no NCCL, so this is also how a PC is served if NCCL cannot work."""
    options = {"way": "DistributedDataParallel", "processes": "2"}
    result = run(shared.one, "data_parallel", 64, "cuda:1", **options)
    assert "32 on cuda:1, 32 on cuda:0" in result.details.findings[0]
    assert "by gloo. NCCL does not work here" in result.details.findings[1]
    assert result.details.curves["sharers"] == (1.0, 2.0)
    assert result.verified is False
    assert (
        result.details.peak_allocated_bytes is None
    )  # it is of other processes, and not asked for


def test_a_missing_nccl_is_one_sentence(shared: Shared) -> None:
    one = shared.one
    request = run_request(
        workload="data_parallel", device="cuda:0", size=64, options={"processes": "2"}
    )
    failed = one.ask(request)[-1]
    assert isinstance(failed, RunFailed)
    assert "by NCCL, which does not work here" in failed.failure.message
    assert not failed.failure.fatal
