"""The makers whose cards this program reads. A new one is a folder and a line here."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

from gpu_studio.hardware.card_reader import Maker
from gpu_studio.hardware.linux.adapters import find_adapters
from gpu_studio.hardware.linux.reader import LinuxReader
from gpu_studio.hardware.linux.sys_tree import SysTree, sys_tree
from gpu_studio.hardware.nvidia import nvidia
from gpu_studio.hardware.windows.counters import SlotUse
from gpu_studio.hardware.windows.reader import WindowsReader

NVIDIA = nvidia.NVIDIA
if sys.platform == "win32":  # which knows what NVML hides there
    NVIDIA = replace(NVIDIA, open=partial(nvidia.open_reader, SlotUse().at))

# Last: it takes whatever no maker's own driver reads.
SYSTEM = Maker(
    name="system",
    claims=lambda adapter: bool(adapter.slot),
    kind="",
    open=WindowsReader if sys.platform == "win32" else LinuxReader,
    is_system=True,
)
MAKERS: tuple[Maker, ...] = (NVIDIA, SYSTEM)


def makers_of(tree: SysTree | None = None) -> tuple[Maker, ...]:
    """Return what reads the cards: of another PC's tree only what the tree itself says."""
    tree = tree or sys_tree()
    return (replace(SYSTEM, open=partial(LinuxReader, tree)),) if tree.is_copy else MAKERS


def are_all_cards_asleep(tree: SysTree | None = None) -> bool:
    """Return whether Linux has switched off every card of NVIDIA's; this wakes no card."""
    own = [adapter for adapter in find_adapters(tree or SysTree()) if NVIDIA.claims(adapter)]
    return bool(own) and all(adapter.is_asleep for adapter in own)
