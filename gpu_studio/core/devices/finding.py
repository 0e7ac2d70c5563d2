"""Findings: their kinds, their fields, and the commands that they suggest.

A finding has a code for programs, a sentence for people who are new to CUDA, evidence for people
who are not, and an action to copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.notice import Action, Notice, Tone, action_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts


# The kinds of findings about a PC, worst first: they are shown in this order. A source that is not
# here stands in the row of `causes`, or is the table of this program that a rule compares with.
KINDS: dict[str, Tone] = {
    # XuehaiPan/nvitop and NVIDIA/gpud: calls that hang after a card's error
    "driver_not_answering": Tone.FAILURE,
    "engine_missing": Tone.FAILURE,
    "driver_library_mismatch": Tone.FAILURE,
    "card_lost": Tone.FAILURE,  # nvml.h, NVML_ERROR_GPU_IS_LOST
    "wrong_sum": Tone.FAILURE,  # IEEE 754: whole numbers below 2^24 are exact in float32
    "no_driver": Tone.FAILURE,
    "driver_dropped_card": Tone.FAILURE,
    "driver_older_than_card": Tone.FAILURE,
    "driver_too_old": Tone.AMBER,  # NVIDIA, CUDA Compatibility, table 1
    "build_without_cuda": Tone.AMBER,
    # NVIDIA, CUDA C++ Programming Guide, “Binary Compatibility”
    "no_code_for_card": Tone.FAILURE,
    "card_not_usable": Tone.FAILURE,
    "device_busy": Tone.AMBER,  # nvml.h, nvmlComputeMode_t
    # NVIDIA, CUDA C++ Programming Guide, “CUDA Environment Variables”
    "hidden_by_environment": Tone.AMBER,
    "build_for_card": Tone.AMBER,
    "no_nvidia_card": Tone.PLAIN,
    "no_build_for_card": Tone.PLAIN,
    "other_build_for_card": Tone.PLAIN,
    "card_unreadable": Tone.FAILURE,  # nvml.h, nvmlReturn_t
    "card_lent": Tone.PLAIN,
    "not_as_named": Tone.AMBER,
    "slow_link": Tone.AMBER,  # NVML's link now and at most, under load: idle cards slow it down
    "card_asleep": Tone.PLAIN,  # Linux, Documentation/power/runtime_pm.rst
    "mixed_order": Tone.PLAIN,  # CUDA_DEVICE_ORDER: FASTEST_FIRST is its default
    "integrated_first": Tone.PLAIN,
    "not_tested": Tone.PLAIN,  # this program's own tests
    "mig_instances": Tone.PLAIN,  # NVIDIA, Multi-Instance GPU User Guide
    "wsl_limits": Tone.PLAIN,  # NVIDIA, CUDA on WSL User Guide
    "ok": Tone.GOOD,
}
_RANKS = {code: rank for rank, code in enumerate(KINDS)}


class Finding(Notice, frozen=True, kw_only=True):
    """What is found about this PC or the program, as a notice with its code.

    ``detail`` is the evidence. ``command`` is a command or an address to copy, empty if there is
    none; ``action`` is what the window does itself instead, and ``other_action`` is that of a
    second button. ``device_uuid`` is the `Device.identity` of the card in question, None if the
    finding concerns the whole PC. ``build_tag`` is the build of PyTorch that the command or the
    action installs; empty if it installs none.
    """

    code: str
    tone: Tone = Tone.AMBER
    command: str = ""
    other_action: Action | None = None
    device_uuid: str | None = None
    build_tag: str = ""

    @property
    def to_copy(self) -> str:
        """The command that the window shows: what it does itself needs none."""
        return self.command if self.action is None else ""

    @property
    def action_label(self) -> str:
        """The label of its button; empty without one."""
        return action_label(self.action, self.build_tag)


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings from worst to best; findings of one code stay in the order of the cards."""
    return tuple(sorted(findings, key=lambda finding: _RANKS[finding.code]))


def is_usable(findings: Sequence[Finding]) -> bool:
    """Return whether PyTorch can use at least one card."""
    return any(finding.code == "ok" for finding in findings)


def findings_value(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the value that ``gpu-studio doctor --json`` prints."""
    return {
        "findings": [
            {
                "code": finding.code, "device_uuid": finding.device_uuid,
                "sentence": finding.sentence, "evidence": finding.detail,
                "action": finding.command,
            }
            for finding in findings
        ]
    }  # fmt: skip


TORCH_PAGE = "https://pytorch.org/get-started/locally/"
OLDER_TORCH_PAGE = "https://pytorch.org/get-started/previous-versions/"


def continued(text: str) -> str:
    """Return a sentence as it reads after a colon; acronyms keep their capitals."""
    if text.split(" ", 1)[0] in ("The", "No", "This", "A", "You", "There", "Start", "Add", "Let"):
        return text[0].lower() + text[1:]
    return text


def newer_driver(facts: PcFacts, cards: Sequence[Device], oldest: str = "") -> str:
    """Return what to update, and to which driver: never past the last one that supports a card.

    Args:
        facts: the PC.
        cards: the cards that the driver is for.
        oldest: the oldest driver that is new enough, if that should be said.
    """
    last = {driver for card in cards if (driver := facts.last_driver(card))}
    where = " in Windows" if facts.inventory.is_wsl else ""
    enough = f" to {oldest} or newer" if oldest else ""
    return f"the driver{where}" + (f" to {last.pop()}" if len(last) == 1 else enough)


def restart(facts: PcFacts) -> str:
    """Return the command that restarts the PC, which is Windows if WSL runs inside it."""
    if facts.inventory.is_wsl:
        return "shutdown.exe /r"
    return "shutdown /r" if facts.system == "Windows" else "sudo reboot"


TESTED_MAKERS = frozenset({"NVIDIA"})
DOUBT = "not tested"
"""The kind of this doubt about a result, and its word in a cell."""
NOT_TESTED = "not tested on this kind of card yet"


def is_tested(maker: str) -> bool:
    """Return whether this program has run on a card of a maker; empty is the CPU's."""
    return not maker or maker in TESTED_MAKERS


def untested_sentence(maker: str) -> str:
    """Return the sentence beside numbers from a maker's cards; empty if they are tested."""
    if is_tested(maker):
        return ""
    return f"GPU Studio was {NOT_TESTED}: the tests have run on no card of {maker}'s."
