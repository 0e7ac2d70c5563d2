"""Lines that name a card, run for any device."""

from types import SimpleNamespace

import pytest
import torch

from gpu_studio.engine.own_code.rewriting import CARDS, DEVICE, Rewritten, compiled

ASKED = SimpleNamespace(
    Event="event", moved=lambda *values, **_: ("moved", *values), parallel=lambda model: [model]
)


def values(text: str, device: str = "here", size: int | None = None) -> dict[str, object]:
    """Return what some lines leave: each function in them returns what it is called with."""
    parts = Rewritten(text, "code")
    space: dict[str, object] = {DEVICE: device, CARDS: ASKED, "moved": []}
    exec(compiled(parts.whole, "code", size), space)
    return space


@pytest.mark.parametrize(
    "written",
    [
        "'cuda'", "'cuda:1'", "'cuda' if False else 'cpu'", "'cpu' if True else 'cuda'",
        "f'cuda:{7}'", "'cuda:' + str(1)", "'cuda:%d' % 3", "'cuda:{}'.format(2)", "'mps'",
        "'mps' if False else 'cuda' if False else 'cpu'",
    ],
)  # fmt: skip
def test_each_way_to_name_a_card_is_the_device(written):
    assert values(f"x = {written}")["x"] == "here"


@pytest.mark.parametrize(
    "written",
    [
        "import torch\nx = torch.cuda.Event", "import torch as t\nx = t.cuda.Event",
        "import torch.cuda as cards\nx = cards.Event", "from torch import cuda\nx = cuda.Event",
        "from torch import cuda as cards, ones\nx = cards.Event",
        "from torch.cuda import Event as Moment\nx = Moment",
    ],
)  # fmt: skip
def test_each_way_to_ask_pytorch_about_cards_is_answered_for_the_device(written):
    assert values(written)["x"] == "event"


def test_other_parts_of_pytorch_stay():
    space = values(
        "import torch\nfrom torch.cuda.amp import autocast\nx = torch.backends.cuda.matmul"
    )
    assert space["x"] is torch.backends.cuda.matmul


def test_a_model_is_moved_and_copied_to_the_device():
    assert values("m = 5\nx = m.cuda(0, non_blocking=True)")["x"] == ("moved", 5, 0)
    assert values("from torch import nn\nx = nn.DataParallel(7)")["x"] == [7]


def test_other_texts_and_the_cpu_stay():
    space = values("x = ('cpu', 'cuda is fast', f'on {1} cuda', {'a': 'cudart'})")
    assert space["x"] == ("cpu", "cuda is fast", "on 1 cuda", {"a": "cudart"})


def test_moves_are_those_of_the_code():
    text = (
        "class T:\n    def to(self, *w): return w\n"
        "def device(*w): return w\n"
        "x = (T().to('cpu'), T().to('cuda', 5), T().to(0), device('cuda', 1), device('cpu'))"
    )
    assert values(text)["x"] == (("cpu",), ("here", 5), ("here",), ("here",), ("cpu",))


@pytest.mark.parametrize(
    "lines",
    [
        "f('cpu')\nf('cuda')",
        "f('cuda')\nprint('and now')\nf('cpu')",
        "for d in ['cpu', 'cuda']:\n    f(d)",
        "[f(d) for d in ('cpu', 'cuda:0')]",
        "a = f('cpu')\nb = f('cuda')\nassert a == b",
        "print('CPU', f('cpu'))\nif True:\n    print('card', f('cuda'))",
        "if __name__ != 'x':\n    f('cpu')\n    f('cuda')",
    ],
)
def test_a_comparison_of_both_is_made_once_for_the_device(lines):
    text = f"def f(d):\n    moved.append(d)\n    return d\n__name__ = 'y'\n{lines}"
    parts = Rewritten(text, "code")
    assert values(text)["moved"] == ["here"]
    assert any("compares" in words for _, words in parts.remarks)


def test_a_size_can_be_another_one():
    text = "size = 2048\nx = size * 2"
    assert Rewritten(text, "code").size == (2048, 1)
    assert values(text, size=3)["x"] == 6
    assert Rewritten("size = 3\nsize = 4", "code").size is None
    assert Rewritten("size = n", "code").size is None


def test_later_runs_leave_out_imports_and_definitions():
    parts = Rewritten("'''Words.'''\nimport os\ndef f():\n    pass\nx = f()", "code")
    assert len(parts.repeated.body) == 2
    assert parts.does_something
    assert not Rewritten("'''Words.'''\nimport os\nclass A: ...", "code").does_something
