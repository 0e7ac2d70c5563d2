from __future__ import annotations

import threading

import pytest

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.torch_facts import CardProbed, PcProbed
from gpu_studio.core.messages.engine_messages import DescribeEngine, TorchCard
from gpu_studio.model.studio import Studio
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030, reading, two_cards

pytestmark = pytest.mark.parametrize("inventory", [two_cards()])


class ScriptedProbe:
    """Answers when it is let go, or gives up when it is told to."""

    def __init__(self, inventory, total=4.0, outcome="ran"):
        cards = [
            TorchCard(torch_index=index, name=card.name, uuid=card.uuid)
            for index, card in enumerate(inventory.cards)
        ]
        self.probed = PcProbed(
            cards=tuple(
                CardProbed(card=card, outcome=outcome, total=total, expected_total=4.0)
                for card in cards
            )
        )
        self.let_go = threading.Event()
        self.turns = 0  # that come before it waits
        self.gave_up = False

    def __call__(self, is_over):
        yield from (card.card for card in self.probed.cards[: self.turns])
        while not self.let_go.wait(0.005):
            if is_over():
                self.gave_up = True
                break
        yield self.probed


@pytest.fixture
def probe(inventory):
    return ScriptedProbe(inventory)


@pytest.fixture
def studio(qtbot, engines, sensor_source, settings, probe):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    studio = Studio(engines, sensor_source, settings, probe=probe)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and bool(studio.doctor.findings))
    yield studio
    studio.close()
    studio.deleteLater()


def codes(studio):
    return [finding.code for finding in studio.doctor.findings]


def check(qtbot, studio, probe):
    studio.doctor.check()
    probe.let_go.set()
    qtbot.waitUntil(lambda: not studio.doctor.is_checking)


def test_a_kernel_that_ran_everywhere_is_reported(qtbot, studio, probe):
    assert studio.doctor.sentence == ""
    check(qtbot, studio, probe)
    assert "2 of 2 cards" in studio.doctor.sentence
    assert codes(studio).count("ok") == 2


@pytest.mark.parametrize("probe", [ScriptedProbe(two_cards(), total=5.0)])
def test_a_wrong_sum_is_found_by_the_check_alone(qtbot, studio, probe):
    assert "wrong_sum" not in codes(studio)
    with qtbot.waitSignal(studio.doctor.findings_changed):
        check(qtbot, studio, probe)
    assert codes(studio)[:2] == ["wrong_sum", "wrong_sum"]


@pytest.mark.parametrize("probe", [ScriptedProbe(two_cards(), outcome="no_code")])
def test_the_board_of_devices_believes_the_kernel(qtbot, studio, probe):
    assert [card.obstacle for card in studio.board.cards] == [None, None]
    check(qtbot, studio, probe)
    assert [card.obstacle for card in studio.board.cards] == [Obstacle.NO_CODE] * 2


def test_one_check_at_a_time_and_the_sensors_watch_it(qtbot, studio, probe):
    studio.sensors.want("window", False)
    studio.doctor.check()
    assert (studio.doctor.is_checking, studio.doctor.can_check) == (True, False)
    assert studio.sensors.is_polled
    assert studio.doctor.sentence.startswith("Loading PyTorch")
    probe.let_go.set()
    qtbot.waitUntil(lambda: not studio.doctor.is_checking)
    assert not studio.sensors.is_polled


def test_a_check_reports_where_it_is(qtbot, studio, probe):
    probe.turns = 2
    studio.doctor.check()
    qtbot.waitUntil(lambda: "cuda:1, NVIDIA GeForce RTX 3060" in studio.doctor.sentence)
    probe.let_go.set()
    qtbot.waitUntil(lambda: not studio.doctor.is_checking)
    assert "2 of 2" in studio.doctor.sentence


def test_a_check_can_be_stopped_and_then_says_nothing_of_the_cards(qtbot, studio, probe):
    probe.turns = 1
    before = studio.doctor.findings
    studio.doctor.stop()
    assert studio.doctor.sentence == ""
    studio.doctor.check()
    qtbot.waitUntil(lambda: "cuda:0" in studio.doctor.sentence)
    studio.doctor.stop()
    assert studio.doctor.sentence == "Stopping the test…"
    qtbot.waitUntil(lambda: not studio.doctor.is_checking)
    assert probe.gave_up
    assert "stopped" in studio.doctor.sentence
    assert studio.doctor.findings == before
    assert studio.doctor.can_check


def test_other_cards_were_not_tried(qtbot, studio, probe, sensor_source):
    check(qtbot, studio, probe)
    with qtbot.waitSignal(studio.doctor.findings_changed):
        sensor_source.send(gt_1030())
    assert studio.doctor.sentence == ""


@pytest.mark.parametrize("probe", [ScriptedProbe(two_cards(), outcome="no_code")])
def test_another_build_of_pytorch_was_not_tried(qtbot, studio, probe, engines):
    check(qtbot, studio, probe)
    studio.session.restart()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert [card.obstacle for card in studio.board.cards] == [Obstacle.NO_CODE] * 2
    other = described_with_cuda(device_count=2, torch_version="2.13.0+cu130", cuda_build="13.0")
    engines.scripts[DescribeEngine] = [other]
    studio.session.restart()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert [card.obstacle for card in studio.board.cards] == [None, None]
    assert studio.doctor.sentence == ""


def test_closing_gives_a_check_up(studio, probe):
    studio.doctor.check()
    studio.close()
    assert probe.gave_up


def test_a_check_that_cannot_start_is_a_sentence(qtbot, studio, monkeypatch):
    def fail(_is_over):
        raise OSError("no more processes")

    monkeypatch.setattr(studio.doctor, "_probe", fail)
    studio.doctor.check()
    qtbot.waitUntil(lambda: not studio.doctor.is_checking)
    assert all(word in studio.doctor.sentence for word in ("not start", "log"))


def test_a_link_is_judged_once_the_card_was_seen_to_work(
    qtbot, studio, probe, sensor_source, inventory
):
    asleep = reading(inventory, 1.0, pcie_generation=1, pcie_width=1, pstate=8)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensor_source.send(asleep)
    assert "slow_link" not in codes(studio)
    work = {"utilization_percent": 99.0, "pstate": 0, "pcie_generation": 4}
    with qtbot.waitSignal(studio.doctor.findings_changed):
        sensor_source.send(reading(inventory, 2.0, pcie_width=1, **work))
    assert "slow_link" in codes(studio)
    with qtbot.waitSignal(studio.doctor.findings_changed):
        sensor_source.send(reading(inventory, 3.0, pcie_width=16, **work))
    assert "slow_link" not in codes(studio)
