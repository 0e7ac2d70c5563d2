from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QTabBar

from gpu_studio.core.messages.placement_messages import DeviceUsed, PlaceFinished
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.model.page_model import Bar
from gpu_studio.ui.result_bars import ResultBars
from tests.driving.devices import choose_more, devices
from tests.soft.window.conftest import SitDownAt
from tests.soft.window.person import Person
from tests.softcards.cards import SoftPc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060


def numbers(pc: SoftPc, person: Person) -> list[str]:
    """Return the Switcher's name of each card, in the order of their buses."""
    names = [f"switcher.facts.{card.uuid}" for card in pc.cards]
    person.until(lambda: all(map(person.text, names)))
    return [person.text(name).split()[0] for name in names]


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


def use(person: Person, identity: str) -> PlaceFinished:
    """Press “Use this device”, and return what the engine proved of the model that moved there."""
    before = len(person.events(PlaceFinished))
    person.click(f"switcher.activate.{identity}")
    person.until(lambda: len(person.events(PlaceFinished)) > before)
    finished = person.events(PlaceFinished)[-1]
    assert isinstance(finished, PlaceFinished)
    person.until(lambda: person.find(QLabel, "switcher.proof").text() not in ("", "Moving…"))
    return finished


def used(person: Person) -> DeviceUsed:
    """Return what the engine last answered to the switch to a card."""
    answer = person.events(DeviceUsed)[-1]
    assert isinstance(answer, DeviceUsed)
    return answer


def test_switching_both_ways_keeps_to_the_card_and_not_to_its_number(
    sit_down_at: SitDownAt,
) -> None:
    # CUDA by itself would call the faster card, the second on the bus, cuda:0.
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    first, second = (card.uuid for card in pc.cards)
    person.open_tab("Switcher")
    assert numbers(pc, person) == ["cuda:0", "cuda:1"]
    for uuid, index in ((second, 1), (first, 0), (second, 1)):
        assert use(person, uuid).device == f"cuda:{index}"
        answer = used(person)
        assert (answer.uuid, answer.device) == (uuid, f"cuda:{index}")
        name = answer.name.removeprefix("NVIDIA ")
        sentence = f"New “cuda” tensors go to cuda:{index} {name} now."
        assert person.text("switcher.said") == sentence
    assert "cuda:1 RTX 3060" in person.text("status")

    every_card = person.engine
    person.click(f"switcher.visible_only.{second}")
    person.until_another_engine(every_card)
    assert person.text("switcher.said") == "PyTorch sees 1 card now."
    assert person.engine.visible_devices == second
    person.until(lambda: numbers(pc, person) == ["hidden", "cuda:0"])
    assert "cuda:0 RTX 3060" in person.text("status")
    assert person.sees(f"switcher.mark.{second}")
    person.click("switcher.move")
    person.until(lambda: "moved in" in person.find(QLabel, "switcher.proof").text())
    assert contexts(pc, person) == [0, 1]
    person.open_tab("Devices")
    devices(person.window)[1].click()
    choose_more(person.window, "All facts")
    person.until(lambda: person.text("devices.details.numbers") == "nvidia-smi 1 = cuda:0")

    person.open_tab("Switcher")
    one_card = person.engine
    person.click("switcher.show_all")
    person.until_another_engine(one_card)
    assert person.engine.visible_devices is None
    person.until(lambda: numbers(pc, person) == ["cuda:0", "cuda:1"])
    assert use(person, first).device == "cuda:0"
    assert used(person).uuid == first
    assert contexts(pc, person) == [1, 0]


def test_a_model_moves_between_cards_and_back(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    person.open_tab("Switcher")
    person.choose("switcher.model", "Small conv")
    before, engine_pid = "cpu", person.engine.pid
    for after, identity in (
        ("cuda:1", pc.cards[1].uuid), ("cuda:0", pc.cards[0].uuid), ("cpu", "cpu"),
    ):  # fmt: skip
        finished = use(person, identity)
        rows = len(person.table("switcher.placement"))
        assert rows == finished.tensors > 4
        assert person.column("switcher.placement", "Before") == [before] * rows
        assert person.column("switcher.placement", "After") == [after] * rows
        assert finished.output_device == after
        sizes = person.column("switcher.placement", "Bytes")
        assert finished.moved_bytes == sum(int(size.replace(",", "")) for size in sizes)
        assert "moved in" in person.find(QLabel, "switcher.proof").text()
        before = after
    shares = pc.use_of(engine_pid).cards
    # What came in over the bus, or from the other card, has all left again.
    assert shares[1].copied_in_bytes >= finished.moved_bytes
    assert shares[0].copied_out_bytes >= finished.moved_bytes


def test_a_pitfall_is_broken_and_fixed_on_the_card_that_is_chosen(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    person.open_tab("Switcher")
    open_page(person, "Lessons")
    person.choose("switcher.lab.device", "cuda:1")
    person.click("switcher.lab.break")
    person.until(lambda: "cuda:1" in person.text("switcher.lab.broken.error"))
    assert "cpu" in person.text("switcher.lab.broken.error")
    person.click("switcher.lab.fix")
    person.until(lambda: "The output is on cuda:1" in person.text("switcher.lab.fixed.sentence"))
    assert contexts(pc, person) == [0, 1]


def choose(person: Person, lesson: str) -> None:
    titles = person.entries("switcher.lab.list")
    person.choose_row("switcher.lab.list", titles.index(lesson))


def compared(person: Person, lesson: str) -> list[Bar]:
    """Run an experiment on the second card and return the bars of its ways."""
    choose(person, lesson)
    person.choose("switcher.lab.device", "cuda:1")
    person.click("switcher.lab.run")
    person.until(
        lambda: not person.sees("switcher.lab.stop") and person.sees("switcher.lab.answer")
    )
    return list(person.find(ResultBars, "switcher.lab.figures.0").bars)


def test_feeding_on_the_second_card_takes_its_memory_and_splits_its_time(
    sit_down_at: SitDownAt,
) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060, budget_s=0.1)
    person.open_tab("Switcher")
    open_page(person, "Lessons")
    names = [bar.name for bar in compared(person, "Feeding the card")]
    assert names == ["batch by batch", "whole data set", "pinned", "pinned without waiting"]
    finished = [event for event in person.events(RunFinished) if isinstance(event, RunFinished)]
    peaks = {
        name: one.details.peak_allocated_bytes for name, one in zip(names, finished, strict=True)
    }
    # The whole set of 10 000 × (100 + 50) numbers stays on the card.
    assert peaks["whole data set"] - peaks["batch by batch"] > 10_000 * 100 * 4
    assert {one.device for one in finished} == {"cuda:1"}
    for bar in person.find(ResultBars, "switcher.lab.busy").bars:
        assert set(dict(bar.parts)) == {"loading", "copying", "computing"}
    assert contexts(pc, person) == [0, 1]


def test_amp_and_several_cards_say_what_they_measured_on_which_card(
    sit_down_at: SitDownAt,
) -> None:
    _, person = sit_down_at(GTX_1650, RTX_3060, budget_s=0.1)
    person.open_tab("Switcher")
    open_page(person, "Lessons")
    assert [bar.name for bar in compared(person, "AMP")] == ["AMP off", "AMP on"]
    person.until(  # a plot draws in a turn after it is shown
        lambda: all(
            len(person.curve("switcher.lab.loss", key)[1]) > 1 for key in ("AMP off", "AMP on")
        )
    )
    # Kernels compute nothing on these cards: no way is praised without that being said.
    assert "wrong results" in person.text("switcher.lab.answer")
    ways = compared(person, "Several cards")
    assert [bar.name for bar in ways] == [
        "DataParallel, processes 1", "DataParallel, processes 2",
        "DistributedDataParallel, processes 2",
    ]  # fmt: skip
    assert "NCCL" in person.text("switcher.lab.answer")


def test_a_card_that_pytorch_has_no_code_for_is_passed_over(sit_down_at: SitDownAt) -> None:
    _, person = sit_down_at(GT_1030, RTX_3060)
    person.open_tab("Switcher")
    open_page(person, "Lessons")
    person.click("switcher.lab.break")
    person.until(lambda: "cuda:1" in person.text("switcher.lab.broken.error"))
    choose(person, "Feeding the card")
    devices = person.find(QComboBox, "switcher.lab.device")
    assert [devices.itemText(index) for index in range(devices.count())] == ["cuda:1", "cpu"]
