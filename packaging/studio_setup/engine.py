"""Install PyTorch into the environment, with the program's own command, and show the progress."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from gpu_studio.core.builds.progress import InstallStage, progress_from
from gpu_studio.core.builds.words import bytes_sentence, stage_title
from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW, clean_environ
from studio_setup.stamp import python_in

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.builds.progress import InstallProgress
    from studio_setup.console import Console, Log

_COMMAND = ("-m", "gpu_studio", "engine", "install")


class EngineSetUp:
    """Runs ``gpu-studio engine install`` in an environment that has the program's packages.

    Args:
        environment: The environment.
        console: Shows the progress.
        log: Takes what the command says besides.
        pass_fds: The descriptors that the command inherits.
    """

    def __init__(
        self, environment: Path, console: Console, log: Log, pass_fds: tuple[int, ...] = ()
    ) -> None:
        self._environment, self._console, self._log = environment, console, log
        self._pass_fds = pass_fds
        self._reason = ""

    def install(self, build: str) -> str:
        """Install a build, or find it installed; return its name.

        Args:
            build: "cpu", "cu126", "cu130", or "auto" for that of this PC's cards.

        Raises:
            SetupError: It cannot be installed, or the user stopped.
        """
        python = python_in(str(self._environment))
        command = [python, "-I", *_COMMAND, build, "--json"]
        self._log.write(f"$ {' '.join(command)}")
        with open(self._log.path, "ab") as log:
            child = subprocess.Popen(
                command,
                env=clean_environ(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                creationflags=NO_WINDOW,
                pass_fds=self._pass_fds,
            )
        self._console.stops_with(child.kill)
        family, last = "", None
        with child:
            try:
                for line in child.stdout or ():
                    value = json.loads(line)
                    family, last = value["family"], progress_from(value)
                    self._show(family, last, value["reason"])
            except BaseException:
                child.kill()
                raise
        return self._ended(family, last)

    def _show(self, family: str, progress: InstallProgress, reason: str) -> None:
        if reason and reason != self._reason:
            self._reason = reason
            self._console.note(f"    {reason}")
        if progress.stage.is_at_work:
            parts = (stage_title(progress.stage, family), bytes_sentence(progress))
            self._console.detail(" ".join(filter(None, parts)), progress.fraction)

    def _ended(self, family: str, last: InstallProgress | None) -> str:
        if last is not None and last.stage is InstallStage.READY:
            if last.result:
                self._console.note(f"    {last.result}")
            return family
        if last is not None and last.stage is InstallStage.PAUSED:
            raise SetupError("Stopped. The next start continues from here.")
        reason = "The installation of PyTorch ended without a reason. Start GPU Studio again."
        if last is not None and last.trouble is not None:
            reason = f"{last.trouble.sentence} {last.trouble.action}"
            self._log.write(last.trouble.detail)
        folder = os.path.join(self._environment, "engines")
        raise SetupError(f"{reason}\nThe whole log: {self._log.path}, and setup.log in {folder}")
