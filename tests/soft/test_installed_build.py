from pathlib import Path

import pytest
import torch

from gpu_studio.builds.install import check_build
from tests.soft.conftest import MakePc
from tests.softcards.cards import Card
from tests.softcards.catalogue import GT_1030, RTX_3060

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
