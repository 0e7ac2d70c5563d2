"""What ``gpu-studio bench`` was asked for, held against what the engine can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.benchmark.sweep import Sweep
from gpu_studio.core.failure import FailureKind, StudioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.protocol import EngineDescribed, WorkloadDescription

_USUAL_SIZES = (512, 1024, 2048)
_USUAL_DTYPE = "float32"


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; None leaves the choice to the workload, or takes all devices."""

    workload: str
    sizes: tuple[int, ...] | None = None
    is_sweep: bool = False
    dtypes: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    budget_s: float = 2.0
    options: dict[str, str] = msgspec.field(default_factory=dict)
    cache: str = "hot"
    transfers: bool = False
    naive: bool = False


def addresses(description: EngineDescribed) -> list[str]:
    """Return the devices that an engine can use."""
    return ["cpu", *(f"cuda:{index}" for index in range(description.device_count))]


def find_workload(description: EngineDescribed, name: str) -> WorkloadDescription:
    """Return a workload.

    Raises:
        WrongUseError: there is none of that name.
        StudioError: it cannot run here, with what would make it run.
    """
    found = next((one for one in description.workloads if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in description.workloads)
        raise WrongUseError(f"There is no workload “{name[:40]}”; there are {names}.")
    if found.skipped:
        raise StudioError(FailureKind.BAD_REQUEST, f"{found.name} cannot run here: {found.skipped}")
    return found


def plans(request: BenchRequest, description: EngineDescribed) -> list[RunPlan]:
    """Return the plans of a request, one a dtype, the CPU before the cards.

    Raises:
        WrongUseError: the workload is not there, or does not run so.
        StudioError: a device is not there, or the workload cannot run here.
    """
    workload = find_workload(description, request.workload)
    _refuse_modes(request, workload)
    devices = _devices(request.devices, workload, description)
    made: list[RunPlan] = []
    for dtype in _dtypes(request.dtypes, workload):
        plan = Plan(
            workload=workload.name,
            sizes=request.sizes or _sizes(workload),
            dtypes=(dtype,),
            devices=tuple(devices),
            budget_s=request.budget_s,
            options=_options(request.options, workload),
            cache=request.cache,
            transfers=request.transfers,
            naive=request.naive,
        )
        made.append(Sweep(plan) if request.is_sweep else plan)
    return made


def _refuse_modes(request: BenchRequest, workload: WorkloadDescription) -> None:
    wanted = {
        "cold": request.cache == "cold",
        "transfers": request.transfers,
        "naive": request.naive,
    }
    for mode, reason in workload.refuses.items():
        if wanted.get(mode):
            raise WrongUseError(reason)


def _sizes(workload: WorkloadDescription) -> tuple[int, ...]:
    if set(_USUAL_SIZES) <= set(workload.sizes):
        return _USUAL_SIZES
    return workload.sizes


def _dtypes(asked: Sequence[str] | None, workload: WorkloadDescription) -> Sequence[str]:
    if asked is None:
        return (_USUAL_DTYPE if _USUAL_DTYPE in workload.dtypes else workload.dtypes[0],)
    for dtype in asked:
        if dtype not in workload.dtypes:
            raise WrongUseError(
                f"{workload.name} does not run in {dtype}: choose {', '.join(workload.dtypes)}."
            )
    return asked


def _options(asked: dict[str, str], workload: WorkloadDescription) -> dict[str, str]:
    there_are = {option.name: option.values for option in workload.options}
    for name, value in asked.items():
        if name not in there_are:
            known = f"it has {', '.join(there_are)}" if there_are else "it has none"
            raise WrongUseError(f"{workload.name} has no option “{name[:20]}”: {known}.")
        if value not in there_are[name]:
            raise WrongUseError(
                f"“{value[:20]}” is no value of {name}: choose {', '.join(there_are[name])}."
            )
    return asked


def _devices(
    asked: Sequence[str] | None, workload: WorkloadDescription, description: EngineDescribed
) -> list[str]:
    there_are = addresses(description)
    usable = [device for device in there_are if device.partition(":")[0] in workload.device_kinds]
    for device in asked or ():
        if device not in there_are:
            raise StudioError(FailureKind.NO_SUCH_DEVICE, _no_such(device, description))
        if device not in usable:
            kinds = " and ".join(workload.device_kinds)
            raise WrongUseError(f"{workload.name} does not run on {device}: it is for {kinds}.")
    if not usable:
        reason = description.cuda_reason or "there is no card that PyTorch can use"
        raise StudioError(FailureKind.NO_SUCH_DEVICE, f"{workload.name} needs a card: {reason}")
    return sorted(asked or usable, key=lambda device: device != "cpu")


def _no_such(device: str, description: EngineDescribed) -> str:
    there_are = addresses(description)
    verb = "is" if len(there_are) == 1 else "are"
    reason = f" {description.cuda_reason}" if description.cuda_reason else ""
    return f"There is no {device[:20]} here; there {verb} {', '.join(there_are)}.{reason}"
