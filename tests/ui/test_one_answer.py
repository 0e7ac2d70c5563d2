import msgspec
import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox
from pytestqt.qtbot import QtBot

from gpu_studio.app import build_window
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import Device, Inventory
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine import client
from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.memory.now_model import NowModel
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.race.race_tab import RaceTab
from gpu_studio.ui.switcher.switcher_tab import SwitcherTab
from gpu_studio.ui.theme import Theme
from tests.core.devices.test_build_findings import GEFORCE, RADEON, RYZEN
from tests.driving.window import find
from tests.engine.accelerators.test_makers import pytestmark as needs_backends
from tests.engine.answers import run_request
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import SteadySensors, gt_1030_card, rtx_3060_card, two_cards
from tests.fakes.scripted_engine import Engines
from tests.patience import PATIENCE_S

OLD, NEW = gt_1030_card().identity, rtx_3060_card().identity
SERVED, NOT_SERVED = ("sm_61", "sm_86"), ("sm_75", "sm_86")
REASON = "This PyTorch has no code for your GT 1030 (6.1): install the cu126 build."


@pytest.fixture
def inventory() -> Inventory:
    return two_cards()


@pytest.fixture
def engines(engines: Engines) -> Engines:
    engines.scripts[DescribeEngine] = [
        described_with_cuda(device_count=2, arch_list=NOT_SERVED, cuda_build="13.0")
    ]
    return engines


def test_the_board_has_the_answer(ready_studio: Studio) -> None:
    board = ready_studio.board
    assert [row.obstacle for row in board.rows] == [None, Obstacle.NO_CODE, None]
    assert board.rows[1].reason == REASON
    assert [board.row(one).address for one in (OLD, NEW)] == [None, "cuda:1"]
    assert [row.identity for row in board.usable_cards] == [NEW]


def test_the_benchmark_does_not_offer_it(qtbot: QtBot, ready_studio: Studio, theme: Theme) -> None:
    tab = BenchmarkTab(ready_studio, theme)
    qtbot.addWidget(tab)
    tab.show()
    boxes = find(tab, "benchmark.devices").findChildren(QCheckBox)
    assert [one.isEnabled() for one in boxes] == [True, False, True]
    assert REASON in [box.accessibleDescription() for box in boxes]
    assert QuickComparison(ready_studio).devices == ("cpu", "cuda:1")
    # A new finding leaves the boxes alone.
    ready_studio.board.changed.emit()
    assert find(tab, "benchmark.devices").findChildren(QCheckBox) == boxes


def test_it_does_not_race(qtbot: QtBot, ready_studio: Studio, theme: Theme) -> None:
    tab = RaceTab(ready_studio, theme)
    qtbot.addWidget(tab)
    tab.show()
    race = tab.race
    for side in ("left", "right"):
        contestants = tab.findChild(QComboBox, f"race.contestants.{side}")
        assert f"GT 1030: {REASON}" in contestants.toolTip().splitlines()
    assert {entry.contestant.device for entry in race.entries} == {"cpu", "cuda:1"}
    assert [entry.contestant.device for entry in race.chosen] == ["cpu", "cuda:1"]


def test_the_memory_tab_shows_the_drivers_numbers_and_the_reason(ready_studio: Studio) -> None:
    memory = MemoryModel(ready_studio, ready_studio)
    assert memory.chosen.identity == NEW
    memory.devices.choose(OLD)
    memory.poll()
    assert ready_studio.session.is_free, "nothing is asked of a card without code"
    assert REASON in NowModel(memory, memory).reason


def test_the_switcher_moves_nothing_to_it(qtbot: QtBot, ready_studio: Studio, theme: Theme) -> None:
    tab = SwitcherTab(ready_studio, theme)
    qtbot.addWidget(tab)
    old, new = (
        next(one for one in tab.switch.devices if one.identity == name) for name in (OLD, NEW)
    )
    assert old.number == "cuda:0"
    assert REASON[:-1] in old.warning
    assert not old.use
    assert tab.switch.used is None, "CUDA's first card, which PyTorch cannot use"
    assert not tab.switch.can_move
    assert new.can_use
    assert [row.identity for row in tab.lessons.rows] == [NEW]


def test_it_is_not_checked(ready_studio: Studio) -> None:
    check = CardCheck(ready_studio, ready_studio)
    assert check.device.identity == NEW
    check.choose(device=OLD)
    assert not check.can_run
    assert check.reason == REASON


def test_with_code_for_both_none_refuses(engines: Engines, studio: Studio, qtbot: QtBot) -> None:
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2, arch_list=SERVED)]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    assert [row.obstacle for row in studio.board.rows] == [None, None, None]


with_radeon = needs_backends
# PyTorch lends no kind of device of its own name.
OF_AMD = [msgspec.structs.replace(card, kind="amd") for card in (RYZEN, RADEON)]
CPU = Device(kind="cpu", name="AMD Ryzen 7 7700X 8-Core Processor")


@with_radeon
def test_the_radeon_is_chosen_and_a_number_is_said_to_be_untested(
    pages_on_sight, qtbot, tmp_path, monkeypatch
):
    monkeypatch.setattr(client, "_MODULE", "tests.engine.accelerators.stand_in_engine")
    monkeypatch.setenv("STAND_IN", "amd")
    window = build_window(
        sensor_source=SteadySensors(Inventory(devices=(CPU, *OF_AMD, GEFORCE))),
        settings=Settings(tmp_path / "settings.json"),
        log_path=tmp_path / "log.txt",
    )
    qtbot.addWidget(window)
    window.show()
    studio = window.findChild(Studio)
    waiting = {"timeout": 1000 * PATIENCE_S}
    qtbot.waitUntil(lambda: studio.board.is_complete, **waiting)
    assert (studio.board.current.label, studio.board.current.address) == ("Radeon RX 6600", "amd:1")
    assert [row.label for row in studio.board.usable] == [
        "CPU",
        "Radeon RX 6600",
        "Radeon Graphics",
    ]
    qtbot.waitUntil(lambda: bool(studio.doctor.findings), **waiting)
    assert "not_tested" in {finding.code for finding in studio.doctor.findings}
    # A tensor of Python is always on the first card.
    reply = studio.session.submit(run_request(device="amd:0", workload="matmul"))
    events = []
    reply.event_received.connect(events.append)
    with qtbot.waitSignal(reply.finished, **waiting):
        pass
    event = events[-1]
    assert isinstance(event, RunFinished)
    assert (event.device_name, event.verified) == ("AMD Radeon Graphics", True)
    assert event.doubts == {"not tested": "not tested on this kind of card yet"}
    window.close()
