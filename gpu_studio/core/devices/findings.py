"""Can PyTorch use the cards of this PC? If not, why, and what to do next?

Each finding is one small function over plain facts. To add a finding, write its function, and add
it to `_RULES` and its code to `finding.SEVERITIES`, which both go from worst to best. Sentences
are for people who are new to CUDA, the evidence is for people who are not.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.devices import card_findings, driver_findings, torch_findings
from gpu_studio.core.devices.finding import Finding, worst_first
from gpu_studio.core.devices.pc_facts import PcFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpu_studio.core.devices.devices import Inventory, Reading
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.devices.torch_facts import PcProbed
    from gpu_studio.core.messages.engine_messages import EngineDescribed


_EXPLAINING = frozenset(
    {
        "driver_not_answering", "driver_library_mismatch", "card_lost", "no_driver",
        "driver_dropped_card", "driver_too_old", "no_code_for_card",
    }
)  # fmt: skip
_RULES: tuple[Callable[[PcFacts], Iterator[Finding]], ...] = (
    driver_findings.driver_not_answering,
    driver_findings.driver_library_mismatch,
    card_findings.card_lost,
    card_findings.wrong_sum,
    driver_findings.no_driver,
    driver_findings.driver_dropped_card,
    driver_findings.driver_too_old,
    torch_findings.build_without_cuda,
    torch_findings.no_code_for_card,
    torch_findings.cuda_init_failed,
    card_findings.device_busy,
    torch_findings.hidden_by_environment,
    card_findings.no_nvidia_card,
    card_findings.card_unreadable,
    card_findings.not_as_named,
    card_findings.slow_link,
    driver_findings.card_asleep,
    card_findings.mixed_order,
    driver_findings.mig_instances,
    driver_findings.wsl_limits,
    torch_findings.tables_differ,
    torch_findings.ok,
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
    executable: str = sys.executable,
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
        executable: the Python that the actions are for.
    """
    facts = PcFacts(
        inventory,
        engine,
        system or operating_system.system(),
        machine or operating_system.machine(),
        probe,
        readings,
        links,
    )
    found: list[Finding] = []
    for rule in _RULES:
        found.extend(rule(facts))
    return tuple(
        msgspec.structs.replace(finding, command=typed(finding.command, executable))
        for finding in worst_first(_unexplained(found, facts))
    )


def _unexplained(found: Sequence[Finding], facts: PcFacts) -> Sequence[Finding]:
    """Return the findings without the general CUDA failure if another finding explains it."""
    if not _is_explained(found, facts):
        return found
    return [
        finding
        for finding in found
        if finding.code != "cuda_init_failed" or finding.device_uuid is not None
    ]


def _is_explained(found: Sequence[Finding], facts: PcFacts) -> bool:
    """Return whether a specific finding explains why CUDA as a whole is not available."""
    codes = [finding.code for finding in found]
    if codes.count("hidden_by_environment") == len(facts.cards) > 0:
        return True
    return not _EXPLAINING.isdisjoint(codes)


_PYTHON = "python "
_STUDIO = "gpu-studio "


def python_here(executable: str = sys.executable) -> str:
    """Return the shell command for this Python: ``python`` only if that is this very Python.

    Args:
        executable: the path of this Python; empty if Python does not know it.
    """
    folder, name = os.path.split(executable)
    if name.lower() == "pythonw.exe":  # runs the window and has no console
        executable = os.path.join(folder, "python.exe")
    found = shutil.which("python")
    if not executable or (found is not None and _normal(found) == _normal(executable)):
        return "python"
    if os.name == "nt":
        return f'"{executable}"' if " " in executable else executable
    return shlex.quote(executable)


def typed(command: str, executable: str = sys.executable) -> str:
    """Return a ``python`` or ``gpu-studio`` command in a form that works in the user's shell."""
    python = python_here(executable)
    if command.startswith(_PYTHON):
        return f"{python} {command.removeprefix(_PYTHON)}"
    if command.startswith(_STUDIO) and not _is_ours(shutil.which("gpu-studio"), executable):
        return f"{python} -m gpu_studio {command.removeprefix(_STUDIO)}"
    return command


def _is_ours(script: str | None, executable: str) -> bool:
    """Return whether a script is in the folder of this Python, as pip puts it there."""
    return script is not None and _normal(os.path.dirname(script)) == _normal(
        os.path.dirname(executable)
    )


def _normal(path: str) -> str:
    # Links are not followed: an environment's Python is often a link to the system's.
    return os.path.normcase(os.path.abspath(path))
