"""The build for AMD's and Intel's chips, for each system and Python, and beside NVIDIA's cards."""

from __future__ import annotations

import pytest

from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.maker_builds import BuildVerdict, MakerCard, judge
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import CudaCard, choose_wheel

LINUX, WINDOWS = "linux-x86_64", "windows-x86_64"
RX_6600 = MakerCard("Radeon RX 6600", "AMD", "gfx1032")
RX_580 = MakerCard("Radeon RX 580", "AMD", "gfx803")
RAPHAEL = MakerCard("Radeon graphics", "AMD", "gfx1036", is_integrated=True)
DECK = MakerCard("Steam Deck", "AMD", "gfx1033", is_integrated=True)
STRIX = MakerCard("Radeon 8060S", "AMD", "gfx1151", is_integrated=True)
B580 = MakerCard("Arc B580", "Intel", "bmg")
IRIS_XE = MakerCard("Iris Xe Graphics", "Intel", "tgl", is_integrated=True)
UNKNOWN = MakerCard("AMD graphics (1002:fffe)", "AMD", "")
RTX_3060 = CudaCard("NVIDIA GeForce RTX 3060", (8, 6))
GT_710 = CudaCard("NVIDIA GeForce GT 710", (3, 5))
V = BuildVerdict


def judged(card, key=LINUX, kernel="6.17.0", python=(3, 12)):
    return judge(card, load_table(), key, kernel, python)


def chosen(cards=(), others=(), system="Linux", kernel="6.17.0", machine="x86_64"):
    driver = "580.65.06" if cards else None
    return choose_wheel(
        cards, driver, others=others, system=system, machine=machine, kernel=kernel, python=(3, 12)
    )


@pytest.mark.parametrize("python", [(3, 10), (3, 12), (3, 14)])
@pytest.mark.parametrize(
    ("chip", "on_linux", "on_windows"),
    [*[(f"gfx{number}", V.BUILD, V.BUILD) for number in (
        1010, 1011, 1012, 1030, 1031, 1032, 1034, 1035, 1036, 1100, 1101, 1102, 1103, 1150, 1151,
        1152, 1153, 1200, 1201)],
     *[(chip, V.BUILD, V.OTHER_SYSTEM) for chip in ("gfx908", "gfx90a", "gfx942", "gfx950")],
     ("gfx1033", V.WRONG_RESULTS, V.WRONG_RESULTS),
     *[(chip, V.NO_BUILD, V.NO_BUILD) for chip in (
         "gfx600", "gfx803", "gfx900", "gfx902", "gfx906", "gfx90c", "gfx1013")],
     ("", V.UNKNOWN_CHIP, V.UNKNOWN_CHIP)],
)  # fmt: skip
def test_amds_chips(chip, on_linux, on_windows, python):
    card = MakerCard("Radeon", "AMD", chip)
    for key, verdict in ((LINUX, on_linux), (WINDOWS, on_windows)):
        found = judged(card, key, python=python)
        assert found.verdict is verdict
        has_build = verdict in (V.BUILD, V.WRONG_RESULTS)
        assert found.tag == (f"rocm-{chip}" if has_build else "")


@pytest.mark.parametrize(
    ("chip", "on_linux", "on_windows"),
    [*[(chip, V.BUILD, V.BUILD) for chip in ("dg2", "bmg", "mtl", "arl", "lnl", "ptl")],
     ("pvc", V.BUILD, V.OTHER_SYSTEM),
     *[(chip, V.NO_BUILD, V.NO_BUILD) for chip in ("hsw", "skl", "cfl", "tgl", "adl", "rpl")]],
)  # fmt: skip
def test_intels_chips(chip, on_linux, on_windows):
    card = MakerCard("Arc", "Intel", chip)
    assert [judged(card, key).verdict for key in (LINUX, WINDOWS)] == [on_linux, on_windows]


@pytest.mark.parametrize("key", ["darwin-x86_64", "darwin-aarch64", "linux-aarch64",
                                 "windows-aarch64"])  # fmt: skip
def test_no_build_exists_for_a_mac_or_an_arm_processor(key):
    found = judged(RX_6600, key)
    assert found.verdict is V.OTHER_SYSTEM
    assert "only for Linux and Windows on x86-64" in found.sentence


def test_a_python_outside_the_range_has_no_build():
    assert judged(RX_6600, python=(3, 15)).verdict is V.OTHER_PYTHON
    assert judged(B580, python=(3, 9)).verdict is V.OTHER_PYTHON


def test_a_new_chip_needs_a_new_kernel_on_linux_alone():
    old = judged(STRIX, kernel="6.8.0-45-generic")
    assert old.verdict is V.OLD_KERNEL
    assert "needs Linux 6.14 for it, but this is Linux 6.8.0" in old.sentence
    old_pc = chosen(others=(STRIX,), kernel="6.8.0-45-generic")
    assert (old_pc.tag, old_pc.offered) == ("cpu", ("rocm-gfx1151",))  # for after an update
    assert judged(STRIX, kernel="6.14.0").verdict is V.BUILD
    assert judged(STRIX, kernel="").verdict is V.BUILD  # unknown
    assert judged(STRIX, WINDOWS, kernel="11").verdict is V.BUILD


def test_what_the_maker_has_not_tested_says_so():
    assert "AMD has not tested it" in judged(MakerCard("820M", "AMD", "gfx1153")).sentence
    assert "not tested" not in judged(RX_6600).sentence


@pytest.mark.parametrize(
    ("cards", "others", "tag", "offered"),
    [
        ((), (RX_6600,), "rocm-gfx1032", ("rocm-gfx1032",)),
        ((), (RX_580,), "cpu", ()),
        ((), (B580,), "xpu", ("xpu",)),
        ((), (UNKNOWN,), "cpu", ()),
        ((), (DECK,), "cpu", ("rocm-gfx1033",)),
        ((), (RAPHAEL, RX_6600), "rocm-gfx1032", ("rocm-gfx1032", "rocm-gfx1036")),
        ((), (IRIS_XE, B580), "xpu", ("xpu",)),
        ((), (RAPHAEL, B580), "xpu", ("xpu", "rocm-gfx1036")),
        ((RTX_3060,), (IRIS_XE,), "cu130", ("cu130",)),
        ((RTX_3060,), (RX_6600,), "cu130", ("cu130", "rocm-gfx1032")),
        ((GT_710,), (RX_6600,), "rocm-gfx1032", ("rocm-gfx1032",)),
    ],
)
def test_the_build_for_a_pc(cards, others, tag, offered):
    choice = chosen(cards, others)
    assert (choice.tag, choice.offered) == (tag, offered)
    for card in (*cards, *others):
        assert card.label in choice.sentence
    assert ("CPU build is used" in choice.sentence) == (tag == "cpu")


def test_the_requirement_names_amds_index_and_chip():
    choice = chosen(others=(RX_6600,))
    assert choice.requirement == "torch[device-gfx1032]==2.13.0+rocm10.0.0"
    assert choice.pip_command == (
        'python -m pip install "torch[device-gfx1032]==2.13.0+rocm10.0.0" --index-url '
        "https://stable.repo.amd.com/rocm/whl-next"
    )


def test_no_mac_gets_another_makers_build():
    assert chosen(others=(RX_6600,), system="Darwin").tag == "cpu"


def test_the_families_are_the_builds_of_the_table():
    assert set(FAMILIES) == {build.tag for build in load_table().builds}


def test_a_folder_is_filled_from_one_index_at_a_time():
    lines = chosen(others=(RX_6600,)).download_command((3, 12), LINUX).splitlines()
    own, pypi, source = lines
    assert "--no-deps" in own
    assert "--index-url https://stable.repo.amd.com/rocm/whl-next torch==2.13.0+rocm10.0.0" in own
    assert "amd-torch-device-gfx1032==2.13.0+rocm10.0.0" in own
    assert "triton==" in own
    assert "stable.repo" not in pypi
    assert "amd" not in pypi.replace("x86", "")
    assert source == "https://stable.repo.amd.com/rocm/whl-next/rocm/rocm-10.0.0.tar.gz"
    windows = chosen(others=(RX_6600,)).download_command((3, 12), WINDOWS).splitlines()[0]
    assert "triton==" not in windows
    intels = chosen(others=(B580,)).download_command((3, 12), LINUX)
    assert "--index-url https://download.pytorch.org/whl/xpu" in intels
