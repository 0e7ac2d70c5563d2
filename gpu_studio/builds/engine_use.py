"""Whether a running engine has loaded a build: its files must not change under it.

Windows itself refuses to change such a file. Linux does not: the engine would run on, and fail
later, when it imports a module that is gone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.trouble import TroubleError

if TYPE_CHECKING:
    from gpu_studio.builds.shelf import BuildShelf

_PROCESSES = Path("/proc")


def require_unused(shelf: BuildShelf, family: str, processes: Path = _PROCESSES) -> None:
    """Refuse to change a build that a running engine of this user has loaded.

    Args:
        shelf: The installed builds.
        family: The build.
        processes: The system's folder of processes: proc(5).

    Raises:
        TroubleError: A process has mapped a file of it.
    """
    folder = os.fsencode(os.path.realpath(shelf.folder(family))) + b"/"
    try:
        names = [name for name in os.listdir(processes) if name.isdecimal()]
    except OSError:  # not Linux
        return
    for name in names:
        try:
            mapped = (processes / name / "maps").read_bytes()
        except OSError:  # another user's, or gone
            continue
        if folder in mapped:
            raise TroubleError(troubles.engine_at_work(family, process=name))
