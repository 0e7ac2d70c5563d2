"""The part of this PC in a training that another PC leads: `JoinTraining`."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.together_messages import TrainingLeft
from gpu_studio.engine.device import resolve
from gpu_studio.engine.replica_group import launch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event as Flag

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.together_messages import JoinTraining

_LONGEST_END_S = 3.0
_LOOK_S = 0.2


def join_training(request: JoinTraining, stop: Flag) -> Iterator[Event]:
    """Take part until the group ends, or until `stop`; nothing is left running.

    Raises:
        StudioError: a device is not here, or the numbers do not fit together.
    """
    devices = [str(resolve(address)) for address in request.devices]
    if request.first_rank + len(devices) > request.ranks or request.size % request.ranks:
        raise StudioError(
            FailureKind.BAD_REQUEST, "The parts of the batch do not fit the devices that train."
        )
    with tempfile.TemporaryDirectory(
        prefix="gpu-studio-group-", ignore_cleanup_errors=True
    ) as folder:
        meeting = [
            f"--first-rank={request.first_rank}",
            f"--ranks={request.ranks}",
            f"--store-port={request.store_port}",
        ]
        torchrun = launch(devices, request.size, "gloo", Path(folder), meeting)
        try:
            while torchrun.is_running and not stop.wait(_LOOK_S):
                pass
        finally:
            with contextlib.suppress(OSError):
                torchrun.end(_LONGEST_END_S)
    yield TrainingLeft()
