from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QPushButton

from tests.driving.devices import choose_more, device_names, devices
from tests.driving.whole_program import READY, close_after
from tests.family import family_running
from tests.patience import PATIENCE_S
from tests.soft.conftest import MakePc
from tests.soft.window.conftest import SitDown, SitDownAt
from tests.softcards.cards import MIB, NOT_AVAILABLE, Card, Other
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060, RTX_4090

FOUR = (GT_1030, GTX_1650, RTX_3060, RTX_4090)


@pytest.mark.parametrize("cards", [FOUR[1:2], FOUR[:2], FOUR], ids=len)
def test_every_card_is_listed_and_its_sensors_move(
    sit_down_at: SitDownAt, cards: tuple[Card, ...]
) -> None:
    pc, person = sit_down_at(*cards)
    choose_more(person.window, "All facts")
    assert device_names(person.window) == [card.name for card in cards]
    for number, card in enumerate(pc.cards):
        devices(person.window)[number].click()
        person.until(lambda card=card: person.text("devices.details.uuid") == card.uuid)
        numbers = person.text("devices.details.numbers")
        assert numbers.startswith(f"nvidia-smi {number} = cuda:{number}")
        assert person.text("devices.details.temperature") == "41 °C"
        warmer = 60 + number
        pc.set(number, temperature_c=warmer, fan_percent=77)
        pc.set_others(number, Other(1, 100 * MIB))
        value = f"{warmer} °C"
        person.until(lambda value=value: person.text("devices.sensor.temperature.value") == value)
        person.until(lambda value=value: person.text("devices.details.temperature") == value)
        assert person.text("devices.details.fan") == "77 %"
        person.until(lambda: len(person.table("devices.processes")) == 1)
        assert "100 MiB" in person.table("devices.processes")[0]


def test_what_a_card_refuses_is_not_available_and_never_zero(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(RTX_3060)
    choose_more(person.window, "All facts")
    choose_more(person.window, "All sensors")
    person.until(lambda: person.text("devices.details.power") == "12.5 of 170 W")
    assert "of 12 GiB" in person.text("devices.sensor.memory.value")
    pc.set(0, power_mw=None, used_bytes=NOT_AVAILABLE)
    person.until(lambda: person.text("devices.details.power").startswith("n/a"))
    assert person.text("devices.details.memory_used") == "n/a"
    # Not the last value that there was, either.
    person.until(lambda: person.text("devices.sensor.power.value") == "n/a")
    assert person.text("devices.sensor.memory.value") == "n/a"


def test_a_lost_card_is_reported_and_the_other_one_goes_on(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(GTX_1650, RTX_3060)
    pc.set(1, lost=1)
    person.until(lambda: "was lost from the bus" in person.text("banner.sentence"))
    assert person.text("banner.sentence").startswith("RTX 3060:")
    devices(person.window)[1].click()
    person.until(lambda: "RTX 3060: " in person.text("devices.verdict.sentence"))
    assert not person.sees("devices.sensor.temperature")
    devices(person.window)[0].click()
    pc.set(0, temperature_c=55)
    person.until(lambda: person.text("devices.sensor.temperature.value") == "55 °C")
    assert "can use your GTX 1650" in person.text("devices.verdict.sentence")


def test_a_name_that_is_not_utf_8_hides_no_card(soft_pc: MakePc, sit_down: SitDown) -> None:
    pc = soft_pc(GTX_1650)
    pc.set(0, name=b"NVIDIA \xf8\xff")
    person = sit_down(pc)
    person.until_ready()
    choose_more(person.window, "All facts")
    assert device_names(person.window) == ["NVIDIA card"]
    person.until(lambda: person.text("devices.details.uuid") == pc.cards[0].uuid)
    person.open_tab("Benchmark")
    person.click("benchmark.devices.cpu")
    person.click("benchmark.run")
    person.until(lambda: "Done: 1 of 1 run finished." in person.text("benchmark.progress.text"))


def test_a_driver_call_that_never_returns_leaves_the_window_alive(
    sit_down_at: SitDownAt,
) -> None:
    pc, person = sit_down_at(RTX_3060)
    person.until(lambda: person.text("devices.sensor.temperature.value") == "41 °C")
    pc.fault("nvmlDeviceGetPowerUsage", hang=True)
    silence = "RTX 3060: The driver no longer answers for this card. Restart the PC."
    person.until(lambda: person.text("banner.sentence") == silence)
    person.until(lambda: person.text("devices.verdict.sentence") == silence)
    # Everything else works.
    person.open_tab("Benchmark")
    person.click("benchmark.run")
    person.until(lambda: "Done: 2 of 2 runs finished." in person.text("benchmark.progress.text"))
    reader = family_running(psutil.Process(), "gpu_studio.hardware.reader")
    assert len(reader) == 1
    person.window.close()
    _, alive = psutil.wait_procs(reader, timeout=PATIENCE_S)
    assert not alive


@pytest.mark.cuda13
def test_a_card_without_code_is_named_with_the_build_that_has_it(sit_down_at: SitDownAt) -> None:
    _, person = sit_down_at(GT_1030)
    sentence = "This PyTorch has no code for your GT 1030 (6.1): install the cu126 build."
    person.until(lambda: person.text("devices.verdict.sentence") == sentence)
    assert person.sees("devices.verdict.command")
    assert not person.sees("banner")
    person.open_tab("Switcher")
    person.until(lambda: person.text("banner.sentence") == sentence)
    person.choose("switcher.model", "Linear(10")
    assert not person.find(QPushButton, "switcher.move").isEnabled()


@pytest.mark.cuda12
def test_an_old_card_is_used_by_the_build_that_has_its_code(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(GT_1030)
    verdict = "PyTorch can use your GT 1030."
    person.until(lambda: person.text("devices.verdict.sentence") == verdict)
    assert not person.sees("banner")
    person.open_tab("Benchmark")
    person.click("benchmark.run")
    person.until(lambda: "Done: 2 of 2 runs finished." in person.text("benchmark.progress.text"))
    assert "–" not in [person.column("benchmark.results", name)[0] for name in ("CPU", "GT 1030")]
    assert pc.use_of(person.engine.pid).cards[0].launches > 14


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
