"""The setup: the steps for each verdict, their order, and the facts to remember."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.resources import MissingResourceError
from studio_setup import stamp as stamps
from studio_setup import system_libraries as libraries
from studio_setup.console import Log, SetupError
from studio_setup.engine import EngineSetUp
from studio_setup.environment import (
    compile_program,
    install_packages,
    lead_to,
    make_environment,
    require_space,
    try_imports,
)
from studio_setup.lock import one_at_a_time
from studio_setup.locked_packages import install_locked
from studio_setup.pip_runner import Pip
from studio_setup.stamp import NEWEST, TESTED, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from studio_setup.console import Console
    from studio_setup.need import Need

_STEPS = 4
_AUTO = "auto"
_PACKAGES_BYTES = 1_500_000_000  # with what pip unpacks meanwhile; PyTorch comes on top


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
                else:
                    self._require_libraries()
            except MissingResourceError as error:
                raise SetupError(f"{error} Download GPU Studio again.") from error

    def _install(self, stamp: dict[str, Any] | None, verdict: Verdict) -> None:
        began = time.monotonic()
        is_new = verdict is Verdict.BUILD
        doing = "Setting up GPU Studio" if is_new else "Updating GPU Studio"
        self.console.note(f"{doing} in {self.environment} (once).")
        # The window may have changed what the last setup chose.
        chosen = BuildShelf(self.environment / stamps.ENGINES).wanted().used
        wanted = self.need.wanted_build or chosen or _AUTO
        if wanted not in (_AUTO, *FAMILIES):
            known = ", ".join((_AUTO, *FAMILIES))
            raise SetupError(f"There is no PyTorch build {wanted}: choose {known}.")
        self._step(1, "Checking this PC")
        level = self._install_libraries(with_venv=is_new)
        if is_new:
            require_space(self.environment, _PACKAGES_BYTES)
            self._step(2, "Creating the environment")
            make_environment(self.environment, self.console, self.log, self.pip.pass_fds)
        before = stamp or {}
        extras = sorted({*self.need.extras, *before.get("extras", ())})
        packages = self.need.packages or before.get("packages", TESTED)
        facts = {"wanted": wanted, "extras": extras, "libraries": level, "packages": packages}
        self._fill({} if is_new else before, before | self.need.present | facts)
        self.console.note(f"Ready after {time.monotonic() - began:.0f} s.")
        self._require_libraries()

    def _fill(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Install the packages, then PyTorch, and write the stamp.

        Args:
            old: The stamp of the environment that is there; empty for a new one.
            new: The stamp to write, apart from the engine.
        """
        environment = str(self.environment)
        if old:
            stamps.withdraw(environment, old)
            # Otherwise pip would replace packages in the folder of an engine.
            lead_to(self.environment, self.root)
        try:
            self._install_packages(new)
        except SetupError:
            if not self._restores(old):
                stamps.remove_stamp(environment)
            raise
        stamps.withdraw(environment, new)  # from here on, nothing is built again
        try:
            (self.environment / stamps.ENGINES).mkdir(exist_ok=True)
            self._step(4, "Installing PyTorch")
            engine = EngineSetUp(self.environment, self.console, self.log, self.pip.pass_fds)
            family = engine.install(new["wanted"])
        except SetupError:
            self._restores(old)
            raise
        self._lead_to_engine(family)
        compile_program(self.environment, self.root)
        stamps.write_stamp(environment, new | {"engine": family})

    def _install_packages(self, facts: dict[str, Any]) -> None:
        self._step(3, "Installing the window and the other packages")
        is_newest = facts["packages"] == NEWEST
        if not is_newest:
            install_locked(self.pip, self.root, bool(facts["extras"]))
        install_packages(self.pip, self.root, facts["extras"], is_newest)
        lead_to(self.environment, self.root)
        window = ["PySide6.QtWidgets"] if facts["libraries"] else []
        try_imports(self.environment, ["numpy", *window], self.log)

    def _lead_to_engine(self, family: str) -> None:
        lead_to(self.environment, self.root, self.environment / stamps.ENGINES / family)

    def _restores(self, old: dict[str, Any]) -> bool:
        """Keep an old environment that still works, which saves the next download."""
        if not old.get("engine"):
            return False
        self._lead_to_engine(old["engine"])
        try:
            try_imports(self.environment, ["gpu_studio.core.protocol", "torch"], self.log)
        except SetupError:
            return False
        stamps.write_stamp(str(self.environment), old)
        return True

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
