import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gpu_studio.builds.install import check_build
from tests.soft.conftest import MakePc
from tests.softcards import build
from tests.softcards.cards import Card
from tests.softcards.catalogue import GT_1030, RTX_3060
from tests.softcards.run import card_of

ROOT = Path(__file__).resolve().parents[2]


def torch_libraries() -> list[Path]:
    spec = build.importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    return sorted((Path(spec.origin).parent / "lib").glob("*.so"))


def names(option: str, paths: list[Path], pattern: str) -> set[str]:
    listed = subprocess.run(
        ["nm", "-D", option, *map(str, paths)], capture_output=True, text=True, check=True
    )
    return set(re.findall(rf"\b({pattern})(?:@\S*)?$", listed.stdout, re.MULTILINE))


@pytest.fixture
def built() -> build.Built:
    cuda = build.torch_cuda()
    assert cuda is not None
    return build.build(int(cuda.split(".")[0]))


@pytest.mark.parametrize(
    ("library", "pattern"), [("runtime", r"(?:__)?cuda[A-Z]\w*"), ("libcuda.so.1", r"cu[A-Z]\w*")]
)
def test_every_name_that_pytorch_needs_is_defined(
    library: str, pattern: str, built: build.Built
) -> None:
    defined = names(
        "--defined-only",
        [built.preload[0] if library == "runtime" else built.folder / library],
        pattern,
    )
    needed = names("--undefined-only", torch_libraries(), pattern)
    # libcufile brings its own.
    assert {name for name in needed if not name.startswith("cuFile")} - defined == set()
    assert len(needed) > 15


def test_a_card_is_read_from_the_command_line() -> None:
    card = card_of("NVIDIA GeForce GT 1030:6.1:1996:3:0.5")
    assert (card.name, card.capability, card.mib) == ("NVIDIA GeForce GT 1030", 61, 1996)
    assert (card.sms, card.kernel_ms) == (3, 0.5)
    with pytest.raises(argparse.ArgumentTypeError):
        card_of("NVIDIA GeForce GT 1030:6.1")


def test_the_runner_starts_a_program_with_the_cards() -> None:
    code = "import torch; print(*map(torch.cuda.get_device_name, (0, 1))); raise SystemExit(3)"
    command = ["--card", "First:8.6:4096:10", "--card", "Second:8.6:8192:20", "--"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.softcards.run", *command, sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout.strip() == "Second First", done.stderr
    assert done.returncode == 3


# PyTorch's code is for the cards from this capability on: CUDA 13 has none for older ones.
OLDEST = {"12": (5, 0), "13": (7, 5)}


@pytest.mark.parametrize("card", [GT_1030, RTX_3060], ids=lambda card: card.name)
def test_a_kernel_decides(
    soft_pc: MakePc, card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in soft_pc(card).env.items():
        monkeypatch.setenv(name, value)
    packages = Path(torch.__file__).parents[1]
    checked = check_build("cuda", packages, tmp_path / "log")
    major, minor = map(int, card.compute_capability.split("."))
    runs = (major, minor) >= OLDEST[str(torch.version.cuda).partition(".")[0]]
    assert checked.runs_on_card is runs
    assert checked.torch_version == torch.__version__
    assert (card.name if runs else "no kernel image") in checked.sentence
