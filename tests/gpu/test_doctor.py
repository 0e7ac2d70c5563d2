import pytest

from gpu_studio.core.devices.cards import torch_card_of
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.torch_facts import PcProbed
from gpu_studio.engine.devices.description import describe_engine
from gpu_studio.engine.devices.probe_client import probe_pc
from gpu_studio.hardware.reader import PcSensors


@pytest.fixture(scope="module")
def probed() -> PcProbed:
    return probe_pc()


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    sensors = PcSensors()
    found = sensors.inventory()
    sensors.rest()
    return found


def test_a_kernel_runs_on_every_card_that_the_suite_uses(
    card: str, probed: PcProbed, inventory: Inventory
) -> None:
    device = inventory.find(card)
    assert device is not None
    (tried,) = (one for one in probed.cards if torch_card_of(device, (one.card,)))
    assert tried.outcome == "ran", tried.message
    assert tried.card.compute_capability == device.compute_capability


@pytest.mark.real_kernels
def test_the_sum_is_right(probed: PcProbed) -> None:
    assert not [one.card.name for one in probed.cards if one.is_sum_wrong]


def test_the_card_can_be_used_and_is_what_it_says(
    card: str, probed: PcProbed, inventory: Inventory
) -> None:
    device = inventory.find(card)
    assert device is not None
    findings = find(inventory, describe_engine(), probe=probed)
    codes = {finding.code for finding in findings if finding.device_uuid == device.identity}
    assert "ok" in codes
    assert "not_as_named" not in codes, [finding.sentence for finding in findings]
