"""The words for an installation's progress, in the window and in a terminal.

Standard library only: the setup imports this before anything is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.builds.progress import InstallProgress, InstallStage, format_left
from gpu_studio.core.builds.trouble import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

_STAGES = {
    InstallStage.WAITING: "Waiting for the {}",
    InstallStage.PLANNING: "Looking up the files of the {}…",
    InstallStage.DOWNLOADING: "Downloading the {}",
    InstallStage.RESUMING: "The line broke. Connecting again…",
    InstallStage.CHECKING: "Checking the files of the {}",
    InstallStage.INSTALLING: "Installing the {}",
    InstallStage.TESTING: "Testing the {} with a real computation",
    InstallStage.PAUSED: "The {} is paused",
    InstallStage.FETCHED: "The new {} is installed as soon as the present run ends",
    InstallStage.FAILED: "The {} could not be installed",
    InstallStage.READY: "The {} is ready",
}


def build_title(family: str) -> str:
    """Return the name of a build for people: "cu126 engine", "CPU engine"."""
    return f"{'CPU' if family == 'cpu' else family} engine"


def stage_title(stage: InstallStage, family: str) -> str:
    """Return what happens to a build in a stage, in a few words."""
    return _STAGES[stage].format(build_title(family))


def bytes_sentence(progress: InstallProgress) -> str:
    """Return the done bytes and the time that is left; empty if neither is known."""
    parts = []
    if progress.total_bytes:
        done, total = format_size(progress.done_bytes), format_size(progress.total_bytes)
        verb = " unpacked" if progress.stage is InstallStage.INSTALLING else ""
        parts.append(f"{done} of {total}{verb}")
    if progress.left_s is not None and progress.stage.is_at_work:
        parts.append(format_left(progress.left_s))
    return " · ".join(parts)


def unproven_sentence(names: Sequence[str]) -> str:
    """Return what to say of wheels that no published hash proves; empty if there are none."""
    if not names:
        return ""
    packages = ", ".join(" ".join(name.split("-")[:2]) for name in names)
    return f"Not compared with a published hash, because the index has none: {packages}."
