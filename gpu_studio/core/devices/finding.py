"""Findings: their fields, their severity, and the commands that they suggest.

A finding has a code for programs, a sentence for people who are new to CUDA, evidence for people
who are not, and an action to copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gpu_studio.core.devices import nvidia

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts
    from gpu_studio.core.notice import Action


Severity = Literal["failure", "warning", "note", "good"]

# Worst first: findings are shown in this order.
SEVERITIES: dict[str, Severity] = {
    "driver_not_answering": "failure",
    "engine_missing": "failure",
    "driver_library_mismatch": "failure",
    "card_lost": "failure",
    "wrong_sum": "failure",
    "no_driver": "failure",
    "driver_dropped_card": "failure",
    "driver_older_than_card": "failure",
    "driver_too_old": "warning",
    "build_without_cuda": "warning",
    "no_code_for_card": "failure",
    "cuda_init_failed": "failure",
    "device_busy": "warning",
    "hidden_by_environment": "warning",
    "build_for_card": "warning",
    "no_nvidia_card": "note",
    "no_build_for_card": "note",
    "other_build_for_card": "note",
    "card_unreadable": "failure",
    "not_as_named": "warning",
    "slow_link": "warning",
    "card_asleep": "note",
    "mixed_order": "note",
    "integrated_first": "note",
    "not_tested": "note",
    "mig_instances": "note",
    "wsl_limits": "note",
    "tables_differ": "note",
    "ok": "good",
}
_RANKS = {code: rank for rank, code in enumerate(SEVERITIES)}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One result of checking this PC.

    ``command`` is a command or an address to copy, empty if there is nothing to do; ``action`` is
    what the window does itself instead. ``device_uuid`` is the `Device.identity` of the card in
    question, None if the finding concerns the whole PC. ``build_tag`` is the build of PyTorch that
    the command installs; empty if it installs none.
    """

    code: str
    sentence: str
    evidence: str = ""
    command: str = ""
    action: Action | None = None
    device_uuid: str | None = None
    build_tag: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SEVERITIES[self.code]


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
                "sentence": finding.sentence, "evidence": finding.evidence,
                "action": finding.command,
            }
            for finding in findings
        ]
    }  # fmt: skip


TORCH_PAGE = "https://pytorch.org/get-started/locally/"
OLDER_TORCH_PAGE = "https://pytorch.org/get-started/previous-versions/"


def continued(text: str) -> str:
    """Return a sentence as it reads after a colon; acronyms keep their capitals."""
    if text.split(" ", 1)[0] in ("The", "No", "This", "A"):
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


def reload_cuda(facts: PcFacts) -> str:
    """Return the command that restores CUDA after the PC has slept."""
    if facts.inventory.is_wsl:
        return "wsl --shutdown"
    return nvidia.reload_cuda(facts.system) or restart(facts)


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
