"""Findings about the cards: lost, busy, wrong, slow, misnamed, or none at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import disagreements, torch_card_of
from gpu_studio.core.devices.devices import EXCLUSIVE_PROCESS, PROHIBITED
from gpu_studio.core.devices.finding import Finding, restart
from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.notice import Action
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts

_EXPLAINED_FOR_ALL = frozenset({"lost", "asleep", "silent"})
_EXPLAINED_ELSEWHERE = _EXPLAINED_FOR_ALL | {"no_driver", "not_served", "driver_updated"}
MAC = (
    "This program measures CUDA, which no Mac has. PyTorch's standard build uses a Mac's own GPU "
    "under the name mps (not tested by us)."
)
_ASK_MPS = 'python -c "import torch; print(torch.backends.mps.is_available())"'
_TIME_CPU = "gpu-studio bench matmul --device cpu"


def next_step(facts: PcFacts) -> tuple[str, Action | None]:
    """Return a command or an address to copy, and what the window does instead."""
    if facts.inventory.is_wsl:
        return nvidia.DRIVER_PAGE, None
    if facts.system == "Darwin":
        return _ASK_MPS, None
    return _TIME_CPU, Action.RUN_BENCHMARK


def other_names(facts: PcFacts) -> tuple[str, ...]:
    """Return the names of the cards of all makers but NVIDIA."""
    return (*(card.name for card in facts.others), *facts.inventory.other_gpus)


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
                evidence=(probed.message if probed else "")
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
            evidence=card.pci_bus_id or "",
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
                evidence="Undo any overclocking, and test the card's memory. One kernel added "
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
            evidence=f"Compute mode {mode}"
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
            evidence=f"VBIOS {card.vbios or 'unknown'}, device id "
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
            evidence="Reseat the card, try another slot, or remove the riser. Read under load, "
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
            evidence="GPU Studio uses the order of nvidia-smi. CUDA_DEVICE_ORDER is not set, so "
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
    others = other_names(facts)
    sentence = "This PC has no NVIDIA card, so everything here runs on the CPU."
    if facts.inventory.is_wsl:
        sentence = (
            "WSL shows no NVIDIA card, so everything here runs on the CPU. If Windows has one, "
            "install its driver in Windows, not in WSL."
        )
    elif facts.system == "Darwin":
        sentence += f" {MAC}"
    if others:
        verb = "is" if len(others) == 1 else "are"
        sentence = (
            f"Everything here runs on the CPU. {listed(others)} {verb} present and can draw, but "
            "PyTorch cannot use it."
        )
    command, action = next_step(facts)
    yield Finding(
        code="no_nvidia_card",
        sentence=sentence,
        evidence=f"Driver: {facts.driver.error or 'it finds no card.'} On the bus: "
        f"{listed(others) or 'no graphics card'}",
        command=command,
        action=action,
    )
