"""The window's side of the installer's process."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from gpu_studio.core.builds.progress import ENDS, InstallProgress, InstallStage, progress_from
from gpu_studio.core.builds.trouble import Trouble, TroubleKind
from gpu_studio.process.stoppable_child import LONGEST_END_S, StoppableChild

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.process.child_process import ChildProcess

_MODULE = "gpu_studio.builds.serve"
_ENDED = Trouble(
    TroubleKind.INTERNAL,
    "The installation ended without a reason.",
    "Try again. The log in the folder of the engines may say why.",
)
_log = logging.getLogger(__name__)


class BuildInstallChild:
    """Runs the installer in a child process. Any thread may call `pause` and `close`.

    Args:
        engines: The folder of all builds.
        log_path: The file for the child's errors; None inherits this process's.
        wheels: A folder of wheels in place of each download.
    """

    def __init__(
        self, engines: Path, log_path: Path | None = None, wheels: Path | None = None
    ) -> None:
        self._engines, self._wheels = engines, wheels
        self._child = StoppableChild(_MODULE, log_path)

    def installing(
        self, family: str, wheels: Path | None = None, what: str = "install"
    ) -> Iterator[InstallProgress]:
        """Install, repair or only fetch a build; yield the progress, whose last value is the end.

        Raises:
            OSError: The child could not be started.
        """
        place = wheels or self._wheels
        arguments = ["--engines", str(self._engines), what, family]
        child = self._child.start([*arguments, *(["--wheels", str(place)] if place else [])])
        if child is None:
            return
        try:
            yield from _told_by(child)
        finally:
            child.end(LONGEST_END_S)

    def builds_in(self, folder: Path) -> tuple[str, ...]:
        """Return the builds whose PyTorch is in a folder of wheels."""
        from gpu_studio.builds.plan import builds_in

        return builds_in(folder)

    def pause(self) -> None:
        """Ask the installer to stop; it keeps what it has, and tells its end."""
        self._child.ask_to_stop()

    def close(self) -> None:
        """End the installer now; its next start continues."""
        self._child.close()


def _told_by(child: ChildProcess) -> Iterator[InstallProgress]:
    for line in child.lines():
        try:
            told = progress_from(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            _log.error("the installer wrote something unreadable: %s", error)
            continue
        yield told
        if told.stage in ENDS:
            return
    yield InstallProgress(InstallStage.FAILED, trouble=_ENDED)
