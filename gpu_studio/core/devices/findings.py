"""Can PyTorch use the cards of this PC? If not, why, and what to do next?

Each finding is one small function over plain facts, or a row of `causes`. To add one, write its
function, add it to `_RULES`, and its code to `finding.KINDS`, which goes from worst to best.
Sentences are for people who are new to CUDA, the evidence is for people who are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.devices import card_findings, torch_findings, why_not
from gpu_studio.core.devices.finding import KINDS, TORCH_PAGE, Finding, worst_first
from gpu_studio.core.devices.pc_facts import PcFacts
from gpu_studio.core.program_form import own_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpu_studio.core.devices.access import PcProbed
    from gpu_studio.core.devices.devices import Inventory, Reading
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.program_form import Program


# Why a card cannot be read; what else is said of it is then no finding of its own.
_SAYS_WHY = ("card_lent", "card_lost", "no_driver")
_OF_THE_PC = ("sudo ", "shutdown", "wsl ")
_RULES: tuple[Callable[[PcFacts], Iterator[Finding]], ...] = (
    card_findings.driver_not_answering,
    torch_findings.engine_missing,
    card_findings.driver_updated,
    why_not.cards_of_any_maker,
    why_not.nvidias_driver,
    why_not.other_makers_cards,
    card_findings.card_lost,
    card_findings.wrong_sum,
    card_findings.driver_dropped_card,
    card_findings.driver_older_than_card,
    card_findings.driver_too_old,
    torch_findings.build_without_cuda,
    torch_findings.no_code_for_card,
    torch_findings.kernel_failed,
    card_findings.device_busy,
    torch_findings.hidden_by_environment,
    torch_findings.build_for_card,
    card_findings.no_nvidia_card,
    torch_findings.no_build_for_card,
    torch_findings.other_build_for_card,
    card_findings.card_unreadable,
    card_findings.not_as_named,
    card_findings.slow_link,
    card_findings.card_asleep,
    card_findings.mixed_order,
    torch_findings.integrated_first,
    torch_findings.not_tested,
    card_findings.mig_instances,
    card_findings.wsl_limits,
    torch_findings.ok,
    torch_findings.ok_by_maker,
)


def find(
    inventory: Inventory,
    engine: EngineDescribed | None,
    *,
    probe: PcProbed | None = None,
    readings: Sequence[Reading] = (),
    links: Mapping[str, Link] | None = None,
    system: str | None = None,
    machine: str | None = None,
    absence: str = "",
    program: Program | None = None,
) -> tuple[Finding, ...]:
    """Return the findings, worst first, with an ``ok`` for every card that PyTorch can use.

    Args:
        inventory: the devices that the sensor reader found.
        engine: the engine's description of itself; None before it is known, which leaves only
            the findings that do not depend on PyTorch.
        probe: the results of a real kernel on each card, if the cards were tested.
        readings: the sensor readings since then, oldest first.
        links: the fastest link of each card under load, by identity; None takes it from
            ``readings``.
        system: "Linux" or "Windows"; this PC's if None.
        machine: "x86_64" or "aarch64"; this PC's if None.
        absence: why there is no PyTorch for an engine; empty if there is one.
        program: the program that the commands are for; this one if None.
    """
    facts = PcFacts(
        inventory,
        engine,
        system or operating_system.system(),
        machine or operating_system.machine(),
        probe,
        readings,
        links,
        absence,
    )
    found: list[Finding] = []
    for rule in _RULES:
        found.extend(rule(facts))
    found.extend(why_not.start_failed(facts, found))
    found = _once(found)
    program = program or own_program()
    return tuple(
        msgspec.structs.replace(
            finding,
            tone=KINDS[finding.code],
            command=_typed(finding.command, program, facts),
        )
        for finding in worst_first(found)
    )


def _once(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings without a card's that another one explains."""
    explained = {one.device_uuid for one in found if one.code in _SAYS_WHY}
    return [
        one for one in found if one.code != "card_unreadable" or one.device_uuid not in explained
    ]


def _typed(command: str, program: Program, facts: PcFacts) -> str:
    """Return a command as the user types it, or PyTorch's page where the user has no Python.

    What changes the PC itself cannot be typed inside a container.
    """
    signs = facts.inventory.signs
    if signs is not None and signs.sandbox and command.startswith(_OF_THE_PC):
        return ""
    return program.typed(command) or (TORCH_PAGE if command else "")
