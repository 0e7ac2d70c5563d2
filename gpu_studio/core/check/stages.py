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
"""An overnight check warms the card up and lets it rest again this often: weak solder joints and
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
    share: float = 0.0
    tests: str = ""
    catches: str = ""
    misses: str = ""
    cpu_tests: str = ""
    cpu_catches: str = ""
    cpu_misses: str = ""


STAGES: tuple[CheckStage, ...] = (
    CheckStage(
        name="load",
        title="Load and heat",
        share=0.42,
        tests="Matrix products at full load, until the temperature changes by less than 1 °C in a "
        "minute; then bursts with rests between them, at 20 to 100 % of the time. The speed of "
        "the memory, first and when hot.",
        catches="Any wrong product, hot, at part load and when a load begins; a step that takes "
        "much longer each time; a low clock; memory that is slower when hot. Heat and throttling, "
        "as in every stage.",
        misses="Faults that need a game's graphics units, and heat that builds up over hours. The "
        "fan's real speed is not measured.",
        cpu_tests="Matrix products at full load, until the temperature changes by less than 1 °C "
        "in a minute; then bursts with rests between them, at 20 to 100 % of the time.",
        cpu_catches="Any wrong product, hot, at part load and when a load begins; a step that "
        "takes much longer each time; a low clock. Heat and throttling, as in every stage.",
        cpu_misses="Heat that builds up over hours. Most CPUs do not report throttling.",
    ),
    CheckStage(
        name="compute",
        title="Compute",
        share=0.16,
        tests="IEEE arithmetic on random bits, exact products and convolutions with their "
        "gradients, whole numbers, indexed access, random numbers, and work that fills the card.",
        catches="Wrong, stale, swapped and missing results in 11 dtypes, down to the last bit; a "
        "part of the chip that is wrong.",
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
        catches="An operation that PyTorch and its driver compute wrong on this device in one "
        "layout, size or dtype, and a write outside of the tensor.",
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
        catches="Bits that stick, flip, fade or follow their neighbors, words in the wrong place, "
        "lost writes, and errors at low clocks.",
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
        catches="Copies that arrive changed, a link that is far slower than it should be, "
        "packets that had to be repeated.",
        misses="Errors that the link corrected and the card does not count.",
        cpu_tests="Copies within RAM, also while the CPU computes, timed and compared bit for bit.",
        cpu_catches="Copies that arrive changed.",
        cpu_misses="Errors that the memory corrected by itself.",
    ),
)  # fmt: skip
_BY_NAME = {stage.name: stage for stage in STAGES}
assert tuple(_BY_NAME) == STAGE_NAMES
_BY_NAME |= {
    "steps": CheckStage(name="steps", title="Load in steps"),
    "cool": CheckStage(name="cool", title="Cool down"),
}
OPTIONAL_STAGE: StageName = "layouts"
"""About PyTorch more than about the card: a check of one minute has no time for it."""


def stages_for(minutes: int) -> tuple[StageName, ...]:
    """Return the stages that a check of this length has time for."""
    if minutes > GLANCE_MINUTES:
        return STAGE_NAMES
    return tuple(name for name in STAGE_NAMES if name != OPTIONAL_STAGE)


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
