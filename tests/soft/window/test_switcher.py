"""The Switcher tab over soft cards: which card is used, which are visible, where a model is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QRadioButton, QTabBar

from gpu_studio.core.messages.placement_messages import DeviceUsed, PlaceFinished
from gpu_studio.core.messages.run_messages import RunFinished
from tests.driving.devices import choose_more
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

if TYPE_CHECKING:
    from tests.soft.window.conftest import SitDownAt
    from tests.soft.window.person import Person
    from tests.softcards.cards import SoftPc


def numbers(pc: SoftPc, person: Person) -> list[str]:
    """Return the Switcher's name of each card, in the order of their buses."""
    names = [f"switcher.radio.{card.uuid}" for card in pc.cards]
    return [person.find(QRadioButton, name).text() for name in names]


def contexts(pc: SoftPc, person: Person) -> list[int]:
    """Return how many contexts the present engine has on each card, in the order of the buses."""
    for process in pc.processes():
        if process.pid == person.engine.pid:
            return [use.contexts for use in process.cards]
    return [0] * len(pc.cards)


def open_page(person: Person, title: str) -> None:
    """Bring a page of the tab to the front, as a click on its name does."""
    bar = person.find(QTabBar, "switcher.pages")
    titles = [bar.tabText(index) for index in range(bar.count())]
    place = bar.tabRect(titles.index(title)).center()
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=place)
    assert bar.tabText(bar.currentIndex()) == title


def use(person: Person) -> DeviceUsed:
    """Press “Use this card” and return what the engine answered."""
    before = len(person.events(DeviceUsed))
    person.click("switcher.activate")
    person.until(lambda: len(person.events(DeviceUsed)) > before)
    used = person.events(DeviceUsed)[-1]
    assert isinstance(used, DeviceUsed)
    return used


def move(person: Person) -> PlaceFinished:
    """Press “Move” on the Place page and return what the engine proved."""
    open_page(person, "Place")
    before = len(person.events(PlaceFinished))
    person.click("switcher.move")
    person.until(lambda: len(person.events(PlaceFinished)) > before)
    finished = person.events(PlaceFinished)[-1]
    assert isinstance(finished, PlaceFinished)
    person.until(lambda: person.text("switcher.proof"))
    return finished


def test_switching_both_ways_keeps_to_the_card_and_not_to_its_number(
    sit_down_at: SitDownAt,
) -> None:
    # CUDA by itself would call the faster card, the second on the bus, cuda:0.
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    first, second = (card.uuid for card in pc.cards)
    person.open_tab("Switcher")
    assert numbers(pc, person) == ["cuda:0", "cuda:1"]
    for uuid, index in ((second, 1), (first, 0), (second, 1)):
        person.click(f"switcher.radio.{uuid}")
        used = use(person)
        assert (used.uuid, used.device) == (uuid, f"cuda:{index}")
        sentence = f"cuda:{index} {used.name.removeprefix('NVIDIA ')} is now the current card."
        person.until(lambda sentence=sentence: person.text("switcher.said") == sentence)
    assert "cuda:1 RTX 3060" in person.text("status")

    every_card = person.engine
    person.click("switcher.visible_only")
    person.until_another_engine(every_card)
    assert "sees 1 card." in person.text("switcher.said")
    assert person.engine.visible_devices == second
    person.until(lambda: numbers(pc, person) == ["hidden", "cuda:0"])
    assert "cuda:0 RTX 3060" in person.text("status")
    used = use(person)
    assert (used.uuid, used.device) == (second, "cuda:0")
    assert move(person).device == "cuda:0"
    assert contexts(pc, person) == [0, 1]
    person.open_tab("Devices")
    person.choose_row("devices.table", 1)
    choose_more(person.window, "All facts")
    person.until(lambda: person.text("devices.details.numbers") == "nvidia-smi 1 = cuda:0")

    person.open_tab("Switcher")
    open_page(person, "Choose")
    one_card = person.engine
    person.click("switcher.show_all")
    person.until_another_engine(one_card)
    assert person.engine.visible_devices is None
    person.until(lambda: numbers(pc, person) == ["cuda:0", "cuda:1"])
    person.click(f"switcher.radio.{first}")
    assert use(person).uuid == first
    assert move(person).device == "cuda:0"
    assert contexts(pc, person) == [1, 0]


def test_a_model_moves_between_cards_and_back(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    person.open_tab("Switcher")
    open_page(person, "Place")
    person.choose("switcher.model", "Small conv")
    before, engine_pid = "cpu", person.engine.pid
    for after in ("cuda:0", "cuda:1", "cpu"):
        person.choose("switcher.target", after)
        finished = move(person)
        rows = len(person.table("switcher.placement"))
        assert rows == finished.tensors > 4
        assert person.column("switcher.placement", "Before") == [before] * rows
        assert person.column("switcher.placement", "After") == [after] * rows
        assert finished.output_device == after
        sizes = person.column("switcher.placement", "Bytes")
        assert finished.moved_bytes == sum(int(size.replace(",", "")) for size in sizes)
        assert "moved in" in person.text("switcher.proof")
        before = after
    shares = pc.use_of(engine_pid).cards
    # What came in over the bus, or from the other card, has all left again.
    assert shares[0].copied_in_bytes >= finished.moved_bytes
    assert shares[1].copied_out_bytes >= finished.moved_bytes


def test_a_pitfall_is_broken_and_fixed_on_the_card_that_is_chosen(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    person.open_tab("Switcher")
    open_page(person, "Pitfalls")
    person.choose("switcher.lab.device", "cuda:1")
    person.click("switcher.lab.break")
    person.until(lambda: "cuda:1" in person.text("switcher.lab.broken.error"))
    assert "cpu" in person.text("switcher.lab.broken.error")
    person.click("switcher.lab.fix")
    person.until(lambda: "The output is on cuda:1" in person.text("switcher.lab.fixed.sentence"))
    assert contexts(pc, person) == [0, 1]


def compared(person: Person, page: str, workload: str) -> list[tuple[str, ...]]:
    """Run a page's comparison on the second card and return its table."""
    open_page(person, page)
    person.choose(f"switcher.{workload}.device", "cuda:1")
    person.click(f"switcher.{workload}.run")
    results = f"switcher.{workload}.results"
    person.until(lambda: not person.sees(f"switcher.{workload}.stop") and person.table(results))
    return person.table(results)


def test_feeding_on_the_second_card_takes_its_memory_and_splits_its_time(
    sit_down_at: SitDownAt,
) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060, budget_s=0.1)
    person.open_tab("Switcher")
    rows = compared(person, "Feeding", "dataloader")
    assert [row[0] for row in rows] == [
        "batch by batch", "whole data set", "pinned", "pinned without waiting",
    ]  # fmt: skip
    finished = [event for event in person.events(RunFinished) if isinstance(event, RunFinished)]
    peaks = {
        row[0]: one.details.peak_allocated_bytes for row, one in zip(rows, finished, strict=True)
    }
    # The whole set of 10 000 × (100 + 50) numbers stays on the card.
    assert peaks["whole data set"] - peaks["batch by batch"] > 10_000 * 100 * 4
    assert {one.device for one in finished} == {"cuda:1"}
    for row in rows:
        assert all(part in row[3] for part in ("loading", "copying", "computing"))
    assert contexts(pc, person) == [0, 1]


def test_amp_and_several_cards_say_what_they_measured_on_which_card(
    sit_down_at: SitDownAt,
) -> None:
    _, person = sit_down_at(GTX_1650, RTX_3060, budget_s=0.1)
    person.open_tab("Switcher")
    amp = compared(person, "AMP and reproducibility", "train_step")
    assert [row[0] for row in amp] == ["AMP off", "AMP on"]
    person.until(  # a plot draws in a turn after it is shown
        lambda: all(
            len(person.curve("switcher.train_step.loss", key)[1]) > 1
            for key in ("AMP off", "AMP on")
        )
    )
    # Kernels compute nothing on these cards: no way is praised without that being said.
    assert "wrong results" in person.text("switcher.train_step.verdict")
    open_page(person, "Several cards")
    for value in ("way.DistributedDataParallel", "processes.1"):
        person.click(f"switcher.data_parallel.{value}")
    ((way, _, _, _, state),) = compared(person, "Several cards", "data_parallel")
    assert (way, state) == ("DataParallel", "failed")
    assert "NCCL" in person.text("switcher.data_parallel.verdict")


def test_a_card_that_pytorch_has_no_code_for_is_passed_over(sit_down_at: SitDownAt) -> None:
    _, person = sit_down_at(GT_1030, RTX_3060)
    person.open_tab("Switcher")
    open_page(person, "Pitfalls")
    person.click("switcher.lab.break")
    person.until(lambda: "cuda:1" in person.text("switcher.lab.broken.error"))
    open_page(person, "Feeding")
    devices = person.find(QComboBox, "switcher.dataloader.device")
    assert [devices.itemText(index) for index in range(devices.count())] == ["cuda:1", "cpu"]
