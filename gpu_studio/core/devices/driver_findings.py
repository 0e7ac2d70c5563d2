"""Findings about the NVIDIA driver: is it installed, does it answer, does it serve the cards?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.finding import Finding, continued, newer_driver, restart
from gpu_studio.core.devices.pc_facts import architecture_of
from gpu_studio.core.notice import Action
from gpu_studio.core.texts import listed
from gpu_studio.core.wheel_table import CPU_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts

_AT_PYTORCHS_START = "CUDA error 803 or 804 at the start of PyTorch"
_TWO_VERSIONS = "The driver's library and its kernel module have different versions"
_UPDATED_ON_DISK = (
    "The NVIDIA driver was updated while GPU Studio was running. Programs that are already running "
    "continue to work. Restart the PC before you start another program that uses the card."
)
_LEFT_ASLEEP = "GPU Studio did not ask PyTorch about it, because that would wake it."
_WAKES_WHEN_USED = "Reading it would wake it. It wakes up when a program uses it."
_USED_BY_OTHERS = "Another driver or a virtual machine is using it."
_VIRTUAL_MACHINE = "vfio-pci"
_RESERVED = "the driver vfio-pci reserves it for a virtual machine."
_SECURE_BOOT = (
    "Secure Boot is on, so Linux refuses a driver whose key is not enrolled. Enroll the key, or "
    "turn Secure Boot off."
)
_REFUSAL = "; Secure Boot is the reason if modprobe answers “Key was rejected by service”"
# The kernel is the same inside and outside of a container, the files are not.
_LIBRARY_IS_MISSING = (
    "its driver runs, but the driver's library is missing here. Start a container with access to "
    "the card, or reinstall the driver."
)


def driver_not_answering(facts: PcFacts) -> Iterator[Finding]:
    """A call into the driver never returned, for all cards or for one."""
    names = listed([card.short_name for card in facts.nvidia_cards])
    if facts.driver.is_silent:
        yield Finding(
            code="driver_not_answering",
            sentence="The NVIDIA driver does not answer. It usually hangs after a card error. "
            "Restart the PC.",
            evidence="A call into the driver did not return"
            + (f"; on the bus: {names}" if names else "."),
            command=restart(facts),
        )
        return
    for card in facts.inventory.cards:
        probed, reading = facts.probed(card), facts.reading_of(card)
        is_silent = card.unreadable_code == "silent" or (reading and reading.error_code == "silent")
        if is_silent or (probed is not None and probed.outcome == "silent"):
            yield Finding(
                code="driver_not_answering",
                sentence=f"The driver does not answer for your {card.short_name}: a call that "
                "should take a moment never returned. Restart the PC.",
                evidence=(probed.message if probed else "")
                or "A call into the driver did not return.",
                command=restart(facts),
                device_uuid=card.identity,
            )


def driver_library_mismatch(facts: PcFacts) -> Iterator[Finding]:
    """The driver was updated, but its old kernel module still runs."""
    driver = facts.driver
    mismatch = _version_mismatch(facts)
    if mismatch is None:
        return
    sentence, evidence = mismatch
    halves = [
        f"{half} {version}"
        for half, version in (
            ("kernel module", driver.version),
            ("library", driver.library_version),
        )
        if version
    ]
    yield Finding(
        code="driver_library_mismatch",
        sentence=sentence,
        evidence=evidence + (f" ({', '.join(halves)})" if halves else ""),
        command=restart(facts),
    )


def _version_mismatch(facts: PcFacts) -> tuple[str, str] | None:
    """Return the sentence and the evidence of the version mismatch, if there is one."""
    driver, engine, probe = facts.driver, facts.engine, facts.probe
    if driver.error_code == "driver_updated":
        return driver.error or "", _TWO_VERSIONS
    for card in facts.inventory.cards:
        reading = facts.reading_of(card)
        if card.unreadable_code == "driver_updated":
            return card.unreadable or "", _TWO_VERSIONS
        if reading is not None and reading.error_code == "driver_updated":
            return reading.error or "", _TWO_VERSIONS
    if engine is not None and engine.driver_updated:
        return engine.cuda_reason or "", _AT_PYTORCHS_START
    if probe is not None and probe.driver_updated:
        return probe.error or "", _AT_PYTORCHS_START
    if driver.was_updated:
        return _UPDATED_ON_DISK, "The driver library in use is no longer on the disk"
    return None


def no_driver(facts: PcFacts) -> Iterator[Finding]:
    """The driver is missing or does not run, or another driver holds a card."""
    driver = facts.driver
    if driver.is_silent or driver.error_code == "driver_updated":
        return
    if driver.error is None:
        yield from _held_by_others(facts)
        return
    absent = driver.error_code in ("not_installed", "not_running")
    cards = [card for card in facts.nvidia_cards if not facts.is_dropped(card)]
    if not cards and (absent or facts.nvidia_cards):
        return
    names = listed([card.short_name for card in cards])
    subject = f"Your {names} is installed, but not ready" if names else "A card is not reachable"
    reason, command = _reason_and_step(facts, cards)
    refusal = _REFUSAL if driver.error_code == "not_running" and facts.inventory.secure_boot else ""
    yield Finding(
        code="no_driver",
        sentence=f"{subject}: {reason}",
        evidence=driver.evidence
        + (f"; on the bus: {names}" if names else "")
        + _held_words(cards)
        + refusal,
        command=command,
    )


def _reason_and_step(facts: PcFacts, cards: Sequence[Device]) -> tuple[str, str]:
    """Return why the driver cannot be used with what to do, and the command for it."""
    code, reason = facts.driver.error_code, continued(facts.driver.error or "")
    absent = code in ("not_installed", "not_running")
    if absent and any(card.kernel_driver == _VIRTUAL_MACHINE for card in cards):
        return _RESERVED, ""
    if code == "not_installed" and any(
        card.kernel_driver == nvidia.KERNEL_DRIVER for card in cards
    ):
        return _LIBRARY_IS_MISSING, nvidia.TRY_CONTAINER
    if code == "not_installed":
        return f"{reason} {_driver_to_install(facts, cards)}", nvidia.install_driver(facts)
    if facts.inventory.is_wsl:
        return f"{reason} It is the driver of Windows. Restart the PC.", restart(facts)
    if code == "not_running" and facts.system == "Linux":
        step, command = _how_to_start(facts, cards)
        return f"{reason} {step}", command
    if code == "no_permission" and facts.system == "Linux":
        return f"{reason} It needs access to the files /dev/nvidia*.", nvidia.SHOW_PERMISSIONS
    step = "Start the driver, or restart the PC." if code == "not_running" else "Restart the PC."
    return f"{reason} {step}", restart(facts)


def _how_to_start(facts: PcFacts, cards: Sequence[Device]) -> tuple[str, str]:
    """Return how to start an installed driver on Linux: in words, and the command."""
    holders = {card.kernel_driver for card in cards if card.kernel_driver} - {nvidia.KERNEL_DRIVER}
    if facts.inventory.secure_boot:
        return _SECURE_BOOT, nvidia.LOAD_MODULE
    if holders:
        return f"The driver {listed(sorted(holders))} is in its place. Restart the PC.", restart(
            facts
        )
    modules = [module for card in cards if (module := _kernel_module_for(facts, card))]
    if modules:
        return f"Start the driver. If that fails: {continued(modules[0])}", nvidia.LOAD_MODULE
    return "Start the driver, or restart the PC.", nvidia.LOAD_MODULE


def _kernel_module_for(facts: PcFacts, card: Device) -> str:
    """Return which of the driver's two kernel modules a card needs; empty if both support it."""
    if facts.driver_system != "Linux" or card.kernel_driver not in (None, nvidia.KERNEL_DRIVER):
        return ""
    return nvidia.kernel_module_words(architecture_of(card))


def _driver_to_install(facts: PcFacts, cards: Sequence[Device]) -> str:
    # A driver for a card that PyTorch cannot use may be too old for a card that it can use.
    wanted = [card for card in cards if facts.any_build(card)] or cards
    old = [card for card in wanted if facts.last_driver(card)]
    last = {facts.last_driver(card) for card in old}
    if len(last) == 1:
        kinds = listed(sorted({architecture_of(card) or "" for card in old}))
        return f"Install NVIDIA driver {last.pop()}, the last for {kinds} cards."
    own_tool = " with your system's driver tool." if facts.system == "Linux" else "."
    return f"Install the NVIDIA driver{own_tool}"


def _held_words(cards: Sequence[Device]) -> str:
    drivers = sorted(
        {card.kernel_driver for card in cards if card.kernel_driver} - {nvidia.KERNEL_DRIVER}
    )
    return f"; driven by {listed(drivers)}" if drivers else ""


def _held_by_others(facts: PcFacts) -> Iterator[Finding]:
    for card in facts.nvidia_cards:
        is_held = card.unreadable_code == "not_served" or card.has_open_driver
        if is_held and not facts.is_dropped(card) and not facts.needed_driver(card):
            yield Finding(
                code="no_driver",
                sentence=f"Your {card.short_name} is installed, but the NVIDIA driver does not "
                f"control it. {_kernel_module_for(facts, card) or _USED_BY_OTHERS}",
                evidence=f"On the bus at {card.pci_bus_id}, not in NVML's list"
                + _held_words([card]),
                device_uuid=card.identity,
            )


def driver_dropped_card(facts: PcFacts) -> Iterator[Finding]:
    """The driver is newer than the last one that supports a card, so it ignores the card."""
    for card in facts.nvidia_cards:
        if not facts.is_dropped(card):
            continue
        kind, last = architecture_of(card), facts.last_driver(card)
        step = f"Install NVIDIA driver {last}, the last for {kind} cards"
        command = nvidia.driver_page(facts)
        if facts.last_build(card) is None and facts.cards:
            # The other cards need the newer driver, and this one is of no use to PyTorch.
            step = f"Keep this driver: PyTorch has no code for that card, and {last} was its last"
            command = ""
        elif facts.last_build(card) is None:
            step += ", to see it again; no PyTorch build has code for this card"
        yield Finding(
            code="driver_dropped_card",
            sentence=f"Driver {facts.driver_number} no longer supports your {card.short_name} "
            f"({kind}). {step}.",
            evidence=f"Driver {facts.driver.version or facts.driver.library_version}; the card is "
            f"at {card.pci_bus_id}, device id {card.pci_device_id or 0:04x}",
            command=command,
            device_uuid=card.identity,
        )


def driver_older_than_card(facts: PcFacts) -> Iterator[Finding]:
    """The driver is older than the first one that supports a card, so it ignores the card."""
    for card in facts.nvidia_cards:
        needed = facts.needed_driver(card)
        if not needed:
            continue
        installed = facts.driver.version or facts.driver.library_version
        yield Finding(
            code="driver_older_than_card",
            sentence=f"Driver {installed} is older than your {card.short_name} "
            f"({architecture_of(card)}): it needs driver {needed} or newer. Install the newest "
            "driver.",
            evidence=f"The card is at {card.pci_bus_id}, device id {card.pci_device_id or 0:04x}; "
            f"the first driver for such a chip is {needed}",
            command=nvidia.install_driver(facts),
            device_uuid=card.identity,
        )


def driver_too_old(facts: PcFacts) -> Iterator[Finding]:
    """The driver works, but the installed PyTorch needs a newer one."""
    floor = facts.driver_floor()
    # If another build fits the driver and the card, installing that build is easier.
    cards = [card for card in facts.cards if facts.has_code(card) is not False]
    engine = facts.cuda_build
    if floor is None or engine is None or not cards:
        return
    choice = facts.choice(cards)
    other = choice if choice and choice.tag != CPU_TAG else None
    build = facts.build_for_this_driver(cards)
    published = (
        f", or install PyTorch's {build.tag} build, which works with yours (not tested by us)."
        if build
        else "."
    )
    yield Finding(
        code="driver_too_old",
        sentence=f"The NVIDIA driver is too old for this PyTorch: it needs {floor} or newer, and "
        f"yours is {facts.driver.version}. Update {newer_driver(facts, cards)}"
        + (f", or install the {other.tag} build." if other else published),
        evidence=f"torch {engine.torch_version}, CUDA {engine.cuda_build}; found driver "
        f"{facts.driver.version}, which runs CUDA up to {facts.driver.cuda_version or 'unknown'}; "
        f"needed {floor}",
        command=other.install_command if other else nvidia.driver_page(facts),
        build_tag=other.tag if other else "",
    )


def mig_instances(facts: PcFacts) -> Iterator[Finding]:
    """A card is divided into MIG instances, which CUDA shows one at a time."""
    for card in facts.nvidia_cards:
        if not card.mig_enabled:
            continue
        name = card.short_name
        sentence = (
            f"Your {name} is divided into MIG instances: {listed(card.mig_instances)}. PyTorch "
            "uses one of them at a time."
            if card.mig_instances
            else f"Your {name} is in MIG mode without an instance, so no program can use it."
        )
        yield Finding(
            code="mig_instances",
            sentence=sentence,
            evidence="NVML reports that MIG mode is on. GPU Studio shows the sensors of the whole "
            "card, and does not support single instances",
            command=nvidia.end_mig(card),
            device_uuid=card.identity,
        )


def wsl_limits(facts: PcFacts) -> Iterator[Finding]:
    """The limits inside WSL 2."""
    if facts.inventory.is_wsl and facts.nvidia_cards:
        yield Finding(
            code="wsl_limits",
            sentence="This is WSL 2: some sensors are missing, and a full card becomes slow "
            "instead of failing.",
            evidence="WSL does not report how much memory each program uses. If the card's memory "
            "is full, data silently spills into RAM. The kernel's name contains Microsoft; driver "
            f"{facts.driver.version or 'unknown'} is the Windows driver",
        )


def card_asleep(facts: PcFacts) -> Iterator[Finding]:
    """A laptop's card is switched off."""
    engine = facts.engine
    for card in facts.inventory.cards:
        is_own = engine is not None and engine.build_kind == card.build_kind
        is_unasked = is_own and engine is not None and engine.cards_asleep
        if card.is_asleep:
            yield Finding(
                code="card_asleep",
                sentence=f"Your {card.short_name} is asleep to save power. "
                + (_LEFT_ASLEEP if is_unasked else _WAKES_WHEN_USED),
                evidence=f"runtime_status of {card.pci_bus_id} is suspended",
                command=nvidia.TOOL if is_unasked else "",
                action=Action.WAKE_CARDS if is_unasked else None,
                device_uuid=card.identity,
            )
