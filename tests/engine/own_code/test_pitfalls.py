"""What a call falls into is seen while it runs on a card, and said with its line."""

import pytest

from gpu_studio.core.benchmark.own_code import own_code
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.engine.pitfalls.registry import PITFALLS
from tests.engine.accelerators import test_makers
from tests.engine.answers import only
from tests.engine.own_code.codes import CARD, STAND_IN, engine, in_turns

pytestmark = test_makers.pytestmark
SETUP = "import torch\ndef setup(device):\n    return torch.nn.Linear(9, 9), torch.ones(4, 9)\n"
CASES = {
    "a model left on the CPU": (
        SETUP + "def work(device, model, x):\n    return model(x).to(device).sum()",
        ("Line 5 computes on the CPU", "Leaving the model on the CPU"),
    ),
    "copies in the loop": (
        "import torch\ndef work(device):\n    total = torch.zeros((), device=device)\n"
        "    for row in torch.ones(12, 5):\n        total += row.to(device).sum()\n"
        "    return total",
        ("Line 5 copies 240", "12 pieces", "Starving the GPU"),
    ),
    "numbers fetched in the loop": (
        "import torch\ndef work(device):\n    x = torch.ones(9, device=device)\n"
        "    return sum(float(one) for one in x.exp())",
        ("Line 4 fetches a number from the card 9 times",),
    ),
    "a generator in each run": (
        "import torch\ndef work(device):\n    g = torch.Generator(device='cpu')\n"
        "    g.manual_seed(1)\n    return torch.rand(5, generator=g).to(device).exp()",
        ("Line 3 makes a random generator",),
    ),
    "tiny work": (
        "import torch\ndef work(device):\n    return torch.ones(5, device=device).exp()",
        ("2 operations on at most 5 numbers", "A model that is too small"),
    ),
}


@pytest.fixture(scope="module")
def two_sides(tmp_path_factory):
    with engine(tmp_path_factory.mktemp("log") / "log", STAND_IN) as child:
        yield child


def on_card(events):
    return next(one for one in only(RunFinished, events) if one.device == CARD)


@pytest.mark.parametrize("name", CASES)
def test_it_is_named_with_its_line(two_sides, name):
    text, words = CASES[name]
    finished = on_card(two_sides.ask(in_turns(own_code(text))))
    said = " ".join(finished.details.findings)
    assert all(word in said for word in words), said
    named = {one.description.name for one in PITFALLS if one.description.title in words}
    assert named <= {*finished.details.lessons}
    assert finished.verified


def test_mixed_tensors_are_an_error_that_is_explained(two_sides):
    code = own_code(
        "import torch\ndef work(device):\n    x = torch.ones(5, device=device)\n"
        "    return x + torch.ones(5)"
    )
    (failed,) = only(RunFailed, two_sides.ask(in_turns(code)))
    assert failed.run_id == CARD
    assert failed.failure.message.startswith("Line 4: it mixes tensors of the CPU and of the card")


def test_what_never_reaches_the_card_is_in_doubt(two_sides):
    code = own_code("import torch\ndef work(device):\n    return torch.ones(5).exp()")
    finished = on_card(two_sides.ask(in_turns(code)))
    assert "not on the card" in finished.doubts


def test_a_wrong_result_is_noticed_and_the_same_random_numbers_are_not(two_sides):
    wrong = own_code(
        "import torch\ndef work(device):\n    x = torch.rand(99, device=device)\n"
        "    return x if device == 'cpu' else x + 0.01"
    )
    assert on_card(two_sides.ask(in_turns(wrong))).verified is False
    drawn = own_code(
        "import torch\ndef work(device):\n    x = torch.empty(99, device=device).normal_()\n"
        "    return torch.dropout(x, 0.5, True) + torch.rand(99, device=device)"
    )
    assert on_card(two_sides.ask(in_turns(drawn))).verified
