"""Findings: their kinds, their fields, and the commands that they suggest.

A finding has a code for programs, a sentence for people who are new to CUDA, evidence for people
who are not, and an action to copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_studio.core.notice import Action, Notice, Tone, action_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts


class Kind(NamedTuple):
    """A kind of finding: how bad it is, what it rests on, and where its rule is from."""

    tone: Tone
    evidence: str
    source: str


_CAUSES = "the row of `causes`"
# Worst first: findings are shown in this order.
KINDS: dict[str, Kind] = {
    "driver_not_answering": Kind(
        Tone.FAILURE, "a call into the driver did not return within its time",
        "XuehaiPan/nvitop and NVIDIA/gpud: calls that hang after a card's error"),
    "engine_missing": Kind(
        Tone.FAILURE, "no folder has a PyTorch that this Python loads", "core/packages_folder.py"),
    "driver_library_mismatch": Kind(
        Tone.FAILURE, "NVML's or CUDA's error, and the versions of both halves", _CAUSES),
    "card_lost": Kind(
        Tone.FAILURE, "NVML's error 15 or 16, a kernel's, ones on the bus, or the kernel's log",
        "nvml.h, NVML_ERROR_GPU_IS_LOST; " + _CAUSES),
    "wrong_sum": Kind(
        Tone.FAILURE, "the sum of small whole numbers, which is exact in float32",
        "IEEE 754: whole numbers below 2^24"),
    "no_driver": Kind(
        Tone.FAILURE, "NVML's error, the card's kernel driver, device files, the kernel's log",
        _CAUSES),
    "driver_dropped_card": Kind(
        Tone.FAILURE, "the driver's version and the card's architecture", "resources/cards.json"),
    "driver_older_than_card": Kind(
        Tone.FAILURE, "the driver's version and the card's chip", "resources/cards.json"),
    "driver_too_old": Kind(
        Tone.AMBER, "the driver's version and PyTorch's CUDA version",
        "NVIDIA, CUDA Compatibility, table 1; resources/wheels.json"),
    "build_without_cuda": Kind(
        Tone.AMBER, "PyTorch's own version and build", "torch.version"),
    "no_code_for_card": Kind(
        Tone.FAILURE, "PyTorch's list of architectures, or a kernel that failed with error 209",
        "NVIDIA, CUDA C++ Programming Guide, “Binary Compatibility”; resources/wheels.json"),
    "card_not_usable": Kind(
        Tone.FAILURE, "PyTorch's own error, device files, modules, versions, or a kernel's failure",
        _CAUSES),
    "device_busy": Kind(
        Tone.AMBER, "NVML's compute mode and programs, or a kernel's error 46",
        "nvml.h, nvmlComputeMode_t"),
    "hidden_by_environment": Kind(
        Tone.AMBER, "the variables of this program's environment",
        "NVIDIA, CUDA C++ Programming Guide, “CUDA Environment Variables”; " + _CAUSES),
    "build_for_card": Kind(
        Tone.AMBER, "the card's number on the bus, system and Python", "resources/wheels.json"),
    "no_nvidia_card": Kind(Tone.PLAIN, "the list of the bus and NVML's", "nvmlDeviceGetCount"),
    "no_build_for_card": Kind(
        Tone.PLAIN, "the card's number on the bus, system and Python", "resources/wheels.json"),
    "other_build_for_card": Kind(
        Tone.PLAIN, "the card's number on the bus, system and Python", "resources/wheels.json"),
    "card_unreadable": Kind(Tone.FAILURE, "NVML's error for the card", "nvml.h, nvmlReturn_t"),
    "card_lent": Kind(Tone.PLAIN, "the card's kernel driver", _CAUSES),
    "not_as_named": Kind(
        Tone.AMBER, "name, device id, units and bus width according to driver and PyTorch",
        "resources/cards.json, card_chips.json"),
    "slow_link": Kind(
        Tone.AMBER, "the link under load", "NVML's link now and at most; idle cards slow it down"),
    "card_asleep": Kind(
        Tone.PLAIN, "power/runtime_status", "Linux, Documentation/power/runtime_pm.rst"),
    "mixed_order": Kind(
        Tone.PLAIN, "the order of a separate process, or of speeds",
        "CUDA_DEVICE_ORDER: FASTEST_FIRST is its default"),
    "integrated_first": Kind(Tone.PLAIN, "PyTorch's list of cards", "torch.cuda, torch.xpu"),
    "not_tested": Kind(Tone.PLAIN, "the card's maker", "this program's own tests"),
    "mig_instances": Kind(Tone.PLAIN, "NVML's MIG mode", "NVIDIA, Multi-Instance GPU User Guide"),
    "wsl_limits": Kind(Tone.PLAIN, "the kernel's name", "NVIDIA, CUDA on WSL User Guide"),
    "tables_differ": Kind(
        Tone.PLAIN, "both tables", "torch.cuda.PYTORCH_RELEASES_CODE_CC, since PyTorch 2.11"),
    "ok": Kind(Tone.GOOD, "a kernel that ran, or PyTorch's lists", "the kernel itself"),
}  # fmt: skip
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
