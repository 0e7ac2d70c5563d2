"""The line to copy, in the three shells that it may be pasted into."""

import shlex

import msgspec
import pytest

from gpu_studio.core.maker_builds import MakerCard
from gpu_studio.core.pythons.coverage import (
    Choice,
    PcCard,
    ThisPc,
    choices,
    covers,
    torch_releases,
)
from gpu_studio.core.pythons.environment import Environment, PythonKind
from gpu_studio.core.pythons.mend import line_for
from gpu_studio.core.pythons.torch_files import TorchFiles
from gpu_studio.core.wheel_table import load_table

CHOICE = Choice("2.7.1+cu126", "cu126", "https://download.pytorch.org/whl/cu126",
                vision="0.22.1+cu126", audio="2.7.1+cu126")  # fmt: skip
REST = "torch==2.7.1+cu126 --index-url https://download.pytorch.org/whl/cu126"


def environment(python, kind=PythonKind.VENV, **fields):
    torch = TorchFiles(version="2.5.1+cpu", kind="cpu", tag="cpu", records=("2.5.1+cpu",))
    one = Environment(kind=kind, folder="f", site="s", python=python, minor=11, torch=torch)
    return msgspec.structs.replace(one, **fields)


def windows(python, **fields):
    line = line_for(environment(python, **fields), CHOICE, "Windows")
    return line.text, line.cmd


@pytest.mark.parametrize(
    ("python", "power"),
    [
        (r"C:\Users\Ann Lee\venv\Scripts\python.exe", None),
        (r"C:\O'Neil (new)\venv\Scripts\python.exe", r"C:\O''Neil (new)\venv\Scripts\python.exe"),
        (r"C:\Jos’s $x `n;&|\v\python.exe", r"C:\Jos’’s $x `n;&|\v\python.exe"),
        (r"C:\Müller\venv\Scripts\python.exe", None),
    ],
)
def test_powershell_gets_its_call_sign_and_cmd_double_quotes(python, power):
    text, cmd = windows(python)
    assert text == f"& '{power or python}' -m pip install {REST}"
    assert cmd == f'"{python}" -m pip install {REST}'


def test_cmd_gets_no_line_where_it_would_replace_a_variable():
    text, cmd = windows(r"C:\100%sure%\venv\Scripts\python.exe")
    assert text.startswith("& 'C:\\100%sure%")
    assert cmd == ""


@pytest.mark.parametrize("folder", ["/home/a b", "/home/it's", "/home/$(reboot)", "/home/`id`"])
def test_sh_reads_exactly_the_words(folder):
    line = line_for(environment(f"{folder}/venv/bin/python"), CHOICE, "Linux")
    assert shlex.split(line.text)[0] == f"{folder}/venv/bin/python"
    assert shlex.split(line.text)[1:] == ["-m", "pip", "install", *REST.split()]


def test_a_python_that_is_no_environment_keeps_away_from_the_users_packages():
    python = r"D:\ComfyUI\python_embeded\python.exe"
    text, _ = windows(python, kind=PythonKind.EMBEDDED)
    assert text == rf"{python} -s -m pip install {REST}"


def test_a_python_that_its_system_manages_needs_to_be_told():
    one = environment("/usr/bin/python3.11", kind=PythonKind.USER, is_managed=True)
    line = line_for(one, CHOICE, "Linux")
    assert line.text.split()[:6] == [
        "/usr/bin/python3.11", "-m", "pip", "install", "--user", "--break-system-packages",
    ]  # fmt: skip
    assert "left alone" in line.note


def test_without_pip_uv_does_it():
    line = line_for(environment("/p/.venv/bin/python", has_pip=False), CHOICE, "Linux")
    assert line.text == f"uv pip install --python /p/.venv/bin/python {REST}"
    text, cmd = windows(r"C:\a b\python.exe", has_pip=False)
    assert text == rf"uv pip install --python 'C:\a b\python.exe' {REST}"
    assert cmd == rf'uv pip install --python "C:\a b\python.exe" {REST}'


def test_a_record_that_pip_cannot_read_goes_first():
    one = environment("/v/bin/python", site="/v/lib")
    torch = msgspec.structs.replace(one.torch, unreadable=("torch-2.5.1.dist-info",))
    one = msgspec.structs.replace(one, torch=torch)
    line = line_for(one, CHOICE, "Linux")
    assert line.text == f"rm -r /v/lib/torch-2.5.1.dist-info && /v/bin/python -m pip install {REST}"
    assert "--ignore-installed --no-deps" in line_for(one, CHOICE, "Windows").text


@pytest.mark.parametrize(
    ("python", "fields", "word"),
    [("/v/bin/python", {"lost": "/media/gone"}, "drive"), ("", {}, "no Python"),
     ("/v/bin/python", {"kind": PythonKind.SYSTEM}, "Linux"),
     ("/a\u202eb/bin/python", {}, "cannot be typed"), ("/a\nb/bin/python", {}, "cannot be typed")],
)  # fmt: skip
def test_what_nothing_can_be_installed_for_gets_a_reason(python, fields, word):
    line = line_for(environment(python, **fields), CHOICE, "Linux")
    assert line.text == ""
    assert word in line.why_none


def test_conda_is_told_honestly():
    one = environment("/c/envs/a/bin/python", kind=PythonKind.CONDA)
    torch = msgspec.structs.replace(one.torch, by_conda="conda-forge")
    line = line_for(msgspec.structs.replace(one, torch=torch), CHOICE, "Linux")
    assert "conda" in line.note
    assert "-s -m pip" in line.text


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


def test_on_arm_only_the_own_table_is_sure():
    arm = LINUX._replace(machine="aarch64")
    assert covers(torch("2.13.0+cu130"), nvidia(12, 0), arm) is True
    assert covers(torch("2.9.1+cu130"), nvidia(12, 0), arm) is None
    offered = [one.version for one in choices(nvidia(12, 0), arm, "2.9.1+cpu", 12)]
    assert offered == ["2.13.0+cu130"]


def test_the_same_pytorch_comes_first_then_its_neighbours():
    card = nvidia(6, 1)
    first = next(choices(card, LINUX, "2.9.1+cu130", 12))
    assert (first.version, first.vision) == ("2.9.1+cu126", "0.24.1+cu126")
    assert next(choices(card, LINUX, "2.15.0+cu130", 12)).version == "2.14.1+cu126"
    assert next(choices(nvidia(12, 0), LINUX, "2.1.2+cu121", 11)).version == "2.7.1+cu128"
    assert next(choices(nvidia(12, 0), LINUX, "2.1.2+cu121", 8), None) is None


def test_releases_are_known_to_the_other_table():
    assert load_table().torch_version in torch_releases().releases


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
