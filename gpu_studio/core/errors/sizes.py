"""An out-of-memory error's sizes: the kind that follows from them, and their words."""

from __future__ import annotations

import re

from gpu_studio.core.memory.oom_text import OomNumbers, rounding_bytes, usual_holes_bytes
from gpu_studio.core.units import format_bytes, format_percent
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import last_build

_VARIABLE = re.compile(r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF")
_TOOLS = {
    "HIP": ("PYTORCH_HIP_ALLOC_CONF", "amd-smi", "cuda"),
    "XPU": ("PYTORCH_ALLOC_CONF", "xpu-smi", "xpu"),
}
_NVIDIA = ("PYTORCH_CUDA_ALLOC_CONF", "nvidia-smi", "cuda")
SENTENCES = (
    "The program asked for {tried}.", "{free} was free.", "The card has {alone}.",
    "The program held {held}.",
)  # fmt: skip
"""What the sizes say, whatever the kind is."""
SHARED = (
    "If this is graphics inside a processor (such as Strix Halo), its limit is a setting of the "
    "system, mostly half of the RAM. On Linux, AMD's tool amd-ttm changes it."
)
_REFUSED = (
    "For each piece, the driver also needs the PC's memory (RAM, and on Windows the page file) and "
    "some of the card. How much is not known."
)
_REFUSED_BY_AMD = "With AMD cards on Windows this is known, and open: Comfy-Org/ComfyUI#13112."
_LARGEST_INTEL_PIECE = 4 << 30
# AMD's cards for a home PC have up to 48 GB; the graphics of processors share the PC's memory.
_LARGEST_CARD, _HALF = 49 << 30, 64 << 30


def filled(sentences: tuple[str, ...], words: dict[str, str]) -> list[str]:
    """Return the sentences with what they name, without those of which something is not known."""
    return [
        one.format(**words)
        for one in sentences
        if one and all(words[key] for key in re.findall(r"\{(\w+)\}", one))
    ]


def words_of(error: str, numbers: OomNumbers) -> dict[str, str]:
    """Return the sizes in words and the names of the maker's tools; empty for what is not known."""
    sizes = {
        "tried": numbers.tried_bytes, "total": numbers.total_bytes, "free": numbers.free_bytes,
        "limit": numbers.limit_bytes, "other": numbers.other_bytes,
        "others": numbers.others_bytes or None, "held": numbers.held_bytes or None,
        "holes": numbers.holes_bytes,
        "elsewhere": None if numbers.processes else numbers.elsewhere_bytes or None,
        "alone": numbers.total_bytes if numbers.free_bytes is None else None,
    }  # fmt: skip
    words = {key: "" if size is None else format_bytes(size) for key, size in sizes.items()}
    if words["free"] and words["total"]:
        words["free"] += f" of {words['total']}"
    tried, free = numbers.tried_bytes or 0, numbers.free_bytes
    lacking = 0 if free is None else tried - free
    # A difference of rounded numbers is only said where the rounding does not matter.
    is_exact = 10 * (rounding_bytes(tried) + rounding_bytes(free or 0)) < lacking
    words["too_little"] = f": {format_bytes(lacking)} too little" if is_exact else ""
    allocated, total = numbers.allocated_bytes, numbers.total_bytes
    words["share"] = format_percent(allocated / total) if allocated and total else ""
    variable = _VARIABLE.search(error)
    conf, monitor, module = _TOOLS.get(error[:3], _NVIDIA)
    is_of_amd = error[:3].upper() == "HIP"
    refusal = _REFUSED_BY_AMD if is_of_amd else _REFUSED
    tools = {"conf": variable[0] if variable else conf, "monitor": monitor, "module": module}
    return words | tools | {"refusal": refusal, "while": "" if is_of_amd else "it runs"}


def may_be_shared(error: str, numbers: OomNumbers) -> bool:
    """Return whether a card is so large that it may be a processor's graphics of AMD."""
    return error[:3].upper() == "HIP" and _LARGEST_CARD < (numbers.total_bytes or 0) < 2 * _HALF


def other_build(capability: str) -> str:
    """Return which published build has code for a compute capability, in a sentence."""
    try:
        major, minor = map(int, capability.split("."))
    except ValueError:
        return ""
    last = last_build(load_table(), (major, minor))
    if last is None:
        return "No published PyTorch since 2.0 is known to have code for it."
    return f"The newest published build with code for it: PyTorch {last.torch[1]}, {last.tag}."


def kind_by_numbers(error: str, numbers: OomNumbers) -> str:
    """Return what an error means, a key of `kinds.KINDS`, from its sizes."""
    tried, total, free = numbers.tried_bytes or 0, numbers.total_bytes or 0, numbers.free_bytes
    if total and tried > total:
        return "too_large"
    if total and numbers.held_bytes > total + total // 64:  # beyond the rounding
        return "spilled"
    if free is None:
        return "unknown"
    elsewhere = numbers.elsewhere_bytes
    is_elsewhere = elsewhere > max(numbers.held_bytes, total // 2) and tried <= free + elsewhere
    # The last part of a card, a few MiB up to a percent or two, goes to no program.
    is_last_part = free <= min(max(total // 64, 64 << 20), 512 << 20)
    if tried and (tried >= free or numbers.limit_bytes is not None):
        return _kind_without_room(numbers, tried, free, is_elsewhere=is_elsewhere)
    if is_last_part or not tried:
        return "others" if is_elsewhere else "card_full" if is_last_part else "unknown"
    is_large = error.startswith("XPU") and tried > _LARGEST_INTEL_PIECE
    return "too_large" if is_large else "had_room"


def _kind_without_room(numbers: OomNumbers, tried: int, free: int, *, is_elsewhere: bool) -> str:
    limit, total, holes = numbers.limit_bytes, numbers.total_bytes or free, numbers.holes_bytes
    room = 1 << 62
    if limit is not None:  # less the rounding of the numbers
        room = max(0, limit - numbers.from_driver_bytes - limit // 64)
    # A difference of rounded numbers may be none.
    is_in_pieces = holes - rounding_bytes(holes) > usual_holes_bytes(total)
    if is_in_pieces and tried <= min(free, room) + holes:
        return "fragmented"
    if limit is not None and tried <= free:
        return "over_budget"
    others = numbers.others_bytes
    # In a container, PyTorch may list itself among the others.
    is_sound = numbers.held_bytes + others + free <= total + total // 64
    if others and is_sound and tried <= min(free + others, room) + holes:
        return "others"
    return "others" if is_elsewhere and not others and tried <= room else "card_full"
