"""AMD's names for the architectures of its chips: ``gfx1032``.

The names and the generic ones, whose code runs on several chips, are those of LLVM's "User Guide
for AMDGPU Backend" (llvm.org/docs/AMDGPUUsage.html, "Processors" and "Generic processors").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_GENERIC = {
    "gfx9-generic": r"gfx90[02469c]",
    "gfx9-4-generic": r"gfx94[0-2]|gfx950",
    "gfx10-1-generic": r"gfx101[0-3]",
    "gfx10-3-generic": r"gfx103[0-6]",
    "gfx11-generic": r"gfx110[0-3]|gfx115[0-3]",
    "gfx12-generic": r"gfx120[01]",
}


def gfx_name(text: str) -> str:
    """Return the architecture without its features: ``gfx906`` for ``gfx906:sramecc+:xnack-``."""
    return text.partition(":")[0].strip()


def lists_gfx(listed: Iterable[str], chip: str) -> bool:
    """Return whether a build with code for some architectures has code for a chip."""
    names = {gfx_name(name) for name in listed}
    if chip in names:
        return True
    return any(name in names and re.fullmatch(form, chip) for name, form in _GENERIC.items())
