"""The words for an installation's progress, in the window and in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.builds.progress import InstallProgress, InstallStage, format_left
from gpu_studio.core.builds.trouble import TroubleKind, format_size
from gpu_studio.core.program_form import ProgramForm, own_program, typed
from gpu_studio.core.wheel_table import CPU_TAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.builds.trouble import Trouble

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


# The button of the window that does what a trouble asks for.
_BUTTONS = {
    TroubleKind.NO_NETWORK: "Everything except PyTorch works without a connection.",
    TroubleKind.OTHER_PC: "Everything except PyTorch works here.",
    TroubleKind.PROXY: "Then choose “Use a folder of files”.",
    TroubleKind.FOLDER: "“Copy details” copies the command for it.",
    TroubleKind.CHECK: "“Repair” is in the list below, and “Copy details” beside this.",
    TroubleKind.PIP: "“Copy details” copies them.",
    TroubleKind.INTERNAL: "“Copy details” copies them.",
}
# The command of the terminal that does it.
_COMMANDS = {
    TroubleKind.PROXY: "gpu-studio engine install {} --wheels FOLDER",
    TroubleKind.FOLDER: "gpu-studio engine install {} --wheels FOLDER",
    TroubleKind.CHECK: "gpu-studio engine repair {}",
}


def window_action(trouble: Trouble) -> str:
    """Return what to do next in the window."""
    return f"{trouble.next_step} {_BUTTONS.get(trouble.kind, '')}".rstrip()


def terminal_action(trouble: Trouble, family: str) -> str:
    """Return what to do next in a terminal, with the command if there is one for it."""
    command = _COMMANDS.get(trouble.kind)
    if command is None:
        return trouble.next_step
    return f"{trouble.next_step} Type “{typed(command.format(family))}”."


def whose_python() -> str:
    """Return whose Python the builds are for: the packages for Linux have none of their own."""
    is_systems = (
        operating_system.system() == "Linux" and own_program().form is ProgramForm.INSTALLED
    )
    return "this PC's" if is_systems else "GPU Studio's"


def build_title(family: str) -> str:
    """Return the name of a build for people: "cu126 build"; "build" without a name."""
    return f"{'CPU' if family == CPU_TAG else family} build".lstrip()


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
    return f"Not compared with a published hash: {packages}."
