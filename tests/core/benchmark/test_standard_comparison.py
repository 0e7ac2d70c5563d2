"""Standard runs side by side: what counts, what does not, and how it is said."""

from __future__ import annotations

import msgspec

from gpu_studio.core.benchmark.standard_comparison import (
    Side,
    compared_works,
    comparison_trust,
    headline,
    side_names,
)
from gpu_studio.core.notice import Tone
from tests.core.benchmark.standard_runs import paced_device, standard_run


def sides(*devices, own=True):
    runs = [standard_run(device) for device in devices]
    return [Side(run, 0, is_here=own and number == 0) for number, run in enumerate(runs)]


def words(shown, key="bandwidth"):
    work = next(one for one in compared_works(shown) if one.item.key == key)
    return [figure.words.replace("\u202f", " ") for figure in work.figures]


def test_only_what_two_runs_of_one_pc_cannot_differ_by_counts():
    shown = sides(*(paced_device(f"card {pace}", pace) for pace in (1.0, 1.2, 1.4, 0.5, 1.0)))
    assert words(shown) == [
        "", "cannot be told", "▲ 1.4 × faster", "▼ 2.0 × slower", "equally fast",
    ]  # fmt: skip


def test_turns_that_a_file_claims_make_no_smaller_difference_count():
    """Rounds in turns meet the same disturbances; those of two PCs do not."""
    own = paced_device("mine", 1.0, turns="turn-1")
    other = paced_device("other", 1.1, turns="turn-1")
    assert words(sides(own, other)) == ["", "cannot be told"]
    run = standard_run(own, other)
    assert words([Side(run, 0), Side(run, 1)]) == ["", "▲ 1.1 × faster"]


def test_a_wrong_result_is_no_winner():
    shown = sides(paced_device(), paced_device("other", 9.0, verified=False))
    assert words(shown) == ["", "wrong results"]
    assert comparison_trust(shown).tone is Tone.FAILURE
    assert comparison_trust(sides(paced_device(), paced_device())).tone is Tone.GOOD
    assert comparison_trust(sides(paced_device(verified=None))).tone is Tone.AMBER


def test_what_a_device_did_not_measure_is_no_zero():
    shown = sides(paced_device(), paced_device("other", 2.0, only=("launch",)))
    first, *_, launch = [one for one in compared_works(shown) if one.item.key != "copy_in"][:7]
    assert first.figures[1].rate is None
    assert first.figures[1].skipped == "It was stopped before."
    assert first.shown(first.figures[1]) == "–"
    assert launch.figures[1].sign == 1


def test_the_heading_says_who_wins_how_often():
    mine = paced_device("NVIDIA GeForce GTX 1660 SUPER")
    slow = paced_device("NVIDIA GeForce GTX 1060", 0.5, only=("bandwidth", "launch"))
    fast = paced_device("NVIDIA GeForce RTX 3060", 2.0)
    heading, sentence = headline(sides(mine, slow, fast), compared_works(sides(mine, slow, fast)))
    assert heading == "Your GTX 1660 SUPER beats the GTX 1060 in all 2"
    assert sentence.startswith("The RTX 3060 leads in all 9. ")
    both = sides(mine, slow, fast, paced_device("NVIDIA GeForce RTX 3070", 3.0))
    sentence = headline(both, compared_works(both))[1]
    assert sentence.startswith("The RTX 3060 leads in all 9 and the RTX 3070 in all 9. ")
    heading, _ = headline(sides(mine, fast), compared_works(sides(mine, fast)))
    assert heading == "The RTX 3060 beats your GTX 1660 SUPER in all 9"
    alike = sides(mine, mine, own=False)
    heading, _ = headline(alike, compared_works(alike))
    assert heading == "No difference between the GTX 1660 SUPER and the GTX 1660 SUPER (2)"


def test_two_sides_never_have_one_name():
    run = standard_run(paced_device("GTX 1060"), pc_name="Lea's PC")
    again = msgspec.structs.replace(run, pc_name="")
    blank = standard_run(paced_device("   "))
    names = side_names([Side(run), Side(run), Side(again), Side(again), Side(blank), Side(blank)])
    assert len(set(names)) == len(names)
    assert all(name.strip() for name in names)


def test_a_rate_and_its_interval_have_one_unit():
    shown = sides(paced_device(), paced_device("tiny", 1e-9))
    work = compared_works(shown)[0]
    assert work.unit == "GB/s"
    assert [work.shown(figure) for figure in work.figures] == ["298", "0.000000298"]
    for figure in work.figures:
        assert figure.low < figure.rate < figure.high
