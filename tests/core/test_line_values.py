"""What another PC may say of its devices and files, and what that means here."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.line_values import UntrustedError, event_here, sensors_here
from gpu_studio.core.messages.placement_messages import FileInspected
from tests.fakes.pc import gt_1030


@pytest.mark.parametrize("times", [0, 2, 200])
def test_an_inventory_that_no_pc_has_is_refused(times: int) -> None:
    found = gt_1030()
    sensors_here(found, "attic")
    for devices in (found.cards * times, (found.cpu, *found.cards * (times or 1000))):
        impossible = msgspec.structs.replace(found, devices=devices)
        with pytest.raises(UntrustedError):
            sensors_here(impossible, "attic")


def test_a_path_there_is_none_here_and_a_snippet_says_where_it_came_from() -> None:
    there = FileInspected(
        path="/etc/passwd", size_bytes=1, tensors=1, tensor_bytes=1, snippet="import torch"
    )
    here = event_here(there, "attic")
    assert isinstance(here, FileInspected)
    assert here.path == ""
    assert here.snippet == "# For attic, where it came from.\nimport torch"
    with pytest.raises(UntrustedError):
        event_here(msgspec.structs.replace(there, snippet="x" * 200_000), "attic")
