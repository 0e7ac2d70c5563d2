"""The names of devices beside the numbers of their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.model.devices.device_board import label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.devices.device_board import DeviceRow


def run_label(run: Run, rows: Sequence[DeviceRow]) -> str:
    """Return the name of a run's device; a recording names its own devices."""
    name = run.result.device_name if run.result else run.device_name
    return _label(run.request.device, name, run.recording, rows)


def result_label(result: RunFinished, rows: Sequence[DeviceRow]) -> str:
    """Return the name of a result's device, as `run_label` does."""
    return _label(result.device, result.device_name, result.recording, rows)


def _label(address: str, name: str, recording: str | None, rows: Sequence[DeviceRow]) -> str:
    if recording is None:
        return label_of(address, rows)
    return f"{'CPU' if is_cpu(address) else short_name(name or address)}, recorded"
