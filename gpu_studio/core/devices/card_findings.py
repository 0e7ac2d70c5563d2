"""Findings about the cards and NVIDIA's driver: is it there, does it answer, what of each card?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import disagreements, torch_card_of
from gpu_studio.core.devices.devices import EXCLUSIVE_PROCESS, PROHIBITED
from gpu_studio.core.devices.finding import Finding, continued, newer_driver, restart
from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.devices.pc_facts import architecture_of
from gpu_studio.core.devices.unused_cards import GIVE_CARD, UnusedCards
from gpu_studio.core.notice import Action
from gpu_studio.core.texts import listed
from gpu_studio.core.wheel_table import CPU_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts

_EXPLAINED_FOR_ALL = frozenset({"lost", "asleep", "silent"})
_EXPLAINED_ELSEWHERE = _EXPLAINED_FOR_ALL | {"no_driver", "not_served", "driver_updated"}
_MAC = (
    "This program measures CUDA, which no Mac has. PyTorch's standard build uses a Mac's own GPU "
    "under the name mps (not tested by us)."
)
_ASK_MPS = 'python -c "import torch; print(torch.backends.mps.is_available())"'
_TIME_CPU = "gpu-studio bench matmul --device cpu"


def card_lost(facts: PcFacts) -> Iterator[Finding]:
    """The card dropped off the bus: at the start, between two readings, or during a kernel."""
    for card in facts.inventory.cards:
        reading, probed = facts.reading_of(card), facts.probed(card)
        reason = card.unreadable if card.unreadable_code == "lost" else None
        if reason is None and reading is not None and reading.error_code == "lost":
            reason = reading.error
        if reason is None and probed is not None and probed.outcome == "lost":
            reason = "The card dropped off the bus while a kernel ran. Restart the PC."
        if reason is not None:
            yield Finding(
                code="card_lost",
                sentence=f"{card.short_name}: {reason}",
                detail=(probed.message if probed else "")
                or "NVML error 15 or 16; often caused by power, the slot, or the cable of a riser "
                "or of an external box",
                command=restart(facts),
                device_uuid=card.identity,
            )


def card_unreadable(facts: PcFacts) -> Iterator[Finding]:
    """A card cannot be read, for a reason that no other finding explains."""
    is_driver_explained = facts.driver.error is not None or facts.driver.is_silent
    for card in facts.inventory.cards:
        is_other = card in facts.others
        explained = _EXPLAINED_FOR_ALL if is_other else _EXPLAINED_ELSEWHERE
        if card.answers_or_sleeps or card.unreadable_code in explained:
            continue
        if is_driver_explained and not is_other:
            continue
        yield Finding(
            code="card_unreadable",
            sentence=f"{card.short_name}: {card.unreadable}",
            detail=card.pci_bus_id or "",
            device_uuid=card.identity,
        )


def wrong_sum(facts: PcFacts) -> Iterator[Finding]:
    """Kernels run on the card, but their results are wrong."""
    for card in facts.cards:
        probed = facts.probed(card)
        if probed is not None and probed.is_sum_wrong:
            yield Finding(
                code="wrong_sum",
                sentence=f"Your {card.short_name} computed a wrong sum: {probed.total:g} instead "
                f"of {probed.expected_total:g}. Do not trust its results.",
                detail="Undo any overclocking, and test the card's memory. One kernel added "
                "small whole numbers and another summed them, which is exact in float32; launch "
                "and synchronize reported no error",
                device_uuid=card.identity,
            )


def device_busy(facts: PcFacts) -> Iterator[Finding]:
    """A card accepts no further program."""
    for card in facts.cards:
        probed = facts.probed(card)
        if probed is not None and probed.outcome == "ran":
            continue
        is_refused = probed is not None and probed.outcome == "busy"
        holders = [process for process in card.processes if "compute" in process.kind]
        if card.compute_mode == PROHIBITED:
            why = "its compute mode is “prohibited”, which lets no program run on it"
        elif card.compute_mode == EXCLUSIVE_PROCESS and holders:
            names = listed([f"{process.name} ({process.pid})" for process in holders])
            why = f"its compute mode allows a single program, and {names} is using it"
        elif is_refused:
            why = "another program is using it alone, or its compute mode is exclusive"
        else:
            continue
        mode = card.compute_mode or "unknown"
        yield Finding(
            code="device_busy",
            sentence=f"Your {card.short_name} is busy: {why}.",
            detail=f"Compute mode {mode}"
            + (f"; {probed.message}" if probed is not None and probed.message else ""),
            command=nvidia.open_to_all(card, facts.system),
            device_uuid=card.identity,
        )


def not_as_named(facts: PcFacts) -> Iterator[Finding]:
    """A card's name does not match its chip, or the driver and PyTorch disagree."""
    for card in facts.cards:
        torch_card = facts.torch_card(card)
        named = identity_of(card, torch_card).differing
        differing = disagreements(card, torch_card)
        if named:
            sentence = (
                f"The card that calls itself {card.short_name} doesn't match that name: "
                f"{listed([one.sentence for one in named])}. It may be another card with a changed "
                "BIOS."
            )
        elif differing:
            sentence = (
                f"The driver and PyTorch disagree about your {card.short_name}: "
                f"{listed([one.sentence for one in differing])}."
            )
        else:
            continue
        yield Finding(
            code="not_as_named",
            sentence=sentence,
            detail=f"VBIOS {card.vbios or 'unknown'}, device id "
            + ("unknown" if card.pci_device_id is None else f"{card.pci_device_id:04x}")
            + "; resources/cards.json and card_chips.json have what is sold under that name",
            device_uuid=card.identity,
        )


def slow_link(facts: PcFacts) -> Iterator[Finding]:
    """A busy card's link is slower than the card and its slot allow."""
    for card in facts.cards:
        now, best = facts.links.get(card.identity), widest_link(card)
        if now is None or best is None:
            continue
        if now.generation >= best.generation and now.width >= best.width:
            continue
        yield Finding(
            code="slow_link",
            sentence=f"Your {card.short_name} is connected at PCIe {now.text} instead of "
            f"{best.text}, so copies take longer.",
            detail="Reseat the card, try another slot, or remove the riser. Read under load, "
            f"because an idle card drops to generation 1; fastest seen {now.text}",
            device_uuid=card.identity,
        )


def mixed_order(facts: PcFacts) -> Iterator[Finding]:
    """Without CUDA_DEVICE_ORDER, a script numbers the cards differently from nvidia-smi."""
    if "CUDA_DEVICE_ORDER" in facts.inventory.variables:
        return
    if facts.engine is not None and facts.engine.visible_devices is not None:
        return
    cards = [card for card in facts.cards if card.driver_index is not None]
    if len(cards) < 2:
        return
    order, how = _order_of_scripts(facts, cards)
    differing = [
        f"cuda:{number} is the {card.short_name}"
        for number, card in enumerate(order)
        if card is not None and card.driver_index != number
    ]
    if differing:
        yield Finding(
            code="mixed_order",
            sentence=f"Your own scripts number the cards differently: {listed(differing)}.",
            detail="GPU Studio uses the order of nvidia-smi. CUDA_DEVICE_ORDER is not set, so "
            f"CUDA puts the fastest card first; the order of your scripts is {how}",
            command="setx CUDA_DEVICE_ORDER PCI_BUS_ID"
            if facts.system == "Windows"
            else "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        )


def _order_of_scripts(facts: PcFacts, cards: list[Device]) -> tuple[list[Device | None], str]:
    """Return the cards in the order of a script, and how that order is known."""
    if facts.probe is not None and facts.probe.cards:
        seen = [one.card for one in facts.probe.cards]
        order = [
            next((card for card in cards if torch_card_of(card, (one,))), None) for one in seen
        ]
        return order, "seen in a separate process"
    speeds = [
        (card.multiprocessors or 0) * (card.sm_clock_max_mhz or 0) if card.multiprocessors else None
        for card in cards
    ]
    known = [speed for speed in speeds if speed]
    by_bus = sorted(cards, key=lambda card: card.pci_bus_id or "")
    if len(known) < len(cards):
        return list(by_bus), "unknown"
    fastest = max(cards, key=lambda card: known[cards.index(card)])
    rest = [card for card in by_bus if card is not fastest]
    return [fastest, *rest], "guessed from multiprocessors and clocks"


def no_nvidia_card(facts: PcFacts) -> Iterator[Finding]:
    """There is no NVIDIA card; other cards are listed with PyTorch's support for them."""
    absent = (None, "not_installed", "not_running")
    if facts.nvidia_cards or facts.driver.is_silent or facts.driver.error_code not in absent:
        return
    if facts.judged_cards:
        return  # what PyTorch can do with those is a finding of its own
    others = (*(card.name for card in facts.others), *facts.inventory.other_gpus)
    sentence = "This PC has no NVIDIA card, so everything here runs on the CPU."
    is_mac = facts.system == "Darwin"
    case = UnusedCards(facts, ())
    if case.is_boxed:
        box = case.sandbox[0].upper() + case.sandbox[1:]
        sentence = (
            f"{box} shows no NVIDIA card, so everything here runs on the CPU. If the PC has one: "
            f"{continued(case.step(GIVE_CARD).words)}"
        )
    elif facts.inventory.is_wsl:
        sentence = (
            "WSL shows no NVIDIA card, so everything here runs on the CPU. If Windows has one, "
            "install its driver in Windows, not in WSL."
        )
    elif is_mac:
        sentence = f"{sentence} {_MAC}"
    if others:
        verb = "is" if len(others) == 1 else "are"
        sentence = (
            f"Everything here runs on the CPU. {listed(others)} {verb} present and can draw, but "
            "PyTorch cannot use it."
        )
    step = nvidia.DRIVER_PAGE if facts.inventory.is_wsl else _ASK_MPS if is_mac else ""
    yield Finding(
        code="no_nvidia_card",
        sentence=sentence,
        detail=f"Driver: {facts.driver.error or 'it finds no card.'} On the bus: "
        f"{listed(others) or 'no graphics card'}",
        command=step or _TIME_CPU,
        action=None if step else Action.RUN_BENCHMARK,
    )


_UPDATED_ON_DISK = (
    "The NVIDIA driver was updated while GPU Studio was running. Programs that are already running "
    "continue to work. Restart the PC before you start another program that uses the card."
)
_LEFT_ASLEEP = "GPU Studio did not ask PyTorch about it, because that would wake it."
_WAKES_WHEN_USED = "Reading it would wake it. It wakes up when a program uses it."


def driver_not_answering(facts: PcFacts) -> Iterator[Finding]:
    """A call into the driver never returned, for all cards or for one."""
    names = listed([card.short_name for card in facts.nvidia_cards])
    if facts.driver.is_silent:
        yield Finding(
            code="driver_not_answering",
            sentence="The NVIDIA driver does not answer. It usually hangs after a card error. "
            "Restart the PC.",
            detail="A call into the driver did not return"
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
                detail=(probed.message if probed else "")
                or "A call into the driver did not return.",
                command=restart(facts),
                device_uuid=card.identity,
            )


def driver_updated(facts: PcFacts) -> Iterator[Finding]:
    """The driver was replaced on the disk; what runs goes on."""
    driver = facts.driver
    if driver.was_updated and driver.error_code != "driver_updated":
        library = f" ({driver.library_version})" if driver.library_version else ""
        yield Finding(
            code="driver_library_mismatch",
            sentence=_UPDATED_ON_DISK,
            detail=f"The driver library in use{library} is no longer on the disk",
            command=restart(facts),
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
            detail=f"Driver {facts.driver.version or facts.driver.library_version}; the card is "
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
            detail=f"The card is at {card.pci_bus_id}, device id {card.pci_device_id or 0:04x}; "
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
    yield Finding(
        code="driver_too_old",
        sentence=f"The NVIDIA driver is too old for this PyTorch: it needs {floor} or newer, and "
        f"yours is {facts.driver.version}. Update {newer_driver(facts, cards)}"
        + (f", or install the {other.tag} build." if other else "."),
        detail=f"torch {engine.torch_version}, CUDA {engine.cuda_build}; found driver "
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
        yield Finding(
            code="mig_instances",
            sentence=f"Your {card.short_name} is in MIG mode: PyTorch uses one of its instances at "
            "a time, and none where it has no instance.",
            detail="NVML reports that MIG mode is on. GPU Studio shows the sensors of the whole "
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
            detail="WSL does not report how much memory each program uses. If the card's memory "
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
                detail=f"runtime_status of {card.pci_bus_id} is suspended",
                command=nvidia.TOOL if is_unasked else "",
                action=Action.WAKE_CARDS if is_unasked else None,
                device_uuid=card.identity,
            )
