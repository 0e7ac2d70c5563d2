"""Can PyTorch use the cards of this PC, and if not, why and what next?

One small function a finding, each over plain facts; a new one is a function and its place in
`_RULES`, which go from the worst to the best. Sentences are for people who have not met CUDA, the
evidence is for those who have.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices import ASLEEP
from gpu_studio.core.pc_facts import PcFacts
from gpu_studio.core.wheels import CPU_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpu_studio.core.devices import Inventory
    from gpu_studio.core.protocol import EngineDescribed

# NVML's error codes, nvml.h.
_DRIVER_NOT_LOADED, _LIBRARY_NOT_FOUND, _VERSION_MISMATCH = 9, 12, 18

_EXPLAINING = frozenset(
    {"driver_library_mismatch", "no_driver", "driver_too_old", "no_code_for_card"}
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is so on this PC.

    ``action`` is a command or an address to copy, empty where there is nothing to do;
    ``device_uuid`` is the `Device.identity` of the card it is about, None where it is about all.
    """

    code: str
    sentence: str
    evidence: str = ""
    action: str = ""
    device_uuid: str | None = None


def find(
    inventory: Inventory,
    engine: EngineDescribed | None,
    *,
    system: str | None = None,
    machine: str | None = None,
) -> tuple[Finding, ...]:
    """Return what is found, worst first; ``ok`` is among it for every card that can be used.

    Args:
        inventory: what the sensor reader found.
        engine: the engine's account of itself; None while it is not known, and then only what
            does not depend on PyTorch is found.
        system: "Linux" or "Windows"; this PC's when None.
        machine: "x86_64" or "aarch64"; this PC's when None.
    """
    facts = PcFacts(inventory, engine, system or platform.system(), machine or platform.machine())
    found: list[Finding] = []
    for rule in _RULES:
        found.extend(rule(facts))
    if _is_explained(found, facts):
        found = [finding for finding in found if finding.code != "cuda_unavailable"]
    return tuple(found)


def _is_explained(found: Sequence[Finding], facts: PcFacts) -> bool:
    """Return whether a particular finding tells why CUDA is unavailable as a whole."""
    codes = [finding.code for finding in found]
    if codes.count("hidden_by_environment") == len(facts.cards) > 0:
        return True
    return not _EXPLAINING.isdisjoint(codes)


# ── the rules, worst first ────────────────────────────────────────────────────────────────────


def _driver_library_mismatch(facts: PcFacts) -> Iterator[Finding]:
    if facts.driver.error_code == _VERSION_MISMATCH:
        yield Finding(
            code="driver_library_mismatch",
            sentence=facts.driver.error or "",
            evidence="NVML error 18: the driver's library and its kernel module have two versions"
            + (f" (kernel module: {facts.driver.version})" if facts.driver.version else ""),
            action="sudo reboot" if facts.system == "Linux" else "",
        )


def _no_driver(facts: PcFacts) -> Iterator[Finding]:
    driver = facts.driver
    if driver.error is None or driver.error_code == _VERSION_MISMATCH:
        return
    absent = driver.error_code in (_LIBRARY_NOT_FOUND, _DRIVER_NOT_LOADED)
    if absent and not facts.inventory.cards:
        return
    names = _listed([card.short_name for card in facts.inventory.cards])
    subject = f"Your {names} is there, but not ready" if names else "A card cannot be reached"
    next_step = {
        _LIBRARY_NOT_FOUND: "Install NVIDIA's driver"
        + (" with your system's driver tool." if facts.system == "Linux" else "."),
        _DRIVER_NOT_LOADED: "Start it, or restart the PC.",
    }.get(driver.error_code or 0, "Restart the PC.")
    yield Finding(
        code="no_driver",
        sentence=f"{subject}: {_continued(driver.error)} {next_step}",
        evidence=f"NVML error {driver.error_code}" + (f"; on the bus: {names}" if names else ""),
        action=_driver_action(facts.system, driver.error_code),
    )


def _driver_action(system: str, code: int | None) -> str:
    if system == "Windows" and code == _LIBRARY_NOT_FOUND:
        return "https://www.nvidia.com/drivers"
    if system == "Linux" and code == _DRIVER_NOT_LOADED:
        return "sudo modprobe nvidia"
    return ""


def _driver_too_old(facts: PcFacts) -> Iterator[Finding]:
    floor = facts.driver_floor()
    # Where another build serves the driver and the card, that is the shorter way.
    cards = [card for card in facts.cards if facts.has_code(card) is not False]
    engine = facts.cuda_build
    if floor is None or engine is None or not cards:
        return
    choice = facts.choice(cards)
    other = choice if choice and choice.tag != CPU_TAG else None
    sentence = (
        f"The NVIDIA driver is too old for this PyTorch: it needs {floor} or newer, and yours is "
        f"{facts.driver.version}. Update the driver"
    )
    yield Finding(
        code="driver_too_old",
        sentence=sentence + (f", or install the {other.tag} build." if other else "."),
        evidence=f"torch {engine.torch_version}, CUDA {engine.cuda_build}; found driver "
        f"{facts.driver.version}, which runs CUDA up to {facts.driver.cuda_version or 'unknown'}; "
        f"needed {floor}",
        action=other.pip_command if other else _driver_action(facts.system, _LIBRARY_NOT_FOUND),
    )


def _cpu_only_build(facts: PcFacts) -> Iterator[Finding]:
    engine = facts.engine
    if engine is None or engine.cuda_build is not None or not facts.cards:
        return
    choice = facts.choice(facts.cards)
    names = _listed([card.short_name for card in facts.cards])
    evidence = f"torch {engine.torch_version}; driver {facts.driver.version or 'unknown'}"
    if choice is not None and choice.tag == CPU_TAG:
        # No build would use it, so another one is no help; the choice says what is.
        needs_driver = any(facts.has_any_build(card) for card in facts.cards)
        yield Finding(
            code="driver_too_old" if needs_driver else "no_code_for_card",
            sentence=f"PyTorch cannot use your {names}: {_continued(choice.sentence)}",
            evidence=evidence,
            action=_driver_action(facts.system, _LIBRARY_NOT_FOUND) if needs_driver else "",
        )
        return
    build = f" The {choice.tag} build uses it." if choice else ""
    yield Finding(
        code="cpu_only_build",
        sentence=f"Your {names} is fine, but this PyTorch is built for the CPU alone.{build}",
        evidence=evidence,
        action=choice.pip_command if choice else "",
    )


def _no_code_for_card(facts: PcFacts) -> Iterator[Finding]:
    engine = facts.cuda_build
    for card in facts.cards:
        if engine is None or facts.has_code(card) is not False:
            continue
        choice = facts.choice([card])
        other = choice if choice and choice.tag != CPU_TAG else None
        sentence = (
            f"This PyTorch has no code for your {card.short_name} ({card.compute_capability})"
        )
        if other:
            sentence += f": install the {other.tag} build."
        elif choice:
            sentence += f", and no other build helps: {_continued(choice.sentence)}"
        else:
            sentence += "."
        arch_list = " ".join(engine.arch_list) or "not told, so those of the published build"
        yield Finding(
            code="no_code_for_card",
            sentence=sentence,
            evidence=f"torch {engine.torch_version} has code for: {arch_list}; the card is "
            f"{card.compute_capability}; driver {facts.driver.version}",
            action=other.pip_command if other else "",
            device_uuid=card.identity,
        )


def _hidden_by_environment(facts: PcFacts) -> Iterator[Finding]:
    engine = facts.cuda_build
    if engine is None or engine.visible_devices is None:
        return
    for card in facts.cards:
        if card.cuda_index is None:
            yield Finding(
                code="hidden_by_environment",
                sentence=f"Your {card.short_name} is hidden from PyTorch by the variable "
                "CUDA_VISIBLE_DEVICES.",
                evidence=f"CUDA_VISIBLE_DEVICES is “{engine.visible_devices}”; the card is "
                f"{card.identity}",
                action="set CUDA_VISIBLE_DEVICES="
                if facts.system == "Windows"
                else "unset CUDA_VISIBLE_DEVICES",
                device_uuid=card.identity,
            )


def _cuda_unavailable(facts: PcFacts) -> Iterator[Finding]:
    engine = facts.cuda_build
    if engine is None or engine.cuda_available or not facts.inventory.cards:
        return
    names = _listed([card.short_name for card in facts.inventory.cards])
    yield Finding(
        code="cuda_unavailable",
        sentence=f"PyTorch cannot use your {names} now. "
        f"{engine.cuda_reason or 'It gives no reason.'}",
        evidence=f"torch {engine.torch_version}, CUDA {engine.cuda_build}; driver "
        f"{facts.driver.version or 'unknown'}; torch.cuda.is_available() is False",
    )


def _unreadable(facts: PcFacts) -> Iterator[Finding]:
    if facts.driver.error is not None:
        return
    for card in facts.inventory.cards:
        if card.unreadable is not None:
            yield Finding(
                code="card_asleep" if card.unreadable == ASLEEP else "card_unreadable",
                sentence=f"{card.short_name}: {card.unreadable}",
                evidence=card.pci_bus_id or "",
                device_uuid=card.identity,
            )


def _no_nvidia_card(facts: PcFacts) -> Iterator[Finding]:
    if facts.inventory.cards:
        return
    if facts.driver.error_code not in (None, _LIBRARY_NOT_FOUND, _DRIVER_NOT_LOADED):
        return
    others = facts.inventory.other_gpus
    sentence = "This PC has no NVIDIA card, so everything here runs on the CPU."
    if others:
        verb = "is" if len(others) == 1 else "are"
        sentence += (
            f" {_listed(others)} {verb} there, but CUDA, which this program measures, is NVIDIA's "
            "alone."
        )
    yield Finding(
        code="no_nvidia_card",
        sentence=sentence,
        evidence=f"Driver: {facts.driver.error or 'it sees no card'} On the bus: "
        f"{_listed(others) or 'no graphics card'}",
    )


def _ok(facts: PcFacts) -> Iterator[Finding]:
    engine = facts.cuda_build
    if engine is None or not engine.cuda_available:
        return
    for card in facts.cards:
        if card.cuda_index is None or facts.has_code(card) is False:
            continue
        capability = f" ({card.compute_capability})" if card.compute_capability else ""
        yield Finding(
            code="ok",
            sentence=f"PyTorch can use your {card.short_name}.",
            evidence=f"torch {engine.torch_version} has code for it{capability}; driver "
            f"{facts.driver.version or 'unknown'}; it is {card.address}",
            device_uuid=card.identity,
        )


_RULES: tuple[Callable[[PcFacts], Iterator[Finding]], ...] = (
    _driver_library_mismatch,
    _no_driver,
    _driver_too_old,
    _cpu_only_build,
    _no_code_for_card,
    _cuda_unavailable,
    _hidden_by_environment,
    _no_nvidia_card,
    _unreadable,
    _ok,
)


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _continued(sentence: str) -> str:
    """Return a sentence as it reads after a colon; a name of capitals keeps them."""
    first = sentence.split(" ", 1)[0]
    if first in ("The", "No", "This", "A"):
        return sentence[0].lower() + sentence[1:]
    return sentence
