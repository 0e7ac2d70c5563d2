"""The limits of a check, each with its reason."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.messages.check_messages import MemoryCoverage

_MIB = 1 << 20

HARDWARE_BRAKES_FROM_S = 5.0
"""A sound card in a sound PC shows no hardware brake for long."""
DRIVER_HEAT_FROM_S = 30.0
"""The driver lowers the clock to keep the temperature: normal in a laptop for some seconds."""
BRAKED_SHARE = 0.25
"""In a check of one minute, the load lasts 12 s: then this share of it counts as well."""
LOW_CLOCK_SHARE = 0.75
"""Of the base clock, which every card of that name reaches under load. The highest boost clock is
no standard: laptops and old cards stay below it."""
FAN_TURNS_FROM_C = 70.0
"""A card whose fan stops when it is idle starts it again at 50 to 65 °C. A card without a fan
reports none."""
HIGHEST_UNKNOWN_C = 100.0
"""For a device that reports no limit. The "Maximum GPU Temperature" in NVIDIA's specifications of
the GeForce cards since 2012 is 88 to 98 °C."""
LOWEST_C, HIGHEST_C = 0.0, 150.0
"""A chip at work has a temperature in between; 0 and 255 are sensors that are not there."""
OWN_CLOCK_SHARE = 0.5
"""Where the base clock is unknown: of the clock in the first seconds of the load. Boost clocks
fall by a fifth when a card gets warm, not by half."""
STEADY_C, STEADY_S, STEADY_FIRST_S = 1.0, 60.0, 10.0
"""Steady is less than 1 °C a minute, against the ten seconds before that minute."""
STEADY_CLOCK_SHARE, STEADY_CLOCK_S = 0.02, 10.0
"""A clock is steady if it changed by no more than this for that long."""
HEAT_LOST_FROM_S = 5.0
"""A driver that is busy leaves out a reading now and then."""
SLOW_MEMORY_SHARE = 0.05
"""Of the bandwidth. Sound memory moves as much when hot, within the interval of the medians."""
SAME_CLOCK_SHARE, SLOWER_CORE_SHARE = 0.01, 0.9
"""Clocks are the same within 1 %; a chip that is 10 % slower may be what slows its memory down."""
BIT_ERROR_RATE = 1e-12
"""PCI Express Base Specification: at most one wrong bit in so many on a lane, up to generation 5.
Each makes the link send a packet again."""
OVERTIME_S = 10.0
"""A stage takes up to this much longer than planned to test everything once: half a test has no
verdict. The memory stage, which can test less, gives the time back."""
SLOW_STEP_RATIO = 4.0
"""A step that takes this many times as long as a usual one, each of several times in turns with it.
A busy desktop slows both."""
SLOW_LINK_SHARE = 0.5
"""Of what the PCIe link carries without packet headers; pinned copies usually reach 75 to 90 %."""
COMPLETE_SHARE, COMPLETE_TOTAL_SHARE = 0.75, 0.5
"""Under these shares of the free memory and of all memory, the memory test is partial. NVIDIA's
DCGM asks for 75 % of all memory, on cards that draw nothing: a card of 2 GB that draws the desktop
cannot reach that, so the result names the share of all memory. Above 90 %, a test finds hardly more
and the desktop stutters."""
_RESERVE_SHARE = 0.08
_SMALLEST_RESERVE = 128 * _MIB
_LARGEST_RESERVE = 400 * _MIB
_LARGEST_RESERVE_ON_WINDOWS = 600 * _MIB
_RAM_SHARE = 0.25
_RAM_LEFT_FREE = 2048 * _MIB
_SCARCE_RAM_SHARE, _SCARCE_RAM = 0.10, 64 * _MIB


def reserve_bytes(free_bytes: int, *, is_windows: bool = sys.platform == "win32") -> int:
    """Return the free video memory that a check leaves untouched.

    The desktop allocates when a window opens, and a card without free memory makes it stutter or
    lose windows. 8 % of the free memory, at least 128 MiB (a window in 4K has 33 MB a buffer, three
    buffers, and some for its parts). At most 400 MiB, or 600 MiB on Windows, whose driver moves
    memory to RAM before it is full.
    """
    most = _LARGEST_RESERVE_ON_WINDOWS if is_windows else _LARGEST_RESERVE
    return min(max(int(free_bytes * _RESERVE_SHARE), _SMALLEST_RESERVE), most)


def ram_bytes(free_bytes: int) -> int:
    """Return how much RAM a check of the CPU tests at most.

    A quarter of what is free, and no more than leaves 2 GiB for the other programs. Where less than
    that is free, it takes a tenth, at most 64 MiB, which no program notices.
    """
    scarce = min(int(free_bytes * _SCARCE_RAM_SHARE), _SCARCE_RAM)
    return max(min(int(free_bytes * _RAM_SHARE), free_bytes - _RAM_LEFT_FREE), scarce)


def is_enough(coverage: MemoryCoverage) -> bool:
    """Return whether a test of video memory is complete."""
    tested = coverage.tested_bytes
    is_most = tested >= COMPLETE_TOTAL_SHARE * coverage.total_bytes
    return is_most and tested >= COMPLETE_SHARE * coverage.free_bytes
