import getpass
import json
import socket

import msgspec
import pytest

from gpu_studio.core.benchmark.comparison import (
    Side,
    compared_rows,
    compared_works,
    difference,
    facts_of,
    headline,
    side_names,
    sides_of,
    trust_of_sides,
)
from gpu_studio.core.benchmark.standard import STANDARD_1
from gpu_studio.core.benchmark.standard_record import StandardFigure, decode_standard, shared_json
from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.notice import Tone
from tests.core.benchmark.kept_runs import finished_run
from tests.core.benchmark.standard_runs import (
    item_result,
    paced_device,
    standard_device,
    standard_run,
)
from tests.fakes.run_answers import changed


def sides(*devices, own=True):
    runs = [standard_run(device) for device in devices]
    return [sides_of(run, is_here=own and not number)[0] for number, run in enumerate(runs)]


def words(shown, key="bandwidth"):
    work = next(one for one in compared_works(shown) if one.key == key)
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
    assert words(sides_of(run)) == ["", "▲ 1.1 × faster"]


def test_a_wrong_result_is_no_winner():
    shown = sides(paced_device(), paced_device("other", 9.0, verified=False))
    assert words(shown) == ["", "wrong results"]
    assert compared_works(shown)[0].figures[1].rate is None
    assert trust_of_sides(shown).tone is Tone.FAILURE
    assert trust_of_sides(sides(paced_device(), paced_device())).tone is Tone.GOOD
    assert trust_of_sides(sides(paced_device(verified=None))).tone is Tone.AMBER


def test_the_heading_says_who_wins_how_often():
    mine = paced_device("NVIDIA GeForce GTX 1660 SUPER")
    slow = paced_device("NVIDIA GeForce GTX 1060", 0.5, only=("bandwidth", "launch"))
    fast = paced_device("NVIDIA GeForce RTX 3060", 2.0)
    heading, sentence = headline(sides(mine, slow, fast), compared_works(sides(mine, slow, fast)))
    assert heading == "Your GTX 1660 SUPER beats the GTX 1060 in both"
    assert sentence.startswith("The RTX 3060 beats your GTX 1660 SUPER in all 9. ")
    alike = sides(mine, mine, own=False)
    heading, _ = headline(alike, compared_works(alike))
    assert heading == "No difference between the GTX 1660 SUPER and the GTX 1660 SUPER (2)"
    empty = sides(mine, msgspec.structs.replace(fast, figures=()))
    assert headline(empty, compared_works(empty))[0].startswith("No work was measured on both")


def test_a_run_alone_compares_its_cards_with_its_cpu():
    card = paced_device("NVIDIA GeForce GTX 1060")
    cpu = paced_device("Ryzen 7 5700G", 0.1, device="cpu")
    shown = sides_of(standard_run(card, cpu))
    heading, sentence = headline(shown, compared_works(shown))
    assert heading == "The GTX 1060 beats the Ryzen 7 5700G in all 7"
    assert sentence == "Training step: the GTX 1060 is 10.0\u202f× faster."
    alone = sides_of(standard_run(cpu))
    assert headline(alone, compared_works(alone)) == (
        "The Ryzen 7 5700G", "7 results.",
    )  # fmt: skip


def kept(name="GT 1030", *results, **changes):
    return Side(name=name, results=results or (result("cuda:0"),), is_here=True, **changes)


def result(device="cpu", **changes):
    found = finished_run(512, device).result
    assert found is not None
    return changed(found, **({"size_text": "{size} × {size}"} | changes))


def test_two_kept_runs_of_one_work_are_one_sentence_with_the_ratio():
    before = kept(made_at="2026-11-20T10:00:00+00:00", place="before")
    median_s = before.results[0].median_s / 2
    faster = result(
        "cuda:0", median_s=median_s, ci95_s=(0.99 * median_s, 1.01 * median_s), iqr_s=0.0
    )
    after = kept("GT 1030", faster, made_at="2026-11-21T10:00:00+00:00", place="after")
    works = compared_works([before, after], {"matmul": "Matrix product"})
    heading, sentence = headline([before, after], works)
    assert heading == "The GT 1030 (after) is 2.0\u202f× faster than the GT 1030 (before)"
    assert sentence.replace("\u202f", " ") == "Matrix product, 512 × 512, float32."
    other = kept("GT 1030", result("cuda:0", dtype="float16"), place="half")
    assert headline([before, other], compared_works([before, other])) == (
        "Not comparable", "Not comparable: its precision is float16, not float32.",
    )  # fmt: skip


def test_one_work_in_several_sizes_says_at_which_the_other_side_is_faster():
    def at(size, device, ratio):
        median_s = 1e-3 / ratio
        near = (0.99 * median_s, 1.01 * median_s)
        times = {"median_s": median_s, "ci95_s": near, "iqr_s": 0.0}
        return result(device=device, size=size, **times)

    cpu = kept("Ryzen 7", *(at(size, "cpu", 1.0) for size in (64, 512)))
    card = kept("GT 1030", at(64, "cuda:0", 0.25), at(512, "cuda:0", 3.0))
    heading, sentence = headline([cpu, card], compared_works([cpu, card]))
    assert heading == "The Ryzen 7 and the GT 1030 win in 1 each"
    assert sentence.replace("\u202f", " ") == (
        "The GT 1030: 3.0 × faster at 512 × 512; 4.0 × slower at 64 × 64."
    )


def test_a_kept_run_stands_beside_the_same_work_of_a_standard_run():
    own = item_result(STANDARD_1[1], "cuda:0")
    theirs = sides_of(standard_run(paced_device("RTX 3060", 2.0)))[0]
    (work,) = compared_works([kept("GT 1030", own), theirs])
    assert (work.title, bool(work.figures[1].sign)) == ("Product, float32", True)


def test_the_cpu_stands_beside_a_card_with_and_without_copies():
    card = kept("GT 1030", result("cuda:0"), result("cuda:0", transfers=True))
    works = compared_works([kept("CPU", result()), card])
    assert len(works) == 2
    assert all(figure.result is not None for work in works for figure in work.figures)
    assert "with copies" in works[1].title


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"workload": "linear", "size": 64}, "it is linear, not matmul"),
        ({"size": 1024}, "its size is 1024 × 1024, not 512 × 512"),
        ({"dtype": "float16"}, "its precision is float16, not float32"),
        ({"options": {"amp": "on"}}, "its amp is “on”, not unknown"),
        ({"race": RaceParameters(photo="a" * 64)}, "its picture is"),
        ({"cache": "cold"}, "its cache is cold, not hot"),
        ({"sustained": True}, "its time is sustained, not short"),
        ({"device": "cuda:0", "transfers": True}, ""),
        ({"torch_version": "3.0.0", "verified": False, "recording": "theirs"}, ""),
    ],
)
def test_other_work_is_refused_with_its_reason(changes, reason):
    said = difference(result(), result(**changes)).replace("\u202f", " ")
    assert said.startswith(f"Not comparable: {reason}" if reason else "")
    assert bool(said) is bool(reason)


def test_transfers_matter_between_cards_alone():
    copies = result("cuda:0", transfers=True)
    assert "its copies is with, not without" in difference(result("cuda:0"), copies)
    assert difference(result("cuda:0"), result("cuda:0")) == ""


def test_two_sides_never_have_one_name():
    run = standard_run(paced_device("GTX 1060"), pc_name="Lea's PC")
    again = msgspec.structs.replace(run, pc_name="")
    blank = standard_run(paced_device("   "))
    names = side_names([sides_of(one)[0] for one in (run, run, again, again, blank, blank)])
    assert len(set(names)) == len(names)
    assert all(name.strip() for name in names)


def test_below_the_table_stand_load_what_is_missing_and_the_versions():
    run = standard_run(standard_device(), standard_device("cuda:0"))
    cpu, card, versions = (line.replace("\u202f", " ") for line in facts_of(sides_of(run)))
    assert cpu.startswith("Ryzen 7 5700G: After 20 s of full load: 9.1 % slower, 71 °C.")
    found = (
        "1550 MHz", "driver 580.95.05",
        "Product, bfloat16: This device has no bfloat16.", "PyTorch 2.13.0+cu126",
    )  # fmt: skip
    for words in found:
        assert words in card
    assert "hot spot" not in card
    assert versions == "Debian GNU/Linux 12 · GPU Studio 1.0 · 2026-11-22"


def test_a_script_gets_every_figure_in_its_plain_unit():
    own = sides(paced_device("mine"))
    named = standard_run(paced_device("other", 2.0, only=("bandwidth",)), pc_name="Lea's PC")
    mine, other, _, missing, *more = compared_rows([*own, *sides_of(named)])
    assert len(more) == 2 * len(STANDARD_1) - 4
    assert (mine["unit"], mine["per_second"]) == ("B/s", pytest.approx(298e9))
    assert (other["pc"], other["ratio"]) == ("Lea's PC", pytest.approx(2.0))
    assert other["ci95_low"] < other["per_second"] < other["ci95_high"]
    assert (missing["per_second"], missing["compared"]) == (None, "not measured")


def test_no_identifier_is_shared(monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "erika.m")
    monkeypatch.setattr(socket, "gethostname", lambda: "heimrechner.lan")
    uuid = "4fe0d7a1-3c5b-4d52-9c2e-0123456789ab"
    planted = f"erika.m on heimrechner: /home/erika.m/x/torch.so, GPU-{uuid}"
    result = item_result(
        STANDARD_1[1], "cuda:0", verification=planted, findings=(planted,), doubts={"odd": planted}
    )
    figures = (
        StandardFigure(key="bandwidth", skipped=planted),
        StandardFigure(key="product_float32", result=result),
    )
    run = standard_run(standard_device("cuda:0", figures=figures))
    for secret in ("erika", "heimrechner", uuid, "/home"):
        assert secret not in shared_json(run).lower()
    assert shared_json(run).isascii()
    assert decode_standard(shared_json(standard_run()).encode()) == standard_run()
    assert json.loads(shared_json(run))["pc_name"] == ""
