"""The trust stamp: can this number be believed, and if not, why not?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gpu_studio.core.protocol import RunFinished

_FEWEST_SAMPLES = 10
_WIDEST_IQR = 0.10  # torch.utils.benchmark warns from the same spread on


class TrustStamp(msgspec.Struct, frozen=True):
    """``doubts`` are the reasons against a number, ``facts`` how it was obtained."""

    doubts: tuple[str, ...]
    facts: tuple[str, ...]

    @property
    def is_amber(self) -> bool:
        """Whether anything speaks against the number."""
        return bool(self.doubts)


def stamp_of(result: RunFinished) -> TrustStamp:
    """Return the stamp of a finished run."""
    return TrustStamp(tuple(_doubts(result)), tuple(_facts(result)))


def _doubts(result: RunFinished) -> list[str]:
    doubts = []
    if result.verified is False:
        doubts.append(f"the result is wrong: {result.verification}")
    elif result.verified is None:
        doubts.append(f"the result was not checked: {result.verification or 'no reference'}")
    if result.samples < _FEWEST_SAMPLES:
        doubts.append(f"only {result.samples} samples: give it more time")
    if result.median_s and result.iqr_s / result.median_s > _WIDEST_IQR:
        doubts.append(f"the samples spread by {100 * result.iqr_s / result.median_s:.0f} %")
    if result.throttled:
        doubts.append("the card slowed itself down during the run")
    if result.other_processes:
        doubts.append("another program used the card")
    if result.in_window_process:
        doubts.append("it ran inside the window's process, which disturbs it")
    if result.recording:
        doubts.append(f"it is a recording: {result.recording}")
    return doubts


def _facts(result: RunFinished) -> list[str]:
    facts = [
        result.verification or "not verified",
        f"{result.samples} samples of {result.calls_per_sample} calls",
        f"{result.cache} cache",
        "with transfers" if result.transfers else "without transfers",
    ]
    if result.cpu_threads is not None:
        facts.append(f"{result.cpu_threads} CPU threads")
    if result.tf32 is not None:
        facts.append(f"TF32 {'on' if result.tf32 else 'off'}")
    if result.throttled is None and result.device != "cpu":
        facts.append("throttling not known")
    return facts
