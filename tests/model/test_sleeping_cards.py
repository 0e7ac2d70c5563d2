from collections.abc import Iterator
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import ASLEEP, Device, Driver, Inventory
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.core.notice import Action
from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.model.studio import Studio
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import SteadySensors, cpu_device, gt_1030_card
from tests.fakes.scripted_engine import Engines, ScriptedEngine

SLEEPER = Device(
    kind="cuda", name="NVIDIA GeForce GT 1030", pci_bus_id="00000000:01:00.0",
    pci_device_id=0x1D01, unreadable=ASLEEP, unreadable_code="asleep",
)  # fmt: skip
LAPTOP = Inventory(devices=(cpu_device(), SLEEPER), driver=Driver(version="570.86.16"))
AWAKE = Inventory(devices=(cpu_device(), gt_1030_card()), driver=Driver(version="570.86.16"))
LEFT_ALONE = described(
    torch_version="2.13.0+cu126", cuda_build="12.6", cuda_reason="They sleep.", cards_asleep=True
)
POLITELY, WAKING = DescribeEngine(wakes_cards=False), DescribeEngine()


def answer(_engine: ScriptedEngine, request: DescribeEngine) -> Iterator[EngineDescribed]:
    yield described_with_cuda() if request.wakes_cards else LEFT_ALONE


@pytest.fixture
def sensor_source() -> SteadySensors:
    return SteadySensors(LAPTOP)


@pytest.fixture
def laptop(engines: Engines, ready_studio: Studio) -> Studio:
    return ready_studio


@pytest.fixture
def engines(engines: Engines) -> Engines:
    engines.scripts[DescribeEngine] = answer
    return engines


def questions(engines: Engines) -> list[Any]:
    return [request for request in engines.requests if isinstance(request, DescribeEngine)]


def test_the_window_asks_politely_and_says_how_to_wake_the_card(
    engines: Engines, laptop: Studio
) -> None:
    assert questions(engines) == [POLITELY]
    verdict = DevicesModel(laptop).verdict
    assert verdict.code == "card_asleep"
    assert "did not ask PyTorch" in verdict.sentence
    assert (verdict.action, verdict.to_copy) == (Action.WAKE_CARDS, "")
    assert laptop.headlines.headline is None
    (card,) = laptop.board.cards
    assert (card.address, card.obstacle) == (None, Obstacle.ASLEEP)
    assert "Devices tab" in card.reason


def test_the_button_wakes_the_card(qtbot: QtBot, engines: Engines, laptop: Studio) -> None:
    laptop.headlines.act(DevicesModel(laptop).verdict)
    qtbot.waitUntil(lambda: laptop.session.is_free and len(questions(engines)) == 2)
    assert questions(engines) == [POLITELY, WAKING]
    assert laptop.session.description == described_with_cuda()
    laptop.wake_cards()  # awake already
    assert laptop.session.is_free


def test_a_card_that_another_program_woke_is_read(
    qtbot: QtBot, engines: Engines, laptop: Studio, sensor_source: SteadySensors
) -> None:
    engines.scripts[DescribeEngine] = [described_with_cuda()]
    sensor_source.send(AWAKE)
    qtbot.waitUntil(lambda: len(questions(engines)) == 2)
    assert questions(engines) == [POLITELY, POLITELY]


@pytest.mark.parametrize(
    ("environment", "question"),
    [(None, POLITELY), (EngineEnvironment(visible_devices="GPU-1"), WAKING)],
)
def test_a_fresh_engine_wakes_a_card_only_where_one_was_chosen(
    qtbot: QtBot,
    engines: Engines,
    laptop: Studio,
    environment: EngineEnvironment | None,
    question: DescribeEngine,
) -> None:
    laptop.session.restart(environment)
    qtbot.waitUntil(lambda: laptop.session.is_free)
    assert engines.latest.requests == [question]
