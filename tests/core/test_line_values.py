"""What another PC may say of its devices."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.line_values import UntrustedError, sensors_here
from tests.fakes.pc import gt_1030


@pytest.mark.parametrize("times", [0, 2, 200])
def test_an_inventory_that_no_pc_has_is_refused(times: int) -> None:
    found = gt_1030()
    sensors_here(found, "attic")
    for devices in (found.cards * times, (found.cpu, *found.cards * (times or 1000))):
        impossible = msgspec.structs.replace(found, devices=devices)
        with pytest.raises(UntrustedError):
            sensors_here(impossible, "attic")
