from pathlib import Path

import pytest

from tests.driving.whole_program import READY, close_after
from tests.soft.conftest import MakePc
from tests.softcards.catalogue import GTX_1650

_EXPERIMENT = """
events = []
studio.lab.request_submitted.connect(lambda reply: reply.event_received.connect(events.append))
open_tab(window, "Memory")
budget = find(window, "memory.oom.budget", QSlider)
wait(budget.isEnabled)
budget.setValue(budget.maximum() - 1)  # within it nobody is asked
click(window, "memory.oom.run")
wait(lambda: [e for e in events if isinstance(e, MemoryRead) and e.mark == "allocated"])
print("ended", any(isinstance(event, OomFinished) for event in events))
"""


@pytest.mark.parametrize("is_hanging", [False, True], ids=("filling", "hanging"))
def test_closing_in_a_cards_experiment_leaves_nothing(
    soft_pc: MakePc, tmp_path: Path, is_hanging: bool
) -> None:
    pc = soft_pc(GTX_1650)
    if is_hanging:
        pc.fault("cudaMalloc", 2, after=3, hang=True)
    output = close_after(READY + _EXPERIMENT, tmp_path, pc.env)
    assert output["ended"] == "False"
    assert int(output["family"]) >= 3  # engine, sensor reader, the lab's engine
    assert "gpu-studio-" in output["folders"]
    assert list((tmp_path / "temporary").iterdir()) == []
    assert any(use.cards[0].allocations for use in pc.processes()), "no card was used"
