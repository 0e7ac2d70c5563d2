import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soft.conftest import MakePc
from tests.softcards.cards import Card
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

# Holds times against each other, as on a real card.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.timeout(1300)
@pytest.mark.parametrize(
    "cards",
    [
        pytest.param((GTX_1650, RTX_3060), id="two", marks=pytest.mark.cuda13),
        pytest.param((GT_1030,), id="old", marks=pytest.mark.cuda12),
    ],
)
def test_the_suite_for_real_cards_passes_on_soft_ones(
    soft_pc: MakePc, cards: tuple[Card, ...]
) -> None:
    pc = soft_pc(*cards)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/gpu", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT, env=pc.env, capture_output=True, encoding="utf-8", timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    reasons = set(re.findall(r"^SKIPPED .*?: (\D+)$", done.stdout, re.MULTILINE))
    assert reasons == {"kernels of soft cards compute nothing"}
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 25 * len(cards)
