"""The variables that hide AMD's and Intel's cards from PyTorch; CUDA's own is read by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SELECTOR = "ONEAPI_DEVICE_SELECTOR"
# "GPU isolation techniques" of HIP, which also reads CUDA's; Level Zero's specification, "Affinity
# Mask"; oneAPI DPC++, "Environment Variables".
HIDING_VARIABLES = {
    "rocm": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "xpu": ("ZE_AFFINITY_MASK", _SELECTOR),
}


def hiding_variable(kind: str, variables: Mapping[str, str], count: int) -> str:
    """Return a variable that surely leaves no card to a kind of build; empty if none does.

    Args:
        kind: the kind of PyTorch's build.
        variables: the environment.
        count: the number of cards that such a build is for.
    """
    for name in HIDING_VARIABLES.get(kind, ()):
        hides = hides_level_zero if name == _SELECTOR else hides_all
        if name in variables and hides(variables[name], count):
            return name
    return ""


def hides_all(value: str, count: int) -> bool:
    """Return whether a list of cards to show surely names none of them.

    It is empty, or begins with a number that is not below their count, after which CUDA, HIP and
    Level Zero take no further entry. A name that is no number may be one of them.
    """
    entries = [entry.strip().partition(".")[0] for entry in value.split(",")]
    if not any(entries):
        return True
    if not entries[0].lstrip("-").isdecimal():
        return False
    return not 0 <= int(entries[0]) < max(count, 1)


def hides_level_zero(value: str, _count: int) -> bool:
    """Return whether a choice of SYCL's devices leaves out Level Zero, PyTorch's way to Intel's."""
    chosen = {term.partition(":")[0].strip() for term in value.split(";")} - {""}
    wanted = {name for name in chosen if not name.startswith("!")}
    return bool(wanted) and wanted.isdisjoint({"level_zero", "*"})
