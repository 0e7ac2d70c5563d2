"""The stages of a check: their order, words and share of the time, limits, planted faults, code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.adapters import is_adapter
from gpu_studio.core.messages.check_messages import STAGE_NAMES, PlantKind, StageName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_studio.core.messages.check_messages import MemoryCoverage


GLANCE_MINUTES, NORMAL_MINUTES, OVERNIGHT_MINUTES = 1, 6, 480
CHECK_MINUTES = (GLANCE_MINUTES, NORMAL_MINUTES, OVERNIGHT_MINUTES)
ROUND_MINUTES = 30
"""An overnight check warms the card up and lets it rest again this often: weak solder joints and
marginal clocks fail when the temperature or the clock changes."""
UNSENSED_LOAD_S = 60.0
"""How long a device is loaded at most that reports no temperature to wait for."""
SPARE_TIME_OF: StageName = "load"
SPARE_TIME_TO: StageName = "memory"
"""A load that is steady early leaves its time to the memory, where more time finds more."""


class CheckStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage in words.

    ``share`` is the stage's part of a round's time. ``tests`` says what it does, ``misses`` what it
    cannot find. A CPU has no video memory and no link: ``cpu_title``, ``cpu_tests`` and
    ``cpu_misses`` are for it, empty if there is no difference.
    """

    name: StageName
    title: str
    cpu_title: str = ""
    share: float = 0.0
    tests: str = ""
    misses: str = ""
    cpu_tests: str = ""
    cpu_misses: str = ""


STAGES: tuple[CheckStage, ...] = (
    CheckStage(
        name="load",
        title="Load and heat",
        share=0.42,
        tests="Matrix products at full load, until the temperature changes by less than 1 °C in a "
        "minute; then bursts with rests between them, at 20 to 100 % of the time. The speed of "
        "the memory, first and when hot.",
        misses="Faults that need a game's graphics units, and heat that builds up over hours. The "
        "fan's real speed is not measured.",
        cpu_tests="Matrix products at full load, until the temperature changes by less than 1 °C "
        "in a minute; then bursts with rests between them, at 20 to 100 % of the time.",
        cpu_misses="Heat that builds up over hours. Most CPUs do not report throttling.",
    ),
    CheckStage(
        name="compute",
        title="Compute",
        share=0.16,
        tests="IEEE arithmetic on random bits, exact products and convolutions with their "
        "gradients, whole numbers, indexed access, random numbers, and work that fills the card.",
        misses="Faults in units that PyTorch does not use: graphics, video, ray tracing.",
        cpu_misses="Faults in units that PyTorch does not use.",
    ),
    CheckStage(
        name="layouts",
        title="Correctness of PyTorch",
        share=0.06,
        tests="Does PyTorch compute correctly here? Operations in place, with out= and plain, on "
        "tensors of two and three dimensions in every layout, small and above 100,000 elements; "
        "functions with known answers, with NaN, infinities, ties and extremes.",
        misses="The other operations of PyTorch. A mistake of PyTorch is the same on every card "
        "of a model: you can leave this stage out to check a card.",
    ),
    CheckStage(
        name="memory",
        title="Video memory",
        cpu_title="RAM",
        share=0.28,
        tests="Patterns in all free memory less a reserve, up and down, with a rest before they "
        "are read: addresses, random words, walking ones, and the inverse of each.",
        misses="Memory that other programs hold, and errors rarer than one in this time. It "
        "cannot tell a bad memory chip from a bad memory controller.",
        cpu_tests="Patterns in a quarter of the free RAM, with 2 GiB left free, or in as much of "
        "it as there is time for: addresses, random words, walking ones, and their inverse.",
        cpu_misses="RAM that other programs hold, and most of the rest: the result says how much "
        "was tested. A test that starts instead of the system, such as MemTest86+, reaches all.",
    ),
    CheckStage(
        name="link",
        title="PCIe link",
        cpu_title="Copies in RAM",
        share=0.08,
        tests="Copies in both directions, also while the card computes, timed and compared bit "
        "for bit; the card's own counter of repeated packets.",
        misses="Errors that the link corrected and the card does not count.",
        cpu_tests="Copies within RAM, also while the CPU computes, timed and compared bit for bit.",
        cpu_misses="Errors that the memory corrected by itself.",
    ),
)  # fmt: skip
_BY_NAME = {stage.name: stage for stage in STAGES}
assert tuple(_BY_NAME) == STAGE_NAMES
_BY_NAME |= {
    "steps": CheckStage(name="steps", title="Load in steps"),
    "cool": CheckStage(name="cool", title="Cool down"),
}
_BY_ADAPTER: dict[StageName, CheckStage] = {
    "compute": CheckStage(
        name="compute",
        title="Compute",
        tests="Exact products of whole numbers, ten statements on each number, and copies, again "
        "and again, compared with NumPy's.",
        misses="Faults in units that these shaders do not use: graphics, video, ray tracing.",
    ),
    "memory": CheckStage(
        name="memory",
        title="Memory",
        tests="Patterns in as much memory as the driver gives, up and down, with a rest before "
        "they are read: addresses, random words, walking ones, and the inverse of each.",
        misses="Memory that other programs hold or the driver does not give, and errors rarer than "
        "one in this time.",
    ),
}
OPTIONAL_STAGE: StageName = "layouts"
"""About PyTorch more than about the card: a check of one minute has no time for it."""


def stages_for(minutes: int, address: str) -> tuple[StageName, ...]:
    """Return the stages of a device that a check of this length has time for."""
    is_long = minutes > GLANCE_MINUTES
    return tuple(name for name in stages_of(address) if is_long or name != OPTIONAL_STAGE)


def stage_title(name: StageName, address: str) -> str:
    """Return a stage's title for a device."""
    return stage_words(name, address).title


def stages_of(address: str) -> tuple[StageName, ...]:
    """Return the stages that there are for a device; without PyTorch, they are fewer."""
    return tuple(_BY_ADAPTER) if is_adapter(address) else STAGE_NAMES


def stage_words(name: StageName, address: str) -> CheckStage:
    """Return a stage with the words for a device."""
    stage = _BY_NAME[name]
    if is_adapter(address):
        return _BY_ADAPTER.get(name, stage)
    if not is_cpu(address):
        return stage
    return msgspec.structs.replace(
        stage, title=stage.cpu_title or stage.title, tests=stage.cpu_tests or stage.tests,
        misses=stage.cpu_misses or stage.misses,
    )  # fmt: skip


def in_order(names: Iterable[StageName]) -> tuple[StageName, ...]:
    """Return the stages that there are today in the order in which they run, each once."""
    chosen = set(names)
    return tuple(name for name in STAGE_NAMES if name in chosen)


def stage_budget_s(name: StageName, round_s: float) -> float:
    """Return the time of a stage in a round, in seconds.

    The memory stage also gets the time that the load stage did not need.
    """
    return _BY_NAME[name].share * round_s


def round_count(minutes: int) -> int:
    """Return the number of rounds of a check."""
    return max(1, minutes // ROUND_MINUTES)


def round_s(minutes: int) -> float:
    """Return the time of one round in seconds."""
    return 60.0 * minutes / round_count(minutes)


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
"""Of the bandwidth. Sound memory moves as much when hot."""
SAME_CLOCK_SHARE, SLOWER_CORE_SHARE = 0.01, 0.9
"""Clocks are the same within 1 %; a chip that is 10 % slower may be what slows its memory down."""
BIT_ERROR_RATE = 1e-12
"""PCI Express Base Specification: at most one wrong bit in so many on a lane, up to generation 5.
Each makes the link send a packet again."""
OVERTIME_S = 10.0
"""A stage takes up to this much longer than planned to test everything once: half a test has no
verdict. The memory stage, which can test less, gives the time back."""
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


class PlantedFault(NamedTuple):
    """A fault in words; ``found_by`` are the stages that find it."""

    kind: PlantKind
    title: str
    does: str
    found_by: tuple[StageName, ...]


PLANTED_FAULTS = (
    PlantedFault("bit", "A flipped bit", "One bit of each result is flipped.", STAGE_NAMES),
    PlantedFault("stuck", "A stale result", "A result is replaced by the one before it.",
     STAGE_NAMES),
    PlantedFault("swap", "Swapped blocks", "Two blocks of each result change places.", STAGE_NAMES),
    PlantedFault("drop", "A lost write",
     "A part of each result is not written, so that the old values stay.", STAGE_NAMES),
    PlantedFault("throttle", "Throttling",
     "The card's sensors report a hot card that slows itself down.", STAGE_NAMES),
    PlantedFault("hot", "Heat without a reason",
     "The card's sensors report 105 °C, and no reason for its clock.", STAGE_NAMES),
    PlantedFault("late_heat", "Heat that comes late",
     "From second 13 on, the sensors report a hot card at 300 MHz.", STAGE_NAMES),
    PlantedFault("edge", "An unstable start", "The first work after a rest has a flipped bit.",
     ("load",)),
    PlantedFault("slow_memory", "Memory that tires",
     "The memory of a hot card takes a quarter longer for each copy.", ("load",)),
)  # fmt: skip
PLANTED_MARK = "Fault made on purpose: not a real result."
"""Stands with every result of a check with a planted fault."""


def fault_words(kind: PlantKind) -> str:
    """Return what the fault of a kind does; an older record has one that there is no more."""
    return next((one.does for one in PLANTED_FAULTS if one.kind == kind), "A step is slow.")


_CODE = """\
import time

import torch

device = torch.device("{address}")
# Load and heat: whole numbers, so that the product is exact
a = torch.randint(-127, 128, (512, 512)).float()
on_device, exact = a.to(device), a @ a
for duty in (1.0, 0.2, 0.6):
    for _ in range(20):
        begun_s = time.perf_counter()
        assert torch.equal((on_device @ on_device).cpu(), exact), "a wrong product"
        time.sleep((time.perf_counter() - begun_s) * (1 - duty) / duty)

# Compute: whole numbers, and an indexed access
values, places = torch.arange(1 << 18), torch.randperm(1 << 18)
gathered = values.to(device)[places.to(device)].cpu()
assert torch.equal(gathered, values[places]), "a wrong element"

# Correctness of PyTorch: an operation in place, in three layouts
x, y, z = torch.randn(3, 96, 128)
transposed, strided = x.T.contiguous().T, x.repeat_interleave(2, 1)[:, ::2]
for on_cpu in (x.clone(), transposed, strided):
    there = torch.empty_strided(on_cpu.shape, on_cpu.stride(), device=device).copy_(on_cpu)
    on_cpu.addcmul_(y, z)
    there.addcmul_(y.to(device), z.to(device))
    torch.testing.assert_close(there.cpu(), on_cpu)

# Memory: 64 MiB; the check takes all
words = torch.empty(8 << 20, dtype=torch.int64, device=device)
for pattern in (0, -1, 0x5555555555555555, -0x5555555555555556):
    words.fill_(pattern)
    assert not (words != pattern).any(), "a wrong word"
torch.arange(len(words), out=words)  # each word holds its own address
assert torch.equal(words.cpu(), torch.arange(len(words))), "a word in the wrong place"

# Link: a copy there and back
begun_s = time.perf_counter()
back = values.to(device, copy=True).cpu()
seconds = time.perf_counter() - begun_s
assert torch.equal(back, values), "a copy arrived changed"
print(f"No error; {{2 * values.nbytes / seconds / 1e9:.1f}} GB/s there and back")
"""


def check_code(address: str) -> str:
    """Return the core of each stage in a few lines, for a device in PyTorch's words."""
    return _CODE.format(address=address)
