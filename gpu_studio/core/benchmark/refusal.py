"""Why a workload refuses a run, as a sentence: the engine raises it, a terminal says it earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.parameter import parameters_of
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadDescription


def run_refusal(workload: WorkloadDescription, request: RunWorkload) -> str:
    """Return why a workload refuses a request; empty if it does not."""
    return (
        device_refusal(workload, request.device)
        or dtype_refusal(workload, request.dtype)
        or options_refusal(workload, request.options)
        or mode_refusal(workload, request)
    )


def device_refusal(workload: WorkloadDescription, device: str) -> str:
    """Return why it does not run on a device, by the device's address."""
    if workload.runs_on(device):
        return ""
    return f"{workload.name} does not run on {device}, only on {workload.kinds_text}."


def dtype_refusal(workload: WorkloadDescription, dtype: str) -> str:
    """Return why it does not run in a dtype."""
    if dtype in workload.dtypes:
        return ""
    return f"{workload.name} does not run in {dtype}: choose {', '.join(workload.dtypes)}."


def options_refusal(workload: WorkloadDescription, chosen: Mapping[str, str]) -> str:
    """Return which of the chosen options, by name, it does not have."""
    values = {option.name: option.values for option in workload.options}
    for name, value in chosen.items():
        if name not in values:
            known = f"choose {listed(values, 'or')}" if values else "it has no options"
            return f"{workload.name} has no option “{name[:20]}”: {known}."
        if value not in values[name]:
            known = listed(values[name], "or")
            return (
                f"“{value[:20]}” is not a value of {workload.name}'s option {name}: choose {known}."
            )
    return ""


def mode_refusal(workload: WorkloadDescription, request: RunWorkload) -> str:
    """Return why it is not timed as a request asks, such as with transfers."""
    asked = (one.name for one in parameters_of(type(request)) if one.is_on(request))
    return next((workload.refuses[name] for name in asked if name in workload.refuses), "")
