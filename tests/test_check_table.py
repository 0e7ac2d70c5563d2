import re
from pathlib import Path

import pytest

from gpu_studio.core.check.stages import PLANTED_FAULTS, UNSENSED_LOAD_S, stage_words
from gpu_studio.core.messages.check_messages import STAGE_NAMES, StageName

ROOT = Path(__file__).resolve().parent.parent
_TEXT = (ROOT / "docs/check.md").read_text(encoding="utf-8")
_PART = _TEXT[_TEXT.index("## The stages of a check") :].split("\n## ")[0]
ROWS = {
    cells[0].strip("`"): cells
    for cells in (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in _PART.splitlines()
        if line.startswith("| `")
    )
}


def test_there_is_a_row_for_each_stage_in_order() -> None:
    assert tuple(ROWS) == STAGE_NAMES


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_row_has_the_stages_share_and_its_planted_faults(name: StageName) -> None:
    _, share, catches, misses, plants = ROWS[name]
    assert share.startswith(f"{round(100 * stage_words(name, 'cuda:0').share)} %")
    assert catches
    assert misses
    found = [fault.kind for fault in PLANTED_FAULTS if name in fault.found_by]
    assert re.findall(r"`(\w+)`", plants) == found


def test_the_longest_load_is_reported() -> None:
    assert f"{UNSENSED_LOAD_S:.0f} s without a temperature" in ROWS["load"][1]
