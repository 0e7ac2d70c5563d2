"""Can PyTorch use the cards of this PC? If not, why, and what to do next?

Each finding is one small function over plain facts. To add a finding, write its function, and add
it to `_RULES` and its code to `finding.SEVERITIES`, which both go from worst to best. Sentences
are for people who are new to CUDA, the evidence is for people who are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.devices import card_findings, torch_findings
from gpu_studio.core.devices.finding import TORCH_PAGE, Finding, worst_first
from gpu_studio.core.devices.pc_facts import PcFacts
from gpu_studio.core.program_form import own_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpu_studio.core.devices.devices import Inventory, Reading
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.devices.torch_facts import PcProbed
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.program_form import Program


_EXPLAINING = frozenset(
    {
        "driver_not_answering", "driver_library_mismatch", "card_lost", "no_driver",
        "driver_dropped_card", "driver_older_than_card", "driver_too_old", "no_code_for_card",
    }
)  # fmt: skip
_RULES: tuple[Callable[[PcFacts], Iterator[Finding]], ...] = (
    card_findings.driver_not_answering,
    torch_findings.engine_missing,
    card_findings.driver_library_mismatch,
    card_findings.card_lost,
    card_findings.wrong_sum,
    card_findings.no_driver,
    card_findings.driver_dropped_card,
    card_findings.driver_older_than_card,
    card_findings.driver_too_old,
    torch_findings.build_without_cuda,
    torch_findings.no_code_for_card,
    torch_findings.cuda_init_failed,
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
    torch_findings.tables_differ,
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
    program = program or own_program()
    return tuple(
        msgspec.structs.replace(finding, command=_typed(finding.command, program))
        for finding in worst_first(_unexplained(found, facts))
    )


def _typed(command: str, program: Program) -> str:
    """Return a command as the user types it, or PyTorch's page where the user has no Python."""
    return program.typed(command) or (TORCH_PAGE if command else "")


def _unexplained(found: Sequence[Finding], facts: PcFacts) -> Sequence[Finding]:
    """Return the findings without the general CUDA failure if another finding explains it."""
    codes = [finding.code for finding in found]
    are_hidden = codes.count("hidden_by_environment") == len(facts.cards) > 0
    if not are_hidden and _EXPLAINING.isdisjoint(codes):
        return found
    return [one for one in found if one.code != "cuda_init_failed" or one.device_uuid is not None]
