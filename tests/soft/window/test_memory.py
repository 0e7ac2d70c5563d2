"""The Memory tab over soft cards: where memory goes, giving it back, and breaking it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from gpu_studio.core.protocol import BreakMemory, MemoryRead, OomFinished
from tests.softcards.cards import MIB
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

if TYPE_CHECKING:
    from gpu_studio.core.protocol import Event
    from tests.soft.window.conftest import SitDownAt
    from tests.soft.window.person import Person

TENSOR = 256 * MIB  # 8192 × 8192 of float32


def run_experiment(person: Person) -> OomFinished:
    """Press Run and return how the experiment ended, once the window has said so."""
    before = len(person.events(OomFinished))
    person.click("memory.oom.run")
    person.until(lambda: len(person.events(OomFinished)) > before)
    finished = person.events(OomFinished)[-1]
    assert isinstance(finished, OomFinished)
    return finished


def _is_filling(event: Event) -> bool:
    return isinstance(event, MemoryRead) and event.mark == "allocated"


def test_the_posts_experiment_ends_with_the_errors_own_numbers(sit_down_at: SitDownAt) -> None:
    """8192 × 8192 float32 on a GT 1030 with 1.95 GiB: seven fit, the eighth is refused."""
    pc, person = sit_down_at(GT_1030)
    person.open_tab("Memory")
    finished = run_experiment(person)
    request = next(asked for asked, _ in person.heard if isinstance(asked, BreakMemory))
    assert (request.size, request.dtype) == (8192, "float32")
    # By default three quarters of the card may be taken: it is the budget that breaks.
    assert finished.tensors == request.budget_bytes // TENSOR == 5
    assert person.text("memory.oom.headline") == "Over the budget."
    assert "Tensor 6 asked for 256 MiB when 1.25 GiB were allocated." in person.text(
        "memory.oom.outcome"
    )
    person.press("memory.oom.budget", Qt.Key.Key_End)
    finished = run_experiment(person)
    assert finished.tensors == 7
    assert person.text("memory.oom.headline") == "The card is full."
    assert person.text("memory.oom.outcome") == (
        "Tensor 8 asked for 256 MiB when 1.75 GiB were allocated. 144 MiB of 1.95 GiB were free."
    )
    assert person.property_of("memory.oom.result", "tone") == "failure"
    person.until(lambda: max(person.curve("memory.plot", "allocated")[1]) == 7 * TENSOR)
    person.until(lambda: person.curve("memory.plot", "allocated")[1][-1] == 0)
    assert person.curve("memory.plot", "reserved")[1][-1] == 7 * TENSOR

    can_free = "empty_cache can free all 1.75 GiB that are reserved and empty."
    person.until(lambda: can_free in person.text("memory.cache"))
    pid = person.engine.pid
    held = pc.use_of(pid).cards[0].size_bytes
    person.click("memory.empty_cache")
    freed = "empty_cache freed 1.75 GiB, as it said."
    person.until(lambda: freed in person.text("memory.cache"))
    assert held - pc.use_of(pid).cards[0].size_bytes == 7 * TENSOR
    person.until(lambda: person.curve("memory.plot", "reserved")[1][-1] == 0)


def test_an_experiment_is_stopped_in_the_middle(sit_down_at: SitDownAt) -> None:
    _, person = sit_down_at(GTX_1650)
    engine = person.engine
    person.open_tab("Memory")
    person.choose("memory.oom.preset", "Many tensors of 4 MiB")
    person.click_at(_is_filling, "memory.oom.stop")
    finished = run_experiment(person)
    assert finished.outcome == "stopped"
    assert person.text("memory.oom.headline") == "Stopped."
    assert f"{finished.tensors} tensors of 4 MiB" in person.text("memory.oom.outcome")
    assert person.events(MemoryRead)[-1].allocated_bytes == 0
    assert person.engine == engine


def test_the_card_that_is_chosen_is_the_one_that_is_filled_and_read(
    sit_down_at: SitDownAt,
) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    person.open_tab("Memory")
    person.choose("memory.card", "cuda:1")
    person.choose("memory.oom.preset", "A few that fit")
    assert run_experiment(person).outcome == "fits"
    assert person.text("memory.oom.headline") == "Everything fits."
    person.until(lambda: max(person.curve("memory.plot", "allocated")[1]) == 4 * 64 * MIB)
    first, second = pc.use_of(person.engine.pid).cards
    assert first.contexts == first.size_bytes == 0
    assert second.size_bytes > 4 * 64 * MIB  # still reserved
    read = person.events(MemoryRead)[-1]
    assert isinstance(read, MemoryRead)
    assert (read.device, read.total_bytes) == ("cuda:1", RTX_3060.mib * MIB)
    assert "RTX 3060" in person.text("memory.title")
