import pytest

from gpu_studio.core.devices.link import Link
from gpu_studio.core.messages.pitfall_messages import Figure, PitfallOutcome
from gpu_studio.core.switcher.pitfall_words import (
    ChangedLine,
    changed_lines,
    compare_parts,
)
from gpu_studio.core.switcher.placement_words import (
    explain_move,
)
from gpu_studio.core.switcher.whole_snippet import (
    complete,
    runs_as_it_stands,
    snippet_for_device,
)
from tests.fakes.switching_answers import place_finished

MOVED = "84 KiB moved in 210 µs  ·  410 MB/s"
SAME = "same input, same output (largest difference 2.4e-7)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, f"{MOVED}  ·  allocated +86,528 bytes  ·  {SAME}"),
        ({"untested": "Nobody has tried."}, f"{SAME}  ·  Nobody has tried."),
        ({"allocated_delta_bytes": -86_528}, "allocated -86,528 bytes"),
        (
            {"reserved_delta_bytes": 2 << 20, "card_delta_bytes": 0},
            "reserved +2,097,152 bytes  ·  on the card +0 bytes",
        ),
        (
            {"device": "cpu", "moved_bytes": 0, "allocated_delta_bytes": None},
            f"Nothing had to move: all 15 tensors are on cpu  ·  {SAME}",
        ),
        (
            {"device": "cpu", "moved_bytes": 0, "tensors": 1, "dtype": "bfloat16"},
            "the 1 tensor is on cpu, floating-point ones bfloat16 now",
        ),
        (
            {"same_output": False, "largest_difference": 0.031},
            "different output: largest difference 0.031, more than the 1.0e-5 that rounding",
        ),
        ({"same_output": False, "largest_difference": None}, "is now NaN"),
        ({"same_output": None, "largest_difference": None}, "not compared"),
    ],
)
def test_a_move_is_told_with_its_proof(changes, words):
    assert words in explain_move(place_finished(**changes)).replace("\u202f", " ")


@pytest.mark.parametrize(
    ("changes", "generation", "words"),
    [
        (
            {"moved_bytes": 1_969_200_000, "elapsed_s": 1.0}, 3,
            "1.97 GB/s, 50 % of the 3.94 GB/s of the card's link (PCIe gen 3 × 4)  ·",
        ),
        ({}, 3, "so few bytes, most of the time is copy overhead"),
        ({}, 9, "410 MB/s  ·"),  # nobody knows such a link
    ],
)  # fmt: skip
def test_the_bandwidth_is_set_against_the_link(changes, generation, words):
    said = explain_move(place_finished(**changes), Link(generation=generation, width=4))
    assert words in said.replace("\u202f", " ")


OTHERWISE = "Workers cost time."


def outcome(part: str, *figures: Figure) -> PitfallOutcome:
    return PitfallOutcome(part=part, sentence="It was measured.", figures=figures)


def compared(before: float, after: float, aim: str = "less") -> str:
    broken, fixed = (
        outcome(part, Figure(name="wait_s", title="Waiting", value=value, unit="s", aim=aim))
        for part, value in (("broken", before), ("fixed", after))
    )
    return compare_parts(OTHERWISE, broken, fixed).replace("\u202f", " ")


@pytest.mark.parametrize(
    ("before", "after", "aim", "words"),
    [
        (2.0, 1.0, "less", "With the fix: waiting 1.00 s instead of 2.00 s."),
        (1.0, 2.0, "more", "With the fix: waiting 2.00 s instead of 1.00 s."),
        (1.0, 2.0, "less", "The fix did not help here: waiting 2.00 s instead of 1.00 s. Workers"),
        (2.0, 1.0, "more", "The fix did not help here: waiting 1.00 s instead of 2.00 s. Workers"),
        (1.0, 0.97, "less", "The fix did not help here: waiting 970 ms instead of 1.00 s. Workers"),
        (0.0, 0.0, "less", "The fix did not help here: waiting 0 s instead of 0 s. Workers"),
    ],
)
def test_the_sentence_follows_the_numbers(before: float, after: float, aim: str, words: str):
    assert compared(before, after, aim).startswith(words)


def test_a_figure_without_an_aim_or_without_a_twin_is_left_out():
    assert compared(2.0, 1.0, aim="") == ""
    broken = outcome("broken", Figure(name="a", title="A", value=1.0, aim="less"))
    fixed = outcome("fixed", Figure(name="b", title="B", value=1.0, aim="less"))
    assert compare_parts(OTHERWISE, broken, fixed) == ""
    assert compare_parts(OTHERWISE, broken, None) == compare_parts(OTHERWISE, None, fixed) == ""


def test_where_one_number_got_better_and_another_worse_both_are_reported():
    broken, fixed = (
        outcome(
            part,
            Figure(name="wait", title="Waiting", value=wait, aim="less"),
            Figure(name="whole", title="All", value=whole, aim="less"),
        )
        for part, wait, whole in (("broken", 4.0, 5.0), ("fixed", 1.0, 7.0))
    )
    assert compare_parts(OTHERWISE, broken, fixed) == (
        "The fix helped only partly here: waiting 1 instead of 4; all 7 instead of 5. "
        "Workers cost time."
    )


def test_each_place_has_its_removed_and_its_added_lines():
    before = "import torch\n\nmodel(x)\nkeep = 1\n    a = 1\n"
    after = "import torch\n\nwith torch.no_grad():\n    model(x)\nkeep = 1\n    a = 2\n    b = 3\n"
    assert changed_lines(before, after) == (
        (
            ChangedLine(False, "model(x)"),
            ChangedLine(True, "with torch.no_grad():"),
            ChangedLine(True, "    model(x)"),
        ),
        (ChangedLine(False, "a = 1"), ChangedLine(True, "a = 2"), ChangedLine(True, "b = 3")),
    )


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("a\n", "a\n"), ("a\nb\n", "a\n\n   \nb"), ("a", "a\n")]
)
def test_blank_lines_are_no_change(before, after):
    assert changed_lines(before, after) == ()


ORDER = 'os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"'


@pytest.mark.parametrize(
    ("address", "device_count", "visible_devices", "begins"),
    [
        ("cpu", 2, None, "import torch\n\ndevice"),
        ("cuda:0", 0, None, "import torch\n\ndevice"),
        ("cuda:0", 1, None, "import torch\n\ndevice"),
        ("cuda:0", 0, "", "import torch\n\ndevice"),
        ("cuda:1", 2, None, f"import os\n\n{ORDER}\n\nimport torch\n\ndevice"),
        (
            "cuda:0", 1, "GPU-1",
            f"import os\n\n{ORDER}\nos.environ[\"CUDA_VISIBLE_DEVICES\"] = 'GPU-1'\n\nimport torch",
        ),
    ],
)  # fmt: skip
def test_a_snippet_sees_the_cards_as_the_engine_does(
    address: str, device_count: int, visible_devices: str | None, begins: str
):
    whole = complete(
        snippet_for_device(address), device_count=device_count, visible_devices=visible_devices
    )
    assert whole.startswith(begins)
    assert f'torch.device("{address}")' in whole


def test_what_has_to_be_a_file_of_several_processes_cannot_be_pasted():
    assert runs_as_it_stands("import torch\n# Save this as a file")
    assert runs_as_it_stands("")
    assert not runs_as_it_stands("# Save this as share.py, then: torchrun share.py\nimport os\n")
