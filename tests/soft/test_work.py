"""Ordinary PyTorch programs run to their end, on the card they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

if TYPE_CHECKING:
    from tests.soft.conftest import MakeChild, MakePc

MATRIX = "torch.ones(64, 64, device='cuda')"
IMAGE = "torch.ones(2, 64, 8, 8, device='cuda')"
WORK = {
    "elementwise": f"({MATRIX} * 2 + 1).shape[0]",
    "reduction": f"{MATRIX}.sum(0).shape[0]",
    "float32 product": f"({MATRIX} @ {MATRIX}).shape[1]",
    "float16 product": f"({MATRIX}.half() @ {MATRIX}.half()).shape[1]",
    "bfloat16 product": f"({MATRIX}.bfloat16() @ {MATRIX}.bfloat16()).shape[1]",
    "float64 product": f"({MATRIX}.double() @ {MATRIX}.double()).shape[1]",
    "batched product": f"torch.bmm({MATRIX}[None], {MATRIX}[None]).shape[2]",
    "linear": f"torch.nn.Linear(64, 64).cuda()({MATRIX}).shape[1]",
    "convolution": f"torch.nn.Conv2d(64, 64, 3).cuda()({IMAGE}).shape[1]",
    "batch norm": f"torch.nn.BatchNorm2d(64).cuda()({IMAGE}).shape[1]",
    "recurrent": f"torch.nn.LSTM(64, 64).cuda()({MATRIX}[None])[0].shape[2]",
    "attention": f"torch.nn.TransformerEncoderLayer(64, 4).cuda()({MATRIX}[None]).shape[2]",
}


@pytest.mark.parametrize("name", WORK)
def test_work_runs_and_launches(name: str, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    assert one.run(WORK[name]) == 64
    one.run("torch.cuda.synchronize()")
    use = pc.use_of(one.pid).cards[0]
    assert use.launches > 0
    assert use.waits > 0


@pytest.mark.parametrize("amp", [False, True], ids=["float32", "amp"])
def test_a_training_loop_runs(amp: bool, soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    steps = one.run(
        f"""
        amp = {amp}
        model = torch.nn.Sequential(
            torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        scaler = torch.amp.GradScaler("cuda", enabled=amp)
        x, y = torch.ones(8, 32, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda")
        kinds = []
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cuda", enabled=amp):
                out = model(x)
                loss = torch.nn.functional.cross_entropy(out, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            kinds.append(str(out.dtype))
        kinds
        """
    )
    assert steps == ["torch.float16" if amp else "torch.float32"] * 3


def test_values_survive_moves_between_cards(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    same = one.run(
        """
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.BatchNorm1d(256))
        before = {k: v.clone() for k, v in model.state_dict().items()}
        places = []
        for device in ("cuda:0", "cuda:1", "cuda:0", "cpu"):
            model.to(device)
            places.append({str(v.device) for v in model.state_dict().values()} == {device})
        after = model.state_dict()
        [places, all(torch.equal(before[k], after[k]) for k in before)]
        """
    )
    assert same == [[True] * 4, True]
    size_bytes = 4 * (256 * 256 + 5 * 256) + 8
    first, second = pc.use_of(one.pid).cards
    assert first.copied_in_bytes == size_bytes
    assert first.copied_out_bytes == size_bytes
    assert first.contexts == second.contexts == 1
    assert second.copied_in_bytes == 0, "the second card got its values from the first"


def test_two_devices_in_one_operation_are_refused(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(RTX_3060, RTX_3060))
    text = one.run(
        """
        try:
            torch.ones(4, device="cuda:0") + torch.ones(4, device="cuda:1")
            text = None
        except RuntimeError as error:
            text = str(error)
        text
        """
    )
    assert "Expected all tensors to be on the same device" in text
    assert "cuda:0" in text
    assert "cuda:1" in text


def test_launches_are_counted_on_the_card_they_ran_on(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = child(pc, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    one.run("x = torch.empty(16, device='cuda:1')")
    before = [card.launches for card in pc.use_of(one.pid).cards]
    one.run("with torch.cuda.device(0):\n    for _ in range(5): x.add_(1)")
    assert [card.launches for card in pc.use_of(one.pid).cards] == [before[0], before[1] + 5]


@pytest.mark.cuda12
def test_a_gt_1030_works_with_cuda_12(soft_pc: MakePc, child: MakeChild) -> None:
    one = child(soft_pc(GT_1030))
    assert (
        one.run("(torch.ones(8, 8, device='cuda') @ torch.ones(8, 8, device='cuda')).shape[0]") == 8
    )
    assert one.run("torch.cuda.synchronize(); [str(w.message) for w in warned]") == []


def test_a_graph_is_captured_and_replayed(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(
        """
        x = torch.zeros(8, device="cuda")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(4):
                x.add_(1)
        torch.cuda.synchronize()
        """
    )
    before = pc.use_of(one.pid).cards[0].launches
    one.run("graph.replay(); graph.replay(); torch.cuda.synchronize()")
    assert pc.use_of(one.pid).cards[0].launches == before + 8


@pytest.mark.cuda13
def test_code_compiled_at_run_time_launches(soft_pc: MakePc, child: MakeChild) -> None:
    pc = soft_pc(RTX_3060)
    one = child(pc)
    one.run(
        """
        import torch.utils.cpp_extension
        torch.utils.cpp_extension.CUDA_HOME = "/nowhere"
        x = torch.empty(8, device="cuda")
        kernel = torch.cuda._compile_kernel("__global__ void one(float* x) { x[0] = 1; }", "one")
        """
    )
    before = pc.use_of(one.pid).cards[0].launches
    one.run("kernel((1, 1, 1), (1, 1, 1), (x,))")
    assert pc.use_of(one.pid).cards[0].launches == before + 1
