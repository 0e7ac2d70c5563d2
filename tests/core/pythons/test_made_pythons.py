"""Made-up Pythons: each is named right, and a line of each kind is typed and looked at again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from gpu_studio.core.maker_builds import MakerCard
from gpu_studio.core.pythons.coverage import PcCard, ThisPc
from gpu_studio.core.pythons.search import program_of
from gpu_studio.core.pythons.verdict import PythonVerdict, judged
from tests.core.pythons.made_pythons import (
    LINUX_SITE,
    VERSION,
    find_pythons,
    make_conda,
    make_embedded,
    make_venv,
    put_package,
    put_torch,
    torch_says,
)
from tests.core.pythons.torch_index import TorchIndex

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="made of this system's Python")

WRONG, RIGHT, UNSURE = PythonVerdict.WRONG, PythonVerdict.RIGHT, PythonVerdict.UNSURE


def nvidia(name, major, minor):
    return PcCard(name, f"{name} ({major}.{minor})", "NVIDIA", (major, minor))


def other(name, maker, chip, *, is_integrated=False):
    card = MakerCard(name, maker, chip, is_integrated)
    return PcCard(name, card.label, maker, other=card)


GTX_1060 = ThisPc((nvidia("GTX 1060", 6, 1),), "580.95")
RTX_3060 = ThisPc((nvidia("RTX 3060", 8, 6),), "580.95")
OLD_DRIVER = ThisPc((nvidia("RTX 3060", 8, 6),), "550.54")
TWO_CARDS = ThisPc((nvidia("RTX 5090", 12, 0), nvidia("GT 1030", 6, 1)), "580.95")
GT_710 = ThisPc((nvidia("GT 710", 3, 5),), "470.256")
RX_7900 = ThisPc((other("Radeon RX 7900 XTX", "AMD", "gfx1100"),))
RX_6600 = ThisPc((other("Radeon RX 6600", "AMD", "gfx1032"),))
STRIX = ThisPc((other("Radeon 8060S", "AMD", "gfx1151", is_integrated=True),), kernel="6.17")
B580 = ThisPc((other("Arc B580", "Intel", "bmg"),))
NO_CARD = ThisPc()


class Made(NamedTuple):
    """A made-up Python.

    Attributes:
        make: makes it in a folder.
        pc: the PC that it is on.
        verdict: the right one.
        program: the right name.
        wants: what the line has to install; none if there must be no line.
        why: a word of the reason.
    """

    make: object
    pc: ThisPc
    verdict: PythonVerdict
    program: str
    wants: tuple[str, ...] = ()
    why: str = ""


def venv(way, version, *, windows=False, has_pip=True, **its):
    """Return what makes an environment at a way with a PyTorch."""

    def make(tmp):
        put_torch(make_venv(tmp / way, windows=windows, has_pip=has_pip), version, **its)

    return make


def hidden(tmp):
    """Return a folder that is not looked into."""
    return tmp.with_name(f"{tmp.name}_hidden")


def comfy_portable(tmp):
    root = tmp / "D" / "ComfyUI_windows_portable"
    (root / "ComfyUI" / "comfy").mkdir(parents=True)
    (root / "ComfyUI" / "main.py").write_text("")
    site = make_embedded(root / "python_embeded", hidden(tmp))
    put_torch(site, "2.9.1+cu130", vision="0.24.1+cu130", audio="2.9.1+cu130")


def conda(tmp):
    record = put_torch(make_conda(tmp / "anaconda3/envs/ml", hidden(tmp)), "2.5.1")
    (record / "INSTALLER").write_text("conda\n")


def broken_metadata(tmp):
    record = put_torch(make_venv(tmp / "app" / "venv"), "2.5.1+cpu", vision="0.20.1+cpu")
    (record / "METADATA").write_bytes(b"\xff\xfe\0garbage")


def empty_record(tmp):
    record = put_torch(make_venv(tmp / "app" / "venv"), "2.5.1+cu124")
    for file in record.iterdir():
        file.unlink()


def two_torches(tmp):
    site = make_venv(tmp / "two" / ".venv")
    put_torch(site, "2.9.1+cu130")
    stale = site / "torch-2.9.1+cu126.dist-info"
    stale.mkdir()
    (stale / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cu126\n")
    (stale / "RECORD").write_text(f"{stale.name}/METADATA,,\n{stale.name}/RECORD,,\n")


def lost_drive(tmp):
    folder = tmp / "lost" / "venv"
    put_torch(make_venv(folder), "2.5.1+cpu")
    for name in ("bin/python", f"bin/python{VERSION}"):
        (folder / name).unlink()
        (folder / name).symlink_to("/media/gone/python3.11")


def incomplete(tmp):
    site = make_venv(tmp / "half" / "venv")
    put_torch(site, "2.7.1+cu126")
    (site / "torch" / "version.py").unlink()


def placeholder(tmp):
    site = make_venv(tmp / "comfy" / "venv")
    put_torch(site, "2.13.0+rocm10.0.0", vision="0.28.0+rocm10.0.0")
    put_package(site, "amd_torch_device_gfx1151", "0.0.1.dev0")


def from_sources(tmp):
    site = make_venv(tmp / "pytorch" / ".venv")
    (site / "torch-2.9.0a0+git1234.dist-info").mkdir()
    (site / "__editable__.torch-2.9.0a0.pth").write_text("/src/pytorch\n")


def ngc(tmp):
    site = make_venv(tmp / "ngc" / "venv")
    put_package(site, "torch", "2.6.0a0", torch_says("2.6.0a0+ecf3bae40a.nv25.01", cuda="12.8"))


def pipx(tmp):
    put_torch(make_venv(tmp / "pipx/venvs/whisper", has_pip=False), "2.5.1+cpu")
    site = tmp / "pipx/venvs/whisper" / LINUX_SITE
    shared = make_venv(hidden(tmp))
    (site / "pipx_shared.pth").write_text(f"{shared}\n")


PYTHONS = {
    "comfy_portable_pascal": Made(
        comfy_portable, GTX_1060, WRONG, "ComfyUI portable",
        ("torch==2.9.1+cu126", "torchvision==0.24.1+cu126", "torchaudio==2.9.1+cu126"), "6.1"),
    "comfy_portable_right": Made(comfy_portable, RTX_3060, RIGHT, "ComfyUI portable"),
    "comfy_portable_old_driver": Made(
        comfy_portable, OLD_DRIVER, WRONG, "ComfyUI portable",
        ("torch==2.9.1+cu128", "torchvision==0.24.1+cu128", "torchaudio==2.9.1+cu128"), "driver"),
    "cpu_wheel": Made(venv("whisper/.venv", "2.7.1+cpu", record="2.7.1", audio="2.7.1+cpu"),
                      RTX_3060, WRONG, "whisper", ("torch==2.7.1+cu128", "torchaudio==2.7.1+cu128"),
                      "processor"),
    "cpu_wheel_windows": Made(
        venv("whisper/venv", "2.5.1+cpu", record="2.5.1", windows=True), RTX_3060, WRONG, "whisper",
        ("torch==2.5.1+cu124",)),
    "cpu_wheel_without_card": Made(venv("whisper/.venv", "2.7.1+cpu"), NO_CARD, RIGHT, "whisper"),
    "kepler_cuda": Made(venv("whisper/.venv", "2.7.1+cu126"), GT_710, WRONG, "whisper"),
    "two_cards_wrong": Made(venv("sd/.venv", "2.7.1+cu126"), TWO_CARDS, WRONG, "sd",
                            ("torch==2.7.1+cu128",)),
    "conda_by_conda": Made(conda, RTX_3060, WRONG, "ml (conda)", ("torch==2.5.1+cu124",)),
    "uv_tool": Made(venv(".local/share/uv/tools/marker-pdf", "2.13.0+cu130", has_pip=False),
                    GTX_1060, WRONG, "marker-pdf (uv tool)", ("torch==2.13.0+cu126",)),
    "pipx": Made(pipx, RTX_3060, WRONG, "whisper (pipx)", ("torch==2.5.1+cu124",)),
    "broken_metadata": Made(broken_metadata, RTX_3060, WRONG, "app",
                            ("torch==2.5.1+cu124", "torchvision==0.20.1+cu124")),
    "empty_record_right": Made(empty_record, RTX_3060, RIGHT, "app"),
    "two_torches": Made(two_torches, GTX_1060, WRONG, "two", ("torch==2.9.1+cu126",)),
    "lost_drive": Made(lost_drive, RTX_3060, WRONG, "lost", (), "/media/gone"),
    "incomplete": Made(incomplete, RTX_3060, WRONG, "half", ("torch==2.7.1+cu126",), "missing"),
    "placeholder": Made(placeholder, STRIX, WRONG, "comfy",
                        ("amd-torch-device-gfx1151==2.13.0+rocm10.0.0",), "0.0.1.dev0"),
    "rocm_right": Made(venv("sd/venv", "2.8.0+rocm6.4", vision="0.23.0+rocm6.4"), RX_7900, RIGHT,
                       "sd"),
    "rocm_wrong_chip": Made(venv("sd/venv", "2.8.0+rocm6.4", vision="0.23.0+rocm6.4"), RX_6600,
                            WRONG, "sd", ("torch[device-gfx1032]==2.13.0+rocm10.0.0",
                                          "torchvision[device-gfx1032]==0.28.0+rocm10.0.0")),
    "cuda_on_amd": Made(venv("sd/venv", "2.7.1+cu126", vision="0.22.1+cu126"), RX_7900, WRONG, "sd",
                        ("torch==2.7.1+rocm6.3", "torchvision==0.22.1+rocm6.3"), "NVIDIA"),
    "xpu_right": Made(venv("sd/venv", "2.8.0+xpu"), B580, RIGHT, "sd"),
    "vision_of_another_cuda": Made(
        venv("sd/venv", "2.7.1+cu126", vision="0.22.1+cu118", audio="2.7.1+cu118"), RTX_3060, WRONG,
        "sd", ("torchvision==0.22.1+cu126", "torchaudio==2.7.1+cu126"), "cu118"),
    "vision_unlabeled": Made(venv("sd/venv", "2.7.1+cu126", vision="0.22.1"), RTX_3060, RIGHT,
                             "sd"),
    "from_sources": Made(from_sources, RTX_3060, UNSURE, "pytorch"),
    "ngc": Made(ngc, RTX_3060, UNSURE, "ngc"),
}  # fmt: skip
# Whose line is really typed: one of each kind.
TYPED = frozenset({
    "comfy_portable_pascal", "cpu_wheel_windows", "conda_by_conda", "uv_tool", "broken_metadata",
    "two_torches", "incomplete", "placeholder", "rocm_wrong_chip", "vision_of_another_cuda",
})  # fmt: skip


@pytest.fixture(scope="session")
def index(tmp_path_factory):
    with TorchIndex(tmp_path_factory.mktemp("index")) as index:
        yield index


@pytest.fixture
def typed(tmp_path_factory, index):
    """Return what types a line into this system's shell; uv is a stand-in that asks pip."""
    tools = tmp_path_factory.mktemp("tools")
    uv = tools / "uv"
    uv.write_text(
        f'#!/bin/sh\nshift 2; shift; python="$1"; shift\n'
        f'exec "{sys.executable}" -m pip --python "$python" install "$@"\n'
    )
    uv.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    clean |= {
        "PATH": f"{tools}:{os.environ['PATH']}", "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "HOME": str(tools),
    }  # fmt: skip
    clean.pop("PYTHONPATH", None)

    def typed(line):
        return subprocess.run(
            ["sh", "-c", index.here(line)], capture_output=True, encoding="utf-8", env=clean,
            check=False, timeout=120, cwd=tools,
        )  # fmt: skip

    return typed


def looked_at(folder, pc):
    found = find_pythons(str(folder))
    (one,) = judged(found.environments, pc)
    return one


@pytest.mark.parametrize(
    ("folder", "name"),
    [("/home/a/.pyenv/versions/3.11.7", "3.11.7 (pyenv)"),
     ("/home/a/.cache/pypoetry/virtualenvs/app-Xy12-py3.11", "app-Xy12-py3.11 (Poetry)"),
     ("/home/a/.local/share/uv/python/cpython-3.11.7", "cpython-3.11.7 (uv Python)"),
     ("/home/a/StabilityMatrix/Data/Packages/reForge/venv", "reForge (Stability Matrix)"),
     ("/home/a/pinokio/api/facefusion.git/app/env", "facefusion (Pinokio)"),
     (r"C:\Users\a\AppData\Local\Programs\Python\Python311", "This PC's Python"),
     ("/usr", "This PC's Python"), ("/home/a/proj/.venv", "proj")],
)  # fmt: skip
def test_a_python_is_called_as_its_tool_or_its_launcher(folder, name):
    assert program_of(folder, "/home/a", "/opt/gpu-studio") == name


@pytest.mark.parametrize("name", PYTHONS)
def test_is_named_right_and_its_line_mends_it(name, tmp_path, index, typed):
    case = PYTHONS[name]
    case.make(tmp_path)
    one = looked_at(tmp_path, case.pc)
    assert (one.verdict, one.environment.program) == (case.verdict, case.program), one
    assert case.why in one.reason
    asked = [word.strip("'\"") for word in one.line.text.split() if "==" in word]
    assert set(case.wants) <= set(asked)
    assert bool(asked) is bool(case.wants)
    assert bool(one.line.text or one.line.why_none) is (case.verdict is WRONG)
    assert all(map(index.has, case.wants))
    if name in TYPED:
        done = typed(one.line.text)
        assert done.returncode == 0, f"{one.line.text}\n{done.stdout}\n{done.stderr}"
        again = looked_at(tmp_path, case.pc)
        assert again.verdict is RIGHT, again
        assert not again.line.text
        numpy = [*Path(one.environment.site).glob("numpy-*.dist-info")]
        assert [path.name for path in numpy] in (["numpy-1.26.4.dist-info"], [])
