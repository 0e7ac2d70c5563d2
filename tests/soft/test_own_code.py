"""A user's own code on soft cards: PyTorch's own CUDA meets it, and its kernels compute nothing.

So results differ from the CPU's. What is tested is that the card is used, that copies, fetched
numbers and errors are seen with their lines, and that a failed run leaves the engine whole.
"""

import pytest

from gpu_studio.core.benchmark.own_code import example, own_code
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunInTurns
from gpu_studio.core.switcher.pitfalls import MIXED_DEVICES, STARVED_GPU
from tests.engine.answers import only
from tests.engine.own_code.codes import run_of
from tests.soft.conftest import MakePc, StartEngine
from tests.softcards.catalogue import GTX_1650, MODERN_1996_MIB

CARD = "cuda:0"


@pytest.mark.parametrize("name", ["linear", "amp", "data_parallel", "batches", "move"])
def test_an_example_of_the_documents_runs_on_both_sides(
    soft_pc: MakePc, engine: StartEngine, name: str
) -> None:
    pc = soft_pc(GTX_1650)
    one = engine(pc)
    code = own_code(example(name))
    events = one.ask(RunInTurns(runs=tuple(run_of(code, side) for side in ("cpu", CARD))))
    assert only(RunFailed, events) == []
    (cpu, card) = sorted(only(RunFinished, events), key=lambda side: side.device != "cpu")
    assert cpu.verified is not False
    assert card.device_name == GTX_1650.name
    assert "not on the card" not in card.doubts
    (used,) = pc.use_of(one.process.pid).cards
    assert used.launches > 0


def test_copies_and_fetched_numbers_have_their_lines(soft_pc: MakePc, engine: StartEngine) -> None:
    code = own_code(
        "import torch\ndef work(device):\n    total = 0.0\n    for row in torch.ones(12, 5):\n"
        "        total += row.to(device).sum().item()\n    return torch.ones(3, device=device)"
    )
    result = engine(soft_pc(GTX_1650)).ask(run_of(code, CARD))[-1]
    assert isinstance(result, RunFinished), result
    said = " ".join(result.details.findings)
    assert "Line 5 copies 240" in said
    assert "Line 5 fetches a number from the card 12 times" in said
    assert STARVED_GPU.name in result.details.lessons


def test_mixed_tensors_are_explained_and_the_engine_goes_on(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    one = engine(soft_pc(GTX_1650))
    mixed = own_code(
        "import torch\ndef work(device):\n    x = torch.ones(5, device=device)\n"
        "    return x + torch.ones(5)"
    )
    failure = one.ask(run_of(mixed, CARD))[-1].failure
    assert failure.message.startswith("Line 4: it mixes tensors of the CPU and of the card")
    assert MIXED_DEVICES.title in failure.message
    right = own_code("import torch\ndef work(device):\n    return torch.ones(5, device=device) * 2")
    assert isinstance(one.ask(run_of(right, CARD))[-1], RunFinished)


def test_a_card_that_is_too_small_is_said_with_the_line(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    code = own_code(
        "import torch\ndef work(device):\n"
        "    big = torch.empty(2 << 30, dtype=torch.uint8, device=device)\n"
        "    return torch.ones(3, device=device)"
    )
    failure = engine(soft_pc(MODERN_1996_MIB)).ask(run_of(code, CARD))[-1].failure
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert failure.message.startswith("Line 3: ")
