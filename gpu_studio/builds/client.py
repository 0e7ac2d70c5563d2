"""The window's side of the installer's process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.builds.progress import ENDS, InstallProgress, InstallStage
from gpu_studio.core.builds.trouble import Trouble, TroubleKind
from gpu_studio.process.child_process import ChildProcess

_MODULE = "gpu_studio.builds.serve"
_ENDED = Trouble(
    kind=TroubleKind.INTERNAL,
    sentence="The installation ended without a reason.",
    next_step="Try again. The log in the folder of PyTorch may say why.",
)
_log = logging.getLogger(__name__)


class BuildInstallChild:
    """Runs the installer in a child process. Any thread may call `pause` and `close`.

    Args:
        engines: The folder of all builds.
        log_path: The file for the child's errors; None inherits this process's.
    """

    def __init__(self, engines: Path, log_path: Path | None = None) -> None:
        self._engines, self._log_path = engines, log_path
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._is_closed = False

    def installing(
        self, family: str, wheels: Path | None = None, what: str = "install"
    ) -> Iterator[InstallProgress]:
        """Install, repair or only fetch a build; yield the progress, whose last value is the end.

        Raises:
            OSError: The child could not be started.
        """
        arguments = ["--engines", str(self._engines), what, family]
        arguments += ["--wheels", str(wheels)] if wheels else []
        with self._lock:
            if self._is_closed:
                return
            child = self._child = ChildProcess(_MODULE, arguments, log_path=self._log_path)
        try:
            yield from _progress_of(child)
        finally:
            child.end(limits.current.child_end_s)

    def builds_in(self, folder: Path) -> tuple[str, ...]:
        """Return the builds whose PyTorch is in a folder of wheels."""
        from gpu_studio.builds.wheel_folder import builds_in  # 10 ms: the choice of a build

        return builds_in(folder)

    def pause(self) -> None:
        """Close the installer's input: it keeps what it has, and reports its end."""
        with self._lock:
            if self._child is not None:
                self._child.close_input()

    def close(self) -> None:
        """End the installer now, and start no other one; the next program's continues."""
        with self._lock:
            self._is_closed = True
            child = self._child
        if child is not None:
            child.end(limits.current.child_end_s)


def _progress_of(child: ChildProcess) -> Iterator[InstallProgress]:
    for line in child.lines():
        try:
            progress = msgspec.json.decode(line, type=InstallProgress)
        except msgspec.MsgspecError as error:
            _log.error("the installer wrote something unreadable: %s", error)
            continue
        yield progress
        if progress.stage in ENDS:
            return
    yield InstallProgress(InstallStage.FAILED, trouble=_ENDED)
