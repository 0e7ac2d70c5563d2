"""Which build has code for which card, and which one is offered in its place."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.maker_builds import MakerCard, serves
from gpu_studio.core.pythons.coverage import (
    PcCard,
    ThisPc,
    choices,
    covers,
    this_pc,
    torch_releases,
)
from gpu_studio.core.pythons.torch_files import TorchFiles
from gpu_studio.core.wheel_table import load_table
from tests.fakes.pc import gt_1030

LINUX = ThisPc(driver="580.95")
WINDOWS = LINUX._replace(system="Windows", driver_system="Windows", machine="AMD64")


def nvidia(major, minor):
    return PcCard("card", "card", "NVIDIA", (major, minor))


def torch(version, **fields):
    tag = version.partition("+")[2]
    kind = {"cu": "cuda", "ro": "rocm", "xp": "xpu"}.get(tag[:2], "cpu")
    made = TorchFiles(version=version, kind=kind, tag=tag, records=(version,))
    return msgspec.structs.replace(made, **fields)


@pytest.mark.parametrize(
    ("version", "card", "has_code"),
    [
        ("2.5.1+cu121", (12, 0), False), ("2.13.0+cu130", (6, 1), False),
        ("2.7.1+cu128", (12, 0), True), ("2.7.1+cu128", (7, 0), False),
        ("2.8.0+cu128", (7, 0), True), ("2.7.1+cu118", (3, 7), True),
        ("2.7.1+cu126", (8, 9), True), ("2.9.1+cu130", (7, 5), True),
        ("1.13.1+cu117", (12, 0), False), ("1.13.1+cu117", (8, 6), None),
        ("2.9.0.dev20250801+cu128", (12, 0), True), ("2.6.0a0+gitabc", (8, 6), False),
        ("2.20.0+cu140", (8, 6), None), ("2.20.0+cu140", (6, 1), False),
    ],
)  # fmt: skip
def test_an_nvidia_card_is_covered_as_published(version, card, has_code):
    assert covers(torch(version), nvidia(*card), LINUX) is has_code


def test_a_build_of_conda_forge_may_have_ptx_for_newer_cards():
    one = torch("2.5.1+cu126", by_conda="https://conda.anaconda.org/conda-forge/linux-64")
    assert covers(one, nvidia(12, 0), LINUX) is None
    ptls = torch("2.5.1+cu121", by_conda="https://conda.anaconda.org/pytorch/linux-64")
    assert covers(ptls, nvidia(12, 0), LINUX) is False


def test_on_arm_only_the_own_table_is_sure():
    arm = LINUX._replace(machine="aarch64")
    assert covers(torch("2.13.0+cu130"), nvidia(12, 0), arm) is True
    assert covers(torch("2.9.1+cu130"), nvidia(12, 0), arm) is None
    offered = [one.version for one in choices(nvidia(12, 0), arm, "2.9.1+cpu", 12)]
    assert offered == ["2.13.0+cu130"]


@pytest.mark.parametrize("system", [LINUX, WINDOWS])
@pytest.mark.parametrize("minor", [8, 9, 10, 11, 12, 13, 14, 15, None])
def test_every_offer_has_code_a_driver_and_the_python(system, minor):
    for capability in ((3, 7), (5, 0), (6, 1), (7, 0), (7, 5), (8, 6), (8, 9), (9, 0), (12, 0)):
        for installed in ("1.13.1+cu117", "2.0.1+cpu", "2.5.1+cu121", "2.15.0+cu130", ""):
            for choice in choices(nvidia(*capability), system, installed, minor):
                python = None if minor is None else (3, minor)
                assert torch_releases().suits(choice.version, python, system.system)
                assert covers(torch(choice.version), nvidia(*capability), system) is True
                label = choice.version.partition("+")[2]
                assert all(its.endswith(label) for its in (choice.vision, choice.audio) if its)


def test_the_same_pytorch_comes_first_then_its_neighbours():
    card = nvidia(6, 1)
    first = next(choices(card, LINUX, "2.9.1+cu130", 12))
    assert (first.version, first.vision) == ("2.9.1+cu126", "0.24.1+cu126")
    assert next(choices(card, LINUX, "2.15.0+cu130", 12)).version == "2.14.1+cu126"
    assert next(choices(nvidia(12, 0), LINUX, "2.1.2+cu121", 11)).version == "2.7.1+cu128"
    assert next(choices(nvidia(12, 0), LINUX, "2.1.2+cu121", 8), None) is None


def test_an_old_driver_gets_a_build_that_it_runs():
    old = LINUX._replace(driver="550.54")
    assert next(choices(nvidia(8, 6), old, "2.9.1+cpu", 12)).tag == "cu128"
    assert next(choices(nvidia(8, 6), old._replace(driver="470.1"), "2.9.1+cpu", 12)).tag == "cu118"


def test_releases_are_in_their_order_and_known_to_the_other_table():
    releases, table = torch_releases(), load_table()
    assert table.torch_version in releases.releases
    assert all(releases.suits(version, None, "Linux") for version in releases.releases)
    assert any(serves(row.arch_list, (12, 0)) for row in table.published)


def amd(chip, *, is_integrated=False):
    card = MakerCard("Radeon", "AMD", chip, is_integrated)
    return PcCard("Radeon", card.label, "AMD", other=card)


@pytest.mark.parametrize(
    ("one", "chip", "has_code"),
    [
        (torch("2.8.0+rocm6.4"), "gfx1100", True), (torch("2.8.0+rocm6.4"), "gfx1032", False),
        (torch("2.8.0+rocm6.4"), "gfx1151", False), (torch("2.7.1+rocm6.3"), "gfx1201", None),
        (torch("2.7.1+rocm6.3", chips=("gfx1030",)), "gfx1100", False),
        (torch("2.7.1+rocm6.3", chips=("gfx1030",)), "gfx1030", True),
        (torch("2.13.0+rocm10.0.0", devices={"gfx1032": "2.13.0+rocm10.0.0"}), "gfx1032", True),
        (torch("2.13.0+rocm10.0.0", devices={"gfx1032": "0.0.1.dev0"}), "gfx1032", False),
        (torch("2.13.0+rocm10.0.0", devices={"gfx110x": "2.13.0+rocm10.0.0"}), "gfx1101", True),
        (torch("2.13.0+rocm10.0.0"), "gfx1032", None), (torch("2.9.1+cu130"), "gfx1100", False),
    ],
)  # fmt: skip
def test_an_amd_card_is_covered_by_names_before_the_table(one, chip, has_code):
    assert covers(one, amd(chip), LINUX) is has_code


def test_windows_has_amds_own_builds_only():
    offered = [one.index_url for one in choices(amd("gfx1100"), WINDOWS, "2.8.0+cpu", 12)]
    assert offered == ["https://stable.repo.amd.com/rocm/whl-next"]


def test_the_cards_of_this_pc_are_read_from_the_inventory():
    pc = this_pc(gt_1030())
    assert [card.label for card in pc.cards] == ["GT 1030 (6.1)"]
