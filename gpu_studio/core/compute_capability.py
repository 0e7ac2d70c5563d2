"""Which code runs on which NVIDIA card.

A compute capability is a pair of whole numbers, (8, 6), never a float: 8.6 - 8 is not 0.6.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
# Jetson and Drive chips run only code that was built for exactly these chips: DEVICE_REQUIREMENT in
# torch/cuda/__init__.py, 2.13.0.
_EMBEDDED = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})


def serves(arch_list: Iterable[str], compute_capability: tuple[int, int]) -> bool:
    """Return whether code that was built for these architectures runs on a card.

    The rules are in the CUDA C++ programming guide, "Binary Compatibility" and "PTX Compatibility":
    a cubin (sm_XY) runs on cards of the same major number and the same or a higher minor number;
    PTX (compute_XY) on every card from X.Y on; code with the suffix "a" only on exactly that card.

    Args:
        arch_list: The value of `torch.cuda.get_arch_list()`. Unknown entries are ignored.
        compute_capability: (major, minor).
    """
    return any(_runs_on(arch, compute_capability) for arch in arch_list)


@functools.lru_cache(maxsize=4096)  # comparing two tables of builds asks 400 times the same
def _runs_on(arch: str, card: tuple[int, int]) -> bool:
    match = ARCH.fullmatch(arch)
    if match is None:
        return False
    code = (int(match[2]), int(match[3]))
    if match[1] == "compute" and not match[4]:
        return card >= code
    if match[4] == "a" or code in _EMBEDDED or card in _EMBEDDED:
        return card == code
    return card[0] == code[0] and card[1] >= code[1]


def version_numbers(text: str | None) -> tuple[int, ...]:
    """Return the numbers of a version, "580.65.06" → (580, 65, 6); empty if there are none."""
    match = re.match(r"\s*(\d+(?:\.\d+)*)", text or "")
    return tuple(int(part) for part in match[1].split(".")) if match else ()
