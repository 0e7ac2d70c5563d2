import pytest

from tests.fakes.pc import reading, two_cards

pytestmark = pytest.mark.parametrize("inventory", [two_cards()])


def codes(studio):
    return [finding.code for finding in studio.doctor.findings]


def test_a_link_is_judged_once_the_card_was_seen_to_work(
    qtbot, ready_studio, sensor_source, inventory
):
    asleep = reading(inventory, 1.0, pcie_generation=1, pcie_width=1, pstate=8)
    with qtbot.waitSignal(ready_studio.sensors.reading_taken):
        sensor_source.send(asleep)
    assert "slow_link" not in codes(ready_studio)
    work = {"utilization_percent": 99.0, "pstate": 0, "pcie_generation": 4}
    with qtbot.waitSignal(ready_studio.doctor.findings_changed):
        sensor_source.send(reading(inventory, 2.0, pcie_width=1, **work))
    assert "slow_link" in codes(ready_studio)
    with qtbot.waitSignal(ready_studio.doctor.findings_changed):
        sensor_source.send(reading(inventory, 3.0, pcie_width=16, **work))
    assert "slow_link" not in codes(ready_studio)
