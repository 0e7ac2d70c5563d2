"""``gpu-studio engine``: the builds of PyTorch that this program installs for itself."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gpu_studio.builds.client import BuildInstallChild
from gpu_studio.builds.download import disk_trouble
from gpu_studio.builds.shelf import BuildShelf, own_shelf, require_unused
from gpu_studio.builds.wheel_folder import builds_in
from gpu_studio.cli.answers import LOOK_S, Interrupt, Stream
from gpu_studio.cli.command import (
    DONE,
    FAILED,
    INTERRUPTED,
    JSON_OBJECT,
    Option,
    WrongUseError,
    command,
    group,
)
from gpu_studio.cli.output import Progress, complain, give, note, print_json, print_line
from gpu_studio.cli.pc import data_folder, read_inventory
from gpu_studio.core.builds.progress import ENDS, InstallProgress, InstallStage
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.builds.trouble import Trouble, TroubleError, TroubleKind, format_size
from gpu_studio.core.builds.words import (
    build_title,
    bytes_sentence,
    stage_title,
    terminal_action,
)
from gpu_studio.core.devices.pc_facts import recommended_build
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.program_form import typed
from gpu_studio.core.texts import listed
from gpu_studio.core.wheel_table import download_size
from gpu_studio.core.wheels import WheelChoice, choice_of_tag, choose_wheel, own_platform_key

AUTO = "auto"
_JSON_STEPS = "print JSON, one line per step"
_OWN_TORCH = (
    "PyTorch is a package of this Python, so GPU Studio installs none. “{doctor}” shows the "
    "command that installs another build."
)
_AMD = "rocm-"
_BUILDS = listed([*(one for one in FAMILIES if not one.startswith(_AMD)), f"{_AMD}CHIP"])
_STEP = 0.05  # of an installation, between two lines of a log


def _build(text: str) -> str:
    if text not in FAMILIES:
        chips = [one for one in FAMILIES if one.startswith(_AMD)]
        builds = listed(chips) if text.startswith(_AMD) else _BUILDS
        message = f"There is no build “{text[:40]}”; there are {builds}"
        raise argparse.ArgumentTypeError(message)
    return text


def _build_or_auto(text: str) -> str:
    return text if text == AUTO else _build(text)


def _folder(text: str) -> Path:
    path = Path(text).absolute()
    if not path.is_dir():
        message = f"“{text[:80]}” is not a folder; name the one with the wheels"
        raise argparse.ArgumentTypeError(message)
    return path


_WHEELS = Option(
    "--wheels", "a folder of wheels in place of a download; the network is not asked",
    metavar="FOLDER", type=_folder,
)  # fmt: skip


@command(json=JSON_OBJECT)
def _list(options: argparse.Namespace, log_path: Path) -> None:
    """List the installed builds of PyTorch, and the one for this PC's cards."""
    shelf = _required_shelf()
    choice = _recommended(log_path)
    records, used, unfinished_bytes = shelf.records(), shelf.used(), shelf.unfinished_bytes()
    rows = [
        one._asdict() | {"is_used": one.family == used, "outdated": shelf.outdated(one)}
        for one in records
    ]
    value = {
        "engines": rows, "recommended": choice.tag, "reason": choice.sentence,
        "folder": str(shelf.root), "unfinished_bytes": unfinished_bytes,
    }  # fmt: skip

    def lines() -> Iterator[str]:
        for one in records:
            mark = "in use" if one.family == used else ""
            size = format_size(one.size_bytes) if one.size_bytes else ""
            parts = [one.torch_version, size, mark, shelf.outdated(one), one.note]
            yield f"{build_title(one.family)}: {', '.join(filter(None, parts))}"
        if not records:
            yield "No engine is installed."
        if unfinished_bytes:
            yield f"Unfinished installations take {format_size(unfinished_bytes)}."
        yield f"Recommended: {build_title(choice.tag)}. {choice.sentence}"
        record = shelf.record(choice.tag)
        if record is None or not record.is_ready or shelf.outdated(record):
            words = typed(f"gpu-studio engine install {choice.tag}")
            yield f"“{words}” downloads it ({download_size(choice.tag)})."

    give("engines", value, lines(), options)


@command(
    Option(
        "build", f"{_BUILDS}; auto, or nothing, is the one for this PC's cards, and then the best "
        "build is used",
        metavar="BUILD", type=_build_or_auto, default=AUTO, nargs="?",
    ),
    _WHEELS,
    json=_JSON_STEPS,
)  # fmt: skip
def _install(options: argparse.Namespace, log_path: Path) -> int:
    """Install a build of PyTorch, and use it from now on.

    Ctrl-C pauses; the same command continues the download where it stopped.
    """
    shelf = _required_shelf()
    family, reason = options.build, ""
    if options.build == AUTO:
        choice = _recommended(log_path)
        family, reason = choice.tag, choice.sentence
        if options.wheels is not None:  # the wanted build, or the best one that the folder has
            found = builds_in(options.wheels)
            family = family if family in found or not found else found[-1]
    terminal = _Terminal(family, reason, as_json=options.json)
    record = shelf.record(family)
    if record is not None and record.is_ready and not shelf.outdated(record):
        terminal.show(InstallProgress(InstallStage.READY, fraction=1.0, result=record.note))
    elif (status := _run(shelf, "install", options.wheels, terminal)) != DONE:
        return status
    wanted = shelf.wanted()
    builds = dict.fromkeys((*wanted.builds, family))
    used = "" if options.build == AUTO else family
    shelf.write_wanted(wanted._replace(builds=tuple(builds), used=used))
    return DONE


@command(
    Option("build", "the build; without one, that in use", metavar="BUILD", type=_build, nargs="?"),
    _WHEELS,
    json=_JSON_STEPS,
)
def _repair(options: argparse.Namespace, _log_path: Path) -> int:
    """Look at every file of a build, and install again what is damaged."""
    shelf = _required_shelf()
    family = options.build or shelf.used()
    if not family or shelf.record(family) is None:
        raise _not_installed(family or "cpu")
    terminal = _Terminal(family, "", as_json=options.json)
    return _run(shelf, "repair", options.wheels, terminal)


def _run(shelf: BuildShelf, what: str, wheels: Path | None, terminal: _Terminal) -> int:
    """Run the installer as the window does, until its end or Ctrl-C; return the exit status."""
    last = InstallStage.WAITING
    with Interrupt().recorded() as interrupt:
        child = BuildInstallChild(shelf.root, shelf.log_path)
        stream = Stream(_progress(shelf, child, terminal.family, what, wheels))
        try:
            while not stream.has_ended:
                progress = stream.wait(LOOK_S)
                if progress is not None:
                    last = progress.stage
                    terminal.show(progress)
                if interrupt.is_asked:
                    child.pause()
        finally:
            child.close()
    if last is InstallStage.PAUSED:
        terminal.note_pause(what, wheels)
        return INTERRUPTED
    return DONE if last is InstallStage.READY else FAILED


def _progress(
    shelf: BuildShelf, child: BuildInstallChild, family: str, what: str, wheels: Path | None
) -> Iterator[InstallProgress]:
    """Yield the installer's progress; what keeps it from starting is a failure as well."""
    try:
        require_unused(shelf, family)
        shelf.root.mkdir(parents=True, exist_ok=True)  # for the log
        yield from child.installing(family, wheels, what)
    except TroubleError as error:
        yield InstallProgress(InstallStage.FAILED, trouble=error.trouble)
    except OSError as error:
        trouble = disk_trouble(error, str(shelf.root), None)
        yield InstallProgress(InstallStage.FAILED, trouble=trouble)


@command(
    Option("build", "the build; auto is the best one", metavar="BUILD", type=_build_or_auto),
    json=JSON_OBJECT,
)
def _use(options: argparse.Namespace, _log_path: Path) -> None:
    """Use another installed build from now on."""
    shelf, family = _required_shelf(), options.build
    if family != AUTO:
        record = shelf.record(family)
        if record is None:
            raise _not_installed(family)
        problem = ""
        if not record.is_ready:
            repair = typed(f"gpu-studio engine repair {family}")
            problem = f"The {build_title(family)} cannot be used: {record.note}. Type “{repair}”."
        elif not shelf.is_loadable(record):
            again = typed(f"gpu-studio engine install {family}")
            problem = f"{shelf.outdated(record)} Type “{again}” to make it again."
        if problem:
            raise StudioError(FailureKind.INTERNAL, problem)
    shelf.write_wanted(shelf.wanted()._replace(used="" if family == AUTO else family))
    give("engine_changed", {"used": shelf.used()}, [_used_line(shelf)], options)


@command(Option("build", "the build", metavar="BUILD", type=_build), json=JSON_OBJECT)
def _remove(options: argparse.Namespace, _log_path: Path) -> None:
    """Remove a build, or what an unfinished installation of it has left. Your results stay."""
    shelf, family = _required_shelf(), options.build
    before_bytes = shelf.size_bytes(family) + shelf.downloads_bytes()
    record = shelf.record(family)
    if record is None and not before_bytes:
        raise _not_installed(family)
    try:
        require_unused(shelf, family)
        wanted = shelf.wanted()
        with shelf.alone(family):
            shelf.remove(family)
        builds = tuple(one for one in wanted.builds if one != family)
        used = "" if wanted.used == family else wanted.used
        shelf.write_wanted(wanted._replace(builds=builds, used=used))
        if record is None:  # an unfinished installation
            shelf.plan_path(family).unlink(missing_ok=True)
            if not shelf.plan_paths:
                shelf.discard()
    except TroubleError as error:
        message = f"{error.trouble.sentence} {terminal_action(error.trouble, family)}"
        raise StudioError(FailureKind.INTERNAL, message) from error
    freed_bytes = before_bytes - shelf.size_bytes(family) - shelf.downloads_bytes()
    removed = f"Removed the {build_title(family)}: {format_size(freed_bytes)} are free again."
    value = {"removed": family, "freed_bytes": freed_bytes, "used": shelf.used()}
    give("engine_changed", value, [removed, _used_line(shelf)], options)


def _used_line(shelf: BuildShelf) -> str:
    used = shelf.used()
    return f"The {build_title(used)} is used from now on." if used else "No engine is installed."


class _Terminal:
    """Shows an installation: a line that overwrites itself, or in a log a line now and then.

    Args:
        family: the build.
        reason: why this one; empty if the user named it.
        as_json: whether to print each step as JSON instead.
    """

    def __init__(self, family: str, reason: str, *, as_json: bool) -> None:
        self.family, self._reason, self._as_json = family, reason, as_json
        self._line = Progress()
        self._stage: InstallStage | None = None
        self._shown = 0.0
        if reason and not as_json:
            note(reason)

    def show(self, progress: InstallProgress) -> None:
        """Show one step."""
        if self._as_json:
            about = {"family": self.family, "reason": self._reason}
            print_json("install_progress", _progress_value(progress) | about)
            return
        title = stage_title(progress.stage, self.family)
        if progress.stage in ENDS:
            self._line.clear()
            self._show_end(title, progress)
            return
        share = f"{100 * progress.fraction:.0f} %"
        text = " ".join(filter(None, (share, title, bytes_sentence(progress))))
        self._line.show(text)
        is_due = progress.fraction - self._shown >= _STEP
        if not self._line.is_live and (progress.stage is not self._stage or is_due):
            note(text)
            self._shown = progress.fraction
        self._stage = progress.stage

    def note_pause(self, what: str, wheels: Path | None) -> None:
        """Say how to go on."""
        if not self._as_json:
            folder = f" --wheels {shlex.quote(str(wheels))}" if wheels else ""
            note(f"“{typed(f'gpu-studio engine {what} {self.family}')}{folder}” continues.")

    def _show_end(self, title: str, progress: InstallProgress) -> None:
        trouble = progress.trouble
        if trouble is None:
            print_line(f"{title}. {progress.result}".strip())
            return
        complain(f"{trouble.sentence} {terminal_action(trouble, self.family)}")
        for line in _evidence(trouble, self.family):
            complain(line)


def _progress_value(progress: InstallProgress) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(progress)
    trouble = progress.trouble
    if trouble is not None:
        value["trouble"] = {
            "kind": trouble.kind.value, "sentence": trouble.sentence, "action": trouble.next_step,
            "detail": trouble.detail, "link": trouble.link,
        }  # fmt: skip
    return value


def _evidence(trouble: Trouble, family: str) -> list[str]:
    """Return the lines below a trouble: the command for another PC, or the details to report."""
    if trouble.kind is TroubleKind.FOLDER:
        choice = choice_of_tag(family)
        words = choice.download_command(sys.version_info[:2], own_platform_key())
        return ["To fill a folder of wheels on another PC:", f"  {words}"]
    return [f"  {line}" for line in trouble.detail.splitlines()]


def _not_installed(family: str) -> StudioError:
    command = typed(f"gpu-studio engine install {family}")
    message = f"The {build_title(family)} is not installed. Type “{command}” to install it."
    return StudioError(FailureKind.INTERNAL, message)


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


COMMANDS = {
    "engine": group(
        "List, install, choose, repair or remove the builds of PyTorch that GPU Studio uses. "
        "“engine BUILD” is short for “engine install BUILD”, and “engine” for “engine list”.",
        {"list": _list, "install": _install, "use": _use, "repair": _repair, "remove": _remove},
        usual_part="install",
        bare_part="list",
    )
}
