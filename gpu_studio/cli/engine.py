"""``gpu-studio engine``: the builds of PyTorch that this program installs for itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from gpu_studio.builds.install import BuildInstaller
from gpu_studio.builds.shelf import own_shelf
from gpu_studio.cli.answers import Interrupt, read_inventory
from gpu_studio.cli.command import (
    DONE,
    FAILED,
    INTERRUPTED,
    JSON_OBJECT,
    Command,
    WrongUseError,
)
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.screen import Progress, note, print_json, print_line
from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.record import FAMILIES, Wanted
from gpu_studio.core.builds.words import build_title, bytes_sentence, stage_title
from gpu_studio.core.devices.pc_facts import recommended_build
from gpu_studio.core.failure import StudioError
from gpu_studio.core.program_form import typed
from gpu_studio.core.wheels import choose_wheel

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.builds.shelf import BuildShelf
    from gpu_studio.core.wheels import WheelChoice

AUTO = "auto"
_OWN_TORCH = (
    "PyTorch is a package of this Python, so GPU Studio installs none. “{doctor}” shows the "
    "command that installs another build."
)


def _list(options: argparse.Namespace, log_path: Path) -> int:
    """Print the installed builds and the recommended one; return the exit status."""
    shelf = _required_shelf()
    choice = _recommended(log_path)
    used = shelf.used()
    if options.json:
        rows = [asdict(one) | {"is_used": one.family == used} for one in shelf.records()]
        value = {"engines": rows, "recommended": choice.tag, "reason": choice.sentence}
        print_json(value)
        return DONE
    for one in shelf.records():
        mark = "in use" if one.family == used else ""
        parts = [one.torch_version, mark, shelf.outdated(one), one.note]
        print_line(f"{build_title(one.family)}: {', '.join(filter(None, parts))}")
    if not shelf.records():
        print_line("No engine is installed.")
    print_line(f"Recommended: {build_title(choice.tag)}. {choice.sentence}")
    return DONE


def _run_install(options: argparse.Namespace, log_path: Path) -> int:
    """Install a build and use it from now on; return the exit status."""
    build = options.build
    shelf = _required_shelf()
    family, reason = build, ""
    if build == AUTO:
        choice = _recommended(log_path)
        family, reason = choice.tag, choice.sentence
    with Interrupt().recorded() as interrupt:
        last = _install(shelf, family, reason, interrupt, as_json=options.json)
    if last is InstallStage.PAUSED:
        return INTERRUPTED
    if last is not InstallStage.READY:
        return FAILED
    builds = dict.fromkeys((*shelf.wanted().builds, family))
    shelf.write_wanted(Wanted(tuple(builds), "" if build == AUTO else family))
    return DONE


def _install(
    shelf: BuildShelf, family: str, reason: str, interrupt: Interrupt, *, as_json: bool
) -> InstallStage:
    line = Progress()
    stage = InstallStage.WAITING

    def show(progress: InstallProgress) -> None:
        nonlocal stage
        stage = progress.stage
        if as_json:
            value = progress.value() | {"family": family, "reason": reason}
            print_json(value)
            return
        title = stage_title(stage, family)
        if progress.trouble is not None:
            line.clear()
            note(f"{progress.trouble.sentence} {progress.trouble.action}")
        elif stage.is_at_work:
            line.show(" ".join(filter(None, (title, bytes_sentence(progress)))))
        else:
            line.clear()
            print_line(f"{title}. {progress.result}".strip())

    if reason and not as_json:
        note(reason)
    record = shelf.record(family)
    installer = BuildInstaller(shelf, show, lambda: interrupt.is_asked)
    if record is not None and record.is_ready and not shelf.outdated(record):
        show(InstallProgress(InstallStage.READY, fraction=1.0, result=record.note))
    else:
        installer.install(family)
    return stage


def _recommended(log_path: Path) -> WheelChoice:
    """Return the build for this PC's cards; a driver that does not answer counts as none."""
    try:
        return recommended_build(read_inventory(log_path))
    except StudioError:
        return choose_wheel((), None)


def _required_shelf() -> BuildShelf:
    shelf = own_shelf(data_folder)
    if shelf is None:
        raise WrongUseError(_OWN_TORCH.format(doctor=typed("gpu-studio doctor")))
    return shelf


def _add_install(parser: argparse.ArgumentParser) -> None:
    builds = (*FAMILIES, AUTO)
    parser.add_argument(
        "build", choices=builds, metavar="|".join(builds),
        help="the build; auto is the one for this PC's cards, and then the best build is used",
    )  # fmt: skip


COMMAND = Command(
    about="List or install the builds of PyTorch that GPU Studio uses. “engine BUILD” is short for "
    "“engine install BUILD”.",
    parts={
        "install": Command(
            help="install a build, and use it from now on",
            about="Install a build of PyTorch, and use it from now on.",
            run=_run_install,
            add_arguments=_add_install,
            json="print JSON, one line per step",
        ),
        "list": Command(
            help="list the installed builds",
            about="List the installed builds of PyTorch, and the one for this PC's cards.",
            run=_list,
            json=JSON_OBJECT,
        ),
    },
    usual_part="install",
)
