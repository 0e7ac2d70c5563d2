from dataclasses import replace

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox

from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    MemoryRead,
    OomFinished,
    RunMemoryExperiment,
    SegmentsRead,
)
from gpu_studio.core.messages.message import Event
from gpu_studio.model.memory import now_model
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.tank import TankBar
from tests.soft.window.conftest import SitDownAt
from tests.soft.window.person import Person
from tests.softcards.cards import MIB
from tests.softcards.catalogue import GTX_1650, MODERN_1996_MIB, RTX_3060

pytestmark = pytest.mark.usefixtures("nobody_watches")

TENSOR = 256 * MIB  # 8192 × 8192 of float32
EXPANDABLE = "expandable_segments:True"


@pytest.fixture
def nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread an experiment over less time than for a person: enough for the sensors to see it."""
    monkeypatch.setattr(now_model, "WATCH_S", 0.8)


@pytest.fixture(autouse=True)
def fills_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QMessageBox, "exec", lambda box: QMessageBox.StandardButton.Yes)


def run_experiment(person: Person, button: str = "memory.oom.run") -> OomFinished:
    """Press Run and return how the experiment ended, once the window has said so."""
    before = len(person.events(OomFinished))
    person.click(button)
    person.until(lambda: len(person.events(OomFinished)) > before)
    finished = person.events(OomFinished)[-1]
    assert isinstance(finished, OomFinished)
    return finished


def tank(person: Person, name: str = "memory.tank") -> dict[str, int]:
    """Return the parts of a bar in MiB; they sum to the whole."""
    shown = person.find(TankBar, name).tank
    assert shown is not None
    assert sum(part.size_bytes for part in shown.parts) == shown.total_bytes
    return {part.key: part.size_bytes // MIB for part in shown.parts}


# As large as a GT 1030, which this PyTorch has no code for.
TWO_GIB = MODERN_1996_MIB


def _is_filling(event: Event) -> bool:
    return isinstance(event, MemoryRead) and event.mark == "allocated"


def test_fill_fail_free_and_empty_without_a_change_of_page(sit_down_at: SitDownAt) -> None:
    """The post's experiment on a card with 1.95 GiB: seven of 8192 × 8192 fit, the eighth fails."""
    pc, person = sit_down_at(TWO_GIB)
    person.open_tab("Memory")
    main = person.engine
    finished = run_experiment(person)
    assert (finished.outcome, finished.tensors) == ("card_full", 7)
    assert person.text("memory.oom.headline") == "The card is full."
    assert person.text("memory.oom.outcome").startswith(
        "Tensor 8 asked for 256 MiB when 1.75 GiB was allocated. 144 MiB of 1.95 GiB was free."
    )
    assert person.property_of("memory.oom.result", "tone") == "failure"
    assert tank(person, "memory.oom.tank")["tensors"] == 7 * 256
    assert person.engine == main, "the program's own engine was not touched"
    assert main.pid not in [use.pid for use in pc.processes()], "it has not even used CUDA"
    lab = _lab_pid(person)
    assert lab != main.pid
    person.until(lambda: max(person.curve("memory.plot", "allocated")[1], default=0) == 7 * TENSOR)

    person.until(lambda: person.text("memory.cache") == "frees 1.75 GiB")
    assert (tank(person)["tensors"], tank(person)["holes"]) == (0, 7 * 256)
    assert tank(person)["driver"] == 52
    held = pc.use_of(lab).cards[0].size_bytes
    person.click("memory.empty_cache")
    person.until(lambda: person.text("memory.cache") == "freed 1.75 GiB")
    assert held - pc.use_of(lab).cards[0].size_bytes == 7 * TENSOR
    person.until(lambda: tank(person)["holes"] == 0)

    # nvidia-smi sees the rest gone as well: the engine takes its context along.
    person.open_page("Segment map")
    person.until(lambda: not psutil.pid_exists(lab))
    person.open_page("Now")
    person.until(lambda: tank(person)["free"] > 1900)


def test_empty_cache_frees_what_it_said(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(TWO_GIB)
    person.open_tab("Memory")
    person.ask(
        RunMemoryExperiment(
            preset="custom",
            device="cuda:0",
            plan=AllocationPlan(size=8192, count=3),
            budget_bytes=1500 * MIB,
        )
    )
    person.until(lambda: tank(person).get("holes") == 3 * 256)
    person.until(lambda: person.text("memory.cache") == "frees 768 MiB")
    pid = person.engine.pid
    person.until(lambda: tank(person).get("context", 0) > 0)
    held = pc.use_of(pid).cards[0].size_bytes
    person.click("memory.empty_cache")
    person.until(lambda: person.text("memory.cache") == "freed 768 MiB")
    left = pc.use_of(pid).cards[0].size_bytes
    assert held - left == 3 * TENSOR
    person.until(lambda: tank(person)["holes"] == 0)
    person.until(lambda: person.curve("memory.plot", "reserved")[1][-1] == 0)


def test_a_fragmented_card_is_whole_again_with_expandable_segments(
    sit_down_at: SitDownAt,
) -> None:
    _, person = sit_down_at(TWO_GIB)
    person.open_tab("Memory")
    finished = run_experiment(person, "memory.oom.preset.fragmentation")
    assert finished.outcome == "fragmented"
    assert person.text("memory.oom.headline") == "Fragmented."
    person.click("memory.oom.segments")
    view = person.find(SegmentMapView, "memory.segments")
    person.until(lambda: view.blocks is not None and len(view.blocks) == 6)
    assert view.blocks is not None
    assert view.blocks.allocated_bytes == finished.allocated_bytes
    largest = f"A tensor over {(finished.largest_block_bytes or 0) // MIB} MiB does not fit"
    assert person.text("memory.segment_map.meaning").startswith(largest)
    person.click("memory.segment_map.now")
    person.open_page("Now")
    other = run_experiment(person, "memory.oom.compare")
    assert (other.outcome, other.conf) == ("fits", EXPANDABLE)
    person.until(lambda: person.text("memory.oom.other.headline") == "Everything fits.")
    assert person.text("memory.oom.headline") == "Fragmented."


def test_an_experiment_is_stopped_in_the_middle_and_the_next_ends_with_the_window(
    sit_down_at: SitDownAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(now_model, "WATCH_S", 600.0)  # it does not end by itself
    _, person = sit_down_at(replace(MODERN_1996_MIB, mib=320, nvml_mib=320))
    person.open_tab("Memory")
    person.press("memory.oom.budget", Qt.Key.Key_Left)  # few enough tensors to wait between them
    person.click_at(_is_filling, "memory.oom.stop")
    finished = run_experiment(person, "memory.oom.preset.many_small")
    assert finished.outcome == "stopped"
    assert person.text("memory.oom.headline") == "Stopped."
    assert f"{finished.tensors} tensors, together" in person.text("memory.oom.outcome")
    begun = len(person.events(MemoryRead))
    person.click("memory.oom.preset.many_small")
    person.until(lambda: any(_is_filling(one) for one in person.events(MemoryRead)[begun:]))
    person.window.close()  # in the middle: the fixture fails on a process that is left


def test_a_lab_engine_killed_in_the_middle_is_reported_and_what_was_read_stays(
    sit_down_at: SitDownAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system kills it when the PC has no memory left; the next one works."""
    with monkeypatch.context() as patch:
        patch.setattr(now_model, "WATCH_S", 600.0)  # it does not end by itself
        _, person = sit_down_at(replace(MODERN_1996_MIB, mib=320, nvml_mib=320))
        person.open_tab("Memory")
        person.press("memory.oom.budget", Qt.Key.Key_Left)
        main = person.engine
        person.click("memory.oom.preset.many_small")
        person.until(lambda: any(map(_is_filling, person.events(MemoryRead))))
    killed = _lab_pid(person)
    assert killed != main.pid
    psutil.Process(killed).kill()
    person.until(lambda: person.text("memory.oom.headline") == "PyTorch ended.")
    assert "signal 9" in person.text("memory.oom.outcome")
    assert person.property_of("memory.oom.result", "tone") == "failure"
    assert person.text("memory.oom.moment") == "Before it ended"
    drawn = person.find(TankBar, "memory.oom.tank").tank
    assert drawn is not None
    assert any(part.key == "tensors" and part.size_bytes for part in drawn.parts)
    assert person.engine == main, "the program's own engine was not touched"
    assert person.text("banner.sentence") == ""
    assert run_experiment(person).outcome == "over_budget"
    assert _lab_pid(person) != killed
    person.until(lambda: person.text("memory.oom.headline") == "Over the budget.")


def test_the_card_that_is_chosen_is_the_one_that_is_filled_and_read(
    sit_down_at: SitDownAt,
) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    person.open_tab("Memory")
    person.choose("memory.card", "cuda:1")
    person.press("memory.oom.size", Qt.Key.Key_Left)
    for _ in range(8):
        person.press("memory.oom.count", Qt.Key.Key_Left)  # 4 of 64 MiB
    pids = []

    def look(event: Event) -> bool:
        if isinstance(event, MemoryRead) and (event.allocated_bytes or 0) == 4 * 64 * MIB:
            pids.append([use.size_bytes for use in pc.use_of(_lab_pid(person)).cards])
        return False

    person.click_at(look, "memory.oom.stop")
    finished = run_experiment(person)
    assert (finished.outcome, finished.tensors) == ("fits", 4)
    assert person.text("memory.oom.headline") == "Everything fits."
    # No error tells it, and the list of processes may not have come while it ran.
    assert tank(person, "memory.oom.tank")["context"] > 0
    first, second = pids[-1]
    assert first == 0
    assert second >= 4 * 64 * MIB
    read = person.events(SegmentsRead)[-1]
    assert isinstance(read, SegmentsRead)
    assert (read.device, read.read.total_bytes) == ("cuda:1", RTX_3060.mib * MIB)
    assert "of 12 GiB" in person.text("memory.free_of")


def _lab_pid(person: Person) -> int:
    lab = person.events(EngineDescribed)[-1]
    assert isinstance(lab, EngineDescribed)
    return lab.pid
