"""The setup: the steps for each verdict, their order, and the facts to remember."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import CPU_TAG, WheelChoice, choice_of_tag, choose_wheel
from studio_setup import stamp as stamps
from studio_setup import system_libraries as libraries
from studio_setup.cards import Sighting, find_cards
from studio_setup.console import Log, SetupError
from studio_setup.environment import install_project, make_environment, require_space, try_imports
from studio_setup.fingerprint import driver_module_version
from studio_setup.lock import one_at_a_time
from studio_setup.locked_packages import install_locked
from studio_setup.pip_runner import Pip
from studio_setup.stamp import NEWEST, TESTED, Verdict
from studio_setup.torch_build import install_torch, installed_torch

if TYPE_CHECKING:
    from pathlib import Path

    from studio_setup.console import Console
    from studio_setup.need import Need

_STEPS = 4


class SetUp:
    """Brings a checkout's environment to the state that a command needs.

    Args:
        need: The command's needs.
        console: Shows the progress.
    """

    def __init__(self, need: Need, console: Console) -> None:
        self.need = need
        self.root: Path = need.root
        self.environment: Path = need.environment
        self.console = console
        self.log: Log
        self.pip: Pip

    def run(self) -> None:
        """Run the setup if it is needed.

        Raises:
            SetupError: The setup failed; the text says what to do.
        """
        with one_at_a_time(self.root / ".setup" / "lock", self.console) as pass_fds:
            # Another setup may have finished while this one waited.
            stamp, verdict = self.need.judged()
            self.log = Log(self.root / ".setup" / "log.txt")
            self.pip = Pip(self.environment, self.console, self.log, pass_fds)
            try:
                if verdict in (Verdict.BUILD, Verdict.UPDATE):
                    self._install(stamp, verdict)
                elif verdict is Verdict.HARDWARE and stamp is not None:
                    self._choose_again(stamp)
                else:
                    self._require_libraries()
            except MissingResourceError as error:
                raise SetupError(f"{error} Download GPU Studio again.") from error

    def _install(self, old: dict[str, Any] | None, verdict: Verdict) -> None:
        began = time.monotonic()
        is_new = verdict is Verdict.BUILD
        doing = "Setting up GPU Studio" if is_new else "Updating GPU Studio"
        self.console.note(f"{doing} in {self.environment} (once).")
        self._step(1, "Checking this PC")
        wanted = self.need.wanted_tag or (old or {}).get("wanted", "auto")
        sighting = find_cards()
        kept_tag = old["tag"] if old and not is_new else None
        choice = _choice(sighting, wanted, kept_tag)
        self._say(sighting, choice)
        level = self._install_libraries(with_venv=is_new)
        if is_new:
            require_space(self.environment, load_table().build(choice.tag).disk_bytes)
            self._step(2, "Creating the environment")
            make_environment(self.environment, self.console, self.log, self.pip.pass_fds)
        extras = sorted({*self.need.extras, *(old or {}).get("extras", ())})
        packages = self.need.packages or (old or {}).get("packages", TESTED)
        facts = {"wanted": wanted, "extras": extras, "libraries": level, "packages": packages}
        self._build(old, choice, facts | _what_was_seen(sighting))
        self.console.note(f"Ready after {time.monotonic() - began:.0f} s.")
        self._require_libraries()

    def _build(
        self, old: dict[str, Any] | None, choice: WheelChoice, facts: dict[str, Any]
    ) -> None:
        stamps.withdraw(str(self.environment), old)
        try:
            self._step(3, f"Installing PyTorch {choice.torch_version} ({choice.tag})")
            if choice.tag != CPU_TAG:  # gigabytes: show the download's progress
                self.pip.learn_to_show_progress()
            pinned = install_torch(self.pip, choice)
            self._step(4, "Installing the window and the other packages")
            is_newest = facts["packages"] == NEWEST
            if not is_newest:
                install_locked(self.pip, self.root, choice.tag, bool(facts["extras"]))
            install_project(self.pip, self.root, pinned, facts["extras"], is_newest)
            modules = ["torch", "PySide6.QtWidgets"] if facts["libraries"] else ["torch"]
            try_imports(self.environment, modules, self.log)
        except SetupError:
            # If the old environment still works, keep it: that saves the next download.
            if old is not None and self._still_works():
                stamps.write_stamp(str(self.environment), old)
            else:
                stamps.remove_stamp(str(self.environment))
            raise
        stamp = self.need.present | facts | {"tag": choice.tag, "torch": pinned}
        if old is not None and old.get("shortcut_offered"):
            stamp["shortcut_offered"] = True
        stamps.write_stamp(str(self.environment), stamp)

    def _choose_again(self, old: dict[str, Any]) -> None:
        sighting = find_cards()
        choice = _choice(sighting, old["wanted"], old["tag"])
        stays = choice.tag in (old["tag"], CPU_TAG)
        if stays:
            # A CUDA build also works without a card: a removed card needs no download.
            stamp = old | _what_was_seen(sighting) | {"hardware": self.need.present["hardware"]}
            stamps.write_stamp(str(self.environment), stamp)
            return
        self.console.note("This PC's cards or their driver changed.")
        self._say(sighting, choice)
        facts = {key: old[key] for key in ("wanted", "extras", "libraries")}
        facts["packages"] = old.get("packages", TESTED)
        try:
            require_space(self.environment, load_table().build(choice.tag).disk_bytes)
            self._build(old, choice, facts | _what_was_seen(sighting))
        except SetupError as error:
            if stamps.read_stamp(str(self.environment)) is None:
                raise
            self.console.note(f"{error}\nContinuing with the installed PyTorch.")

    def _still_works(self) -> bool:
        try:
            try_imports(self.environment, ["torch"], self.log)
        except SetupError:
            return False
        return installed_torch(self.environment) is not None

    def _install_libraries(self, with_venv: bool) -> int:
        """Install the libraries for Qt and venv, or print the command; return the new level."""
        level = 2 if self.need.has_screen else 1
        packages = list(libraries.missing_libraries(self.need.has_screen).values())
        venv = libraries.missing_venv_package() if with_venv else None
        wanted = [*packages, venv] if venv else packages
        if wanted and libraries.has_apt():
            if sys.platform != "win32" and os.geteuid() == 0:
                self.console.note(f"    Installing with apt: {' '.join(wanted)}")
                if not libraries.apt_install(wanted, self.log):
                    self.console.note(f"    apt failed; its output is in {self.log.path}")
            elif not venv and not self.need.opens_window:  # otherwise the error below says it
                self.console.note(
                    "    The window needs missing system libraries. To install them, type:\n"
                    f"    {libraries.apt_command(libraries.apt_names(wanted))}"
                )
        if with_venv and (venv := libraries.missing_venv_package()):
            hint = "Install the full Python from python.org, then start GPU Studio again."
            if libraries.has_apt():
                line = libraries.apt_command(libraries.apt_names([venv, *packages]))
                hint = f"Type the following, then start GPU Studio again:\n    {line}"
            raise SetupError(f"This Python cannot create environments. {hint}")
        return level if not libraries.missing_libraries(self.need.has_screen) else 0

    def _require_libraries(self) -> None:
        """Raise if the window cannot open; if no library is missing, record that."""
        stamp = stamps.read_stamp(str(self.environment))
        if stamp is None or not self.need.lacks_libraries(stamp):
            return
        level = self._install_libraries(with_venv=False)
        if level:
            stamps.write_stamp(str(self.environment), stamp | {"libraries": level})
            return
        missing = libraries.missing_libraries(self.need.has_screen)
        hint = "with your distribution's package manager"
        if libraries.has_apt():
            hint = (
                f"by typing\n    {libraries.apt_command(libraries.apt_names([*missing.values()]))}"
            )
        raise SetupError(
            f"The window cannot open without {', '.join(missing)}. Install them {hint}\n"
            "and start GPU Studio again. The terminal commands work without them."
        )

    def _step(self, number: int, text: str) -> None:
        self.console.step(number, _STEPS, f"{text}…")

    def _say(self, sighting: Sighting, choice: WheelChoice) -> None:
        for sentence in (sighting.trouble, choice.sentence):
            if sentence:
                self.console.note(f"    {sentence}")


def _choice(sighting: Sighting, wanted: str, installed_tag: str | None) -> WheelChoice:
    if wanted == "auto":
        return choose_wheel(sighting.cards, sighting.driver_version, installed_tag=installed_tag)
    try:
        return choice_of_tag(wanted)
    except KeyError:
        known = ", ".join(build.tag for build in load_table().builds)
        raise SetupError(f"There is no PyTorch build {wanted}: choose auto, {known}.") from None


def _what_was_seen(sighting: Sighting) -> dict[str, Any]:
    # A loaded driver that listed no card may have been busy at that moment.
    unanswered = not sighting.cards and (sighting.timed_out or bool(driver_module_version()))
    return {"look_again": unanswered}
