"""The Devices tab's state where the selected device is another PC's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.notice import Tone
from tests.fakes.pc import gt_1030_card, reading, two_cards

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.devices.devices import DevicesModel
    from gpu_studio.model.pc import RemotePc
    from gpu_studio.model.studio import Studio
    from tests.fakes.other_pcs import OtherPcs

CARD = f"attic/{gt_1030_card().uuid}"
with_the_same_card = pytest.mark.parametrize("inventory", [two_cards()])


@pytest.fixture
def model(ready_studio: Studio, attic: RemotePc) -> DevicesModel:
    from gpu_studio.model.devices.devices import DevicesModel

    model = DevicesModel(ready_studio, ready_studio)
    model.select(CARD)
    return model


def test_its_facts_sensors_and_findings_are_those_of_its_own_pc(
    qtbot: QtBot, model: DevicesModel, attic: RemotePc, other_pcs: OtherPcs
) -> None:
    with qtbot.waitSignal(attic.sensors.reading_taken):
        other_pcs.sources[0].send(reading(other_pcs.inventory, 5.0))
    assert model.verdict.tone is Tone.GOOD, "this PC has no card"
    assert model.spans
    assert any(fact.key == "name" for group in model.groups for fact in group.facts)
    assert [one.label for one in model.devices_of(attic)] == ["CPU · attic", "GT 1030 · attic"]
    model._studio.settings.change(may_end_processes=True)
    assert model.processes
    assert not model.to_end, "a process of another PC is not ended by its number here"


@with_the_same_card
def test_a_twin_there_is_another_device(
    model: DevicesModel, studio: Studio, attic: RemotePc
) -> None:
    assert model.pc is attic
    model.select(gt_1030_card().uuid or "")
    assert model.pc is studio.pcs.here


def test_a_lost_line_is_the_verdict_and_the_last_readings_stay(
    qtbot: QtBot, model: DevicesModel, attic: RemotePc, other_pcs: OtherPcs
) -> None:
    with qtbot.waitSignal(attic.sensors.reading_taken):
        other_pcs.sources[0].send(reading(other_pcs.inventory, 5.0))
    attic.shut()
    assert model.verdict.sentence == "attic is not connected."
    assert model.trouble == "attic is not connected. You see the last readings."
    assert model.spans


def test_a_removed_pc_leaves_the_selection_here(
    model: DevicesModel, studio: Studio, attic: RemotePc
) -> None:
    studio.pcs.remove(attic)
    assert model.pc is studio.pcs.here
    assert model.device is not None
    assert model.device.is_cpu
