"""Models that the engine moves between soft cards: what is where, and how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel, PlaceRow
from tests.engine.answers import only
from tests.softcards.cards import MIB, Card
from tests.softcards.catalogue import GTX_1650, RTX_3060

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event
    from tests.soft.conftest import MakePc, StartEngine


def places(events: list[Event]) -> set[tuple[str, str]]:
    return {(row.device_before, row.device_after) for row in only(PlaceRow, events)}


def test_a_model_moves_from_where_it_is(soft_pc: MakePc, engine: StartEngine) -> None:
    pc = soft_pc(GTX_1650, RTX_3060)
    one = engine(pc)
    steps = []
    for device in ("cuda:1", "cuda:0", "cuda:0", "cpu"):
        events = one.ask(PlaceModel(model="convnet", device=device))
        assert isinstance(events[-1], PlaceFinished)
        steps.append((places(events), events[-1]))
    assert [step[0] for step in steps] == [
        {("cpu", "cuda:1")},
        {("cuda:1", "cuda:0")},
        {("cuda:0", "cuda:0")},
        {("cuda:0", "cpu")},
    ]
    assert [step[1].output_device for step in steps] == ["cuda:1", "cuda:0", "cuda:0", "cpu"]
    sizes = [row.bytes for row in only(PlaceRow, events)]
    assert [step[1].moved_bytes for step in steps] == [sum(sizes), sum(sizes), 0, sum(sizes)]
    # The allocator rounds each tensor up to 512 bytes.
    rounded = sum(-(-size // 512) * 512 for size in sizes)
    deltas = [step[1].allocated_delta_bytes for step in steps]
    assert deltas == [rounded, rounded, 0, None]
    # What the card gave back is right, as copies are real; the card's own answer is not.
    (read,) = one.ask(ReadMemory(device="cuda:0"))
    assert read.allocated_bytes < rounded + 20 * MIB


def test_a_move_is_timed_until_it_has_arrived(soft_pc: MakePc, engine: StartEngine) -> None:
    slow = {"host_copy_mb_s": 20, "device_copy_mb_s": 20}
    first = Card("NVIDIA GeForce GTX 1650", "7.5", mib=3903, sms=14, **slow)
    second = Card("NVIDIA GeForce RTX 3060", "8.6", mib=12044, sms=28, **slow)
    one = engine(soft_pc(first, second))
    for device in ("cuda:0", "cuda:1", "cpu"):  # a copy between cards returns at once
        finished = one.ask(PlaceModel(model="linear_1000", device=device))[-1]
        assert isinstance(finished, PlaceFinished)
        assert finished.elapsed_s >= finished.moved_bytes / 20e6 * 0.9
