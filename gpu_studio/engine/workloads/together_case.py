"""Why devices of several PCs cannot train together: said before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.distributed as dist

from gpu_studio.core.device_name import pc_of
from gpu_studio.core.rendezvous import trouble_here
from gpu_studio.engine.together_meeting import own_addresses

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case

_COUNTS = (2, 4)  # every size is a power of two


def why_not_together(case: Case) -> str:
    """Return why the devices of a case cannot train together, as a sentence; empty if they can."""
    devices, count = case.together, len(case.together)
    if len(set(devices)) != count or count not in _COUNTS:
        return "Two or four different devices train together, each with an equal part of the batch."
    if devices[0] != case.address:
        return "A device of this PC takes part and comes first, because this PC leads."
    if case.options["way"] != "DistributedDataParallel" or case.options["processes"] != str(count):
        return f"{count} devices train together by DistributedDataParallel, with {count} processes."
    pcs = {pc_of(name) for name in devices} - {""}
    missing = sorted(pcs - {one.name for one in case.other_pcs})
    if missing:
        return f"There is no way to {missing[0]}: connect it first."
    if not pcs:
        return "All devices are of this PC: choose one of another PC as well."
    if case.size % count:
        return f"{case.size} samples cannot be shared by {count} evenly: choose a multiple."
    if not dist.is_gloo_available():
        return "This PyTorch has no gloo, with which the processes exchange numbers."
    return trouble_here(case.rendezvous, own_addresses()) if case.rendezvous else ""
