"""The stages of a check: their order, their share of the time, and what each tests, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.check_messages import STAGE_NAMES, StageName

if TYPE_CHECKING:
    from collections.abc import Iterable

GLANCE_MINUTES, NORMAL_MINUTES, OVERNIGHT_MINUTES = 1, 6, 480
CHECK_MINUTES = (GLANCE_MINUTES, NORMAL_MINUTES, OVERNIGHT_MINUTES)
ROUND_MINUTES = 30
"""An overnight check warms the card up and cools it down again this often: weak solder joints and
marginal clocks fail when the temperature or the clock changes."""
UNSENSED_LOAD_S = 60.0
"""How long a device is loaded at most that reports no temperature to wait for."""


SPARE_TIME_OF: StageName = "load"
SPARE_TIME_TO: StageName = "memory"
"""A load that is steady early leaves its time to the memory, where more time finds more."""


class CheckStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage in words.

    ``share`` is the stage's part of a round's time. ``tests`` says what it does, ``catches`` and
    ``misses`` what it can and cannot find. A CPU has no video memory and no link: ``cpu_title``,
    ``cpu_tests``, ``cpu_catches`` and ``cpu_misses`` are for it, empty if there is no difference.
    """

    name: StageName
    title: str
    cpu_title: str = ""
    share: float
    tests: str
    catches: str
    misses: str
    cpu_tests: str = ""
    cpu_catches: str = ""
    cpu_misses: str = ""


STAGES: tuple[CheckStage, ...] = (
    CheckStage(
        name="load",
        title="Warm up",
        share=0.33,
        tests="Matrix products and element-wise work, until the temperature changes by less than "
        "1 °C in a minute. The speed of the memory, first and when hot.",
        catches="Results that change under heat; a step that takes much longer each time; a low "
        "clock; memory that is slower when hot. Heat and throttling, as in every stage.",
        misses="Faults that need a game's graphics units, and heat that builds up over hours. The "
        "fan's real speed is not measured.",
        cpu_tests="Matrix products and element-wise work, until the temperature changes by less "
        "than 1 °C in a minute.",
        cpu_catches="Results that change under heat; a step that takes much longer each time; a "
        "low clock. Heat and throttling, as in every stage.",
        cpu_misses="Heat that builds up over hours. Most CPUs do not report throttling.",
    ),
    CheckStage(
        name="steps",
        title="Load in steps",
        share=0.12,
        tests="Bursts of exact products with rests between them: 20 to 100 % of the time, in "
        "periods of 5 ms to 1 s.",
        catches="Wrong results at part load and when a load begins: weak power delivery and "
        "unstable clocks.",
        misses="Errors of graphics units, and those that need the load of a certain game.",
        cpu_misses="Errors that need the load of a certain program.",
    ),
    CheckStage(
        name="compute",
        title="Compute",
        share=0.16,
        tests="IEEE arithmetic on random bits, exact products and convolutions with their "
        "gradients, about 180 operations with known answers, random numbers and indexed access.",
        catches="Wrong, stale, swapped and missing results in 12 dtypes, down to the last bit if "
        "the result is exact.",
        misses="Faults in units that PyTorch does not use: graphics, video, ray tracing.",
        cpu_misses="A result that is wrong in the same way each time, as there is no second CPU "
        "to compare with.",
    ),
    CheckStage(
        name="layouts",
        title="Operations and layouts",
        share=0.05,
        tests="27 operations in seven dtypes, in place and not, on contiguous, transposed, strided "
        "and sliced tensors, compared with the CPU.",
        catches="An operation that PyTorch and this card compute differently in one layout or "
        "dtype, and a write outside of the tensor.",
        misses="The other operations of PyTorch, and sizes over a few thousand elements.",
    ),
    CheckStage(
        name="memory",
        title="Video memory",
        cpu_title="RAM",
        share=0.18,
        tests="Patterns in all free memory less a reserve: walking ones, addresses, random "
        "words, and the inverse of each.",
        catches="Bits that stick, flip or fade, words in the wrong place, and lost writes.",
        misses="Memory that other programs hold, and errors rarer than one in this time. It "
        "cannot tell a bad memory chip from a bad memory controller.",
        cpu_tests="Patterns in a quarter of the free RAM, with 2 GiB left free, or in as much of "
        "it as there is time for: walking ones, addresses, random words, and their inverse.",
        cpu_misses="RAM that other programs hold, and most of the rest: the result says how much "
        "was tested. A test that starts instead of the system, such as MemTest86+, reaches all.",
    ),
    CheckStage(
        name="link",
        title="PCIe link",
        cpu_title="Copies in RAM",
        share=0.06,
        tests="Copies in both directions, timed and compared bit for bit; the card's own "
        "counter of repeated packets.",
        catches="Copies that arrive changed, a link that is far slower than it should be, "
        "packets that had to be repeated.",
        misses="Errors that the link corrected and the card does not count.",
        cpu_tests="Copies within RAM, timed and compared bit for bit.",
        cpu_catches="Copies that arrive changed.",
        cpu_misses="Errors that the memory corrected by itself.",
    ),
    CheckStage(
        name="cool",
        title="Cool down",
        share=0.10,
        tests="A pause until the clocks are low, then compute and video memory once more.",
        catches="Errors at low clocks and right after a change of the clock.",
        misses="Errors that need a cold start: switch the PC on and check again.",
        cpu_tests="A pause until the clocks are low, then compute and RAM once more.",
    ),
)  # fmt: skip
_BY_NAME = {stage.name: stage for stage in STAGES}
assert tuple(_BY_NAME) == STAGE_NAMES


def stage_named(name: StageName) -> CheckStage:
    """Return the stage with a name."""
    return _BY_NAME[name]


def stage_title(name: StageName, address: str) -> str:
    """Return a stage's title for a device."""
    return stage_words(name, address).title


def stage_words(name: StageName, address: str) -> CheckStage:
    """Return a stage with the words for a device."""
    stage = _BY_NAME[name]
    if not is_cpu(address):
        return stage
    return msgspec.structs.replace(
        stage, title=stage.cpu_title or stage.title, tests=stage.cpu_tests or stage.tests,
        catches=stage.cpu_catches or stage.catches, misses=stage.cpu_misses or stage.misses,
    )  # fmt: skip


def in_order(names: Iterable[StageName]) -> tuple[StageName, ...]:
    """Return stages in the order in which they run, each once."""
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
