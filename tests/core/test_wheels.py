import json
from pathlib import Path

import pytest

from gpu_studio.core import resources, wheel_table
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.maker_builds import BuildVerdict, MakerCard, judge, serves
from gpu_studio.core.resources import MissingResourceError, resource_path
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import CudaCard, advice_for, choice_of_tag, choose_wheel

GT710 = CudaCard("NVIDIA GeForce GT 710", (3, 5))
GTX750TI = CudaCard("NVIDIA GeForce GTX 750 Ti", (5, 0))
GT1030 = CudaCard("NVIDIA GeForce GT 1030", (6, 1))
TITANV = CudaCard("NVIDIA TITAN V", (7, 0))
GTX1660 = CudaCard("NVIDIA GeForce GTX 1660", (7, 5))
RTX3060 = CudaCard("NVIDIA GeForce RTX 3060", (8, 6))
RTX4090 = CudaCard("NVIDIA GeForce RTX 4090", (8, 9))
H200 = CudaCard("NVIDIA H200", (9, 0))
RTX5090 = CudaCard("NVIDIA GeForce RTX 5090", (12, 0))
SPARK = CudaCard("NVIDIA GB10", (12, 1))


@pytest.mark.parametrize(
    ("card", "driver_version", "linux", "windows"),
    [
        (GT710, "470.256.02", "cpu", "cpu"),
        (GTX750TI, "525.60.11", "cpu", "cpu"),
        (GTX750TI, "525.60.13", "cu126", "cpu"),
        (GT1030, "528.24", "cu126", "cpu"),
        (GT1030, "570.86.16", "cu126", "cu126"),
        (TITANV, "580.95.05", "cu126", "cu126"),
        (GTX1660, "524.99", "cpu", "cpu"),
        (GTX1660, "579.99", "cu126", "cu126"),
        (GTX1660, "580", "cu130", "cu130"),
        (RTX4090, "570.86.16", "cu126", "cu126"),
        (H200, "550.54.15", "cu126", "cu126"),
        (RTX5090, "570.86.16", "cpu", "cpu"),
        (RTX5090, "580.65.06", "cu130", "cu130"),
    ],
)
def test_one_card(card: CudaCard, driver_version: str, linux: str, windows: str) -> None:
    for system, machine, tag in (("Linux", "x86_64", linux), ("Windows", "AMD64", windows)):
        choice = choose_wheel([card], driver_version, system=system, machine=machine)
        assert (system, choice.tag) == (system, tag)
        assert choice.requirement == f"torch==2.13.0+{tag}"
        assert choice.index_url == f"https://download.pytorch.org/whl/{tag}"
        assert choice.sentence.endswith(".")


def test_no_card_takes_the_cpu_build() -> None:
    choice = choose_wheel([], None, system="Linux", machine="x86_64")
    assert (choice.tag, choice.requirement) == ("cpu", "torch==2.13.0+cpu")
    assert choice.sentence == (
        "No graphics card that PyTorch can use was found, so its CPU build is used."
    )


def test_wheels_for_another_pc_are_named_for_it() -> None:
    choice = choice_of_tag("cu126", system="Windows")
    windows = choice.download_command((3, 11), "windows-x86_64")
    assert windows == (
        "python -m pip download --dest wheels --only-binary :all: --python-version 3.11 "
        "--platform win_amd64 --index-url https://download.pytorch.org/whl/cu126 "
        "--extra-index-url https://pypi.org/simple torch==2.13.0+cu126"
    )
    linux = choice.download_command((3, 12), "linux-aarch64")
    assert "--platform manylinux_2_28_aarch64 --platform" in linux
    assert "--python-version 3.12" in linux


def test_macos_takes_the_plain_build_from_the_usual_index() -> None:
    choice = choose_wheel([], None, system="Darwin", machine="arm64")
    assert (choice.requirement, choice.index_url) == ("torch==2.13.0", None)
    assert choice.pip_command == "python -m pip install torch==2.13.0"


@pytest.mark.parametrize(
    ("cards", "driver_version", "tag", "words"),
    [
        ([GT1030, RTX4090], "580.65.06", "cu126", "GT 1030 (6.1), GeForce RTX 4090 (8.9)"),
        (
            [GT1030, RTX5090],
            "580.65.06",
            "cu130",
            "GeForce GT 1030 (6.1) is not supported: only the cu126 build has code for it.",
        ),
        (
            [RTX4090, RTX5090],
            "570.86.16",
            "cu126",
            "GeForce RTX 5090 (12.0) needs driver 580 or newer.",
        ),
        ([GT710, GT1030], "470.256.02", "cpu", "GeForce GT 1030 (6.1) needs driver 525.60.13"),
    ],
)
def test_mixed_cards(cards: list[CudaCard], driver_version: str, tag: str, words: str) -> None:
    for order in (cards, cards[::-1]):
        choice = choose_wheel(order, driver_version, system="Linux", machine="x86_64")
        assert choice.tag == tag
        if order is cards:
            assert words in choice.sentence


@pytest.mark.parametrize(
    ("cards", "driver_version", "sentence"),
    [
        (
            [GT710],
            "470.256.02",
            "GeForce GT 710 (3.5) is older than 5.0, the oldest with code in PyTorch 2.13.0, "
            "so the CPU build is used.",
        ),
        (
            [RTX5090],
            "570.86.16",
            "GeForce RTX 5090 (12.0) needs driver 580 or newer, but this driver is 570.86.16, "
            "so the CPU build is used until you update the driver.",
        ),
        (
            [CudaCard("NVIDIA Next", (13, 0))],
            "700.1",
            "PyTorch 2.13.0 has no code for Next (13.0), so the CPU build is used.",
        ),
        (
            [GT1030],
            None,
            "The driver of GeForce GT 1030 (6.1) does not answer, so the CPU build is used.",
        ),
    ],
)
def test_the_cpu_build_is_explained(
    cards: list[CudaCard], driver_version: str | None, sentence: str
) -> None:
    choice = choose_wheel(cards, driver_version, system="Linux", machine="x86_64")
    assert (choice.tag, choice.sentence) == ("cpu", sentence)


def test_arm_has_its_own_architectures() -> None:
    assert choose_wheel([SPARK], "580.95", system="Linux", machine="aarch64").tag == "cu130"
    assert choose_wheel([GTX1660], "580.95", system="Linux", machine="aarch64").tag == "cpu"
    choice = choose_wheel([RTX3060], "580.95", system="Windows", machine="ARM64")
    assert choice.tag == "cpu"
    assert "no CUDA build for this platform (windows-aarch64)" in choice.sentence


def test_an_installed_build_stays_only_where_it_serves_as_well() -> None:
    def tag(card: CudaCard, installed_tag: str) -> str:
        return choose_wheel(
            [card], "580.65.06", system="Linux", machine="x86_64", installed_tag=installed_tag
        ).tag

    assert tag(RTX4090, "cu126") == "cu126"
    assert tag(RTX5090, "cu126") == "cu130"
    assert tag(GT1030, "cu130") == "cu126"
    assert tag(RTX4090, "cpu") == "cu130"


def test_a_build_asked_for_by_name() -> None:
    assert choice_of_tag("cu126", system="Windows").requirement == "torch==2.13.0+cu126"
    assert choice_of_tag("cpu", system="Darwin").requirement == "torch==2.13.0"
    with pytest.raises(KeyError):
        choice_of_tag("cu999", system="Linux")


@pytest.mark.parametrize(
    ("arch_list", "capability", "expected"),
    [
        (["sm_60"], (6, 1), True),
        (["sm_61"], (6, 0), False),
        (["sm_86"], (8, 9), True),
        (["sm_120"], (12, 1), True),
        (["sm_12"], (12, 0), False),
        (["sm_87"], (8, 7), True),
        (["sm_90a"], (9, 0), True),
        (["sm_100a"], (10, 3), False),
        (["sm_100f"], (10, 3), True),
        (["compute_90"], (12, 0), True),
        (["compute_90"], (8, 9), False),
        (["gfx1030", "", "sm_", "sm_x0"], (6, 1), False),
        ([], (6, 1), False),
    ],
)
def test_serves(arch_list: list[str], capability: tuple[int, int], expected: bool) -> None:
    assert serves(arch_list, capability) is expected


def test_the_table_names_the_source_of_each_column() -> None:
    content = json.loads(resource_path("wheels.json").read_text(encoding="utf-8"))
    columns = {column for row in content["builds"] for column in row} - {"tag"}
    assert columns | {"python", "published", "other_makers", "torch_sha256"} == set(
        content["sources"]
    )


def test_a_missing_or_broken_resource_is_one_kind_of_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MissingResourceError, match=r"resources/no/such\.json is missing"):
        resource_path("no/such.json")
    monkeypatch.setattr(resources, "_PACKAGE_DIR", tmp_path / "gpu_studio")
    load_table.cache_clear()
    with pytest.raises(MissingResourceError):
        load_table()
    (tmp_path / "resources").mkdir()
    for text in ("{", "[]", '{"torch_version": "2.13.0", "builds": [{"tag": "cpu"}]}'):
        (tmp_path / "resources" / "wheels.json").write_text(text, encoding="utf-8")
        with pytest.raises(MissingResourceError, match="cannot be read"):
            wheel_table.load_table()


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
def test_amds_chips(chip, on_linux, on_windows):
    card = MakerCard("Radeon", "AMD", chip)
    for key, verdict in ((LINUX, on_linux), (WINDOWS, on_windows)):
        found = judged(card, key)
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


@pytest.mark.parametrize(
    ("cards", "others", "tag", "offered"),
    [
        ((), (RX_6600,), "rocm-gfx1032", ("rocm-gfx1032",)),
        ((), (RX_580,), "cpu", ()),
        ((), (B580,), "xpu", ("xpu",)),
        ((), (DECK,), "cpu", ("rocm-gfx1033",)),
        ((), (RAPHAEL, RX_6600), "rocm-gfx1032", ("rocm-gfx1032", "rocm-gfx1036")),
        ((), (RAPHAEL, B580), "xpu", ("xpu", "rocm-gfx1036")),
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


@pytest.mark.parametrize(
    ("capability", "advice"),
    [
        ((6, 1), "Install the cu126 build: the Devices tab has the command."),
        ((12, 0), "Install the cu130 build: the Devices tab has the command."),
        ((3, 7), "The last PyTorch with code for it is 2."),
        ((2, 0), "No PyTorch since 2.0 has code for it: use the CPU."),
    ],
)
def test_a_card_without_code_gets_the_build_that_has_it(capability: tuple[int, int], advice: str):
    assert advice_for(capability, system="Linux", machine="x86_64").startswith(advice)
