"""The list of workloads, and of those that draw a picture in a race."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.workloads.conv2d import Conv2d
from gpu_studio.engine.workloads.copy import Copy
from gpu_studio.engine.workloads.custom_kernel import CustomKernel
from gpu_studio.engine.workloads.data_parallel import DataParallel
from gpu_studio.engine.workloads.dataloader import Dataloader
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.grow import Grow
from gpu_studio.engine.workloads.launch import Launch
from gpu_studio.engine.workloads.learn import Learn
from gpu_studio.engine.workloads.linear import Linear, TinyLinear
from gpu_studio.engine.workloads.matmul import Matmul
from gpu_studio.engine.workloads.paint import Paint
from gpu_studio.engine.workloads.swarm import Swarm
from gpu_studio.engine.workloads.train_step import TrainStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.engine.workloads.drawing import Picture
    from gpu_studio.engine.workloads.workload import Workload

WORKLOADS: tuple[Workload, ...] = (
    Elementwise(),
    Matmul(),
    TinyLinear(),
    Linear(),
    TrainStep(),
    Dataloader(),
    Copy(),
    Conv2d(),
    CustomKernel(),
    DataParallel(),
    Launch(),
)


PICTURES: tuple[Picture, ...] = (Learn(), Paint(), Grow(), Swarm())


def find_workload(name: str) -> Workload:
    """Return the workload of this name; raises `StudioError` with the known names."""
    return _found(name, WORKLOADS, "workload")


def find_picture(name: str) -> Workload:
    """Return the picture of this name; raises `StudioError` with the known names."""
    return _found(name, PICTURES, "picture")


def _found(name: str, workloads: Sequence[Workload], kind: str) -> Workload:
    for workload in workloads:
        if workload.description.name == name:
            return workload
    names = ", ".join(workload.description.name for workload in workloads)
    raise StudioError(FailureKind.BAD_REQUEST, f"“{name[:20]}” is not a {kind}: choose {names}.")
