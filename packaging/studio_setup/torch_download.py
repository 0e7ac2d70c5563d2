"""Download PyTorch's wheel with the code that the window uses: it resumes, and checks the hash."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpu_studio.builds.download import Downloader, StoppedError, WheelFile
from gpu_studio.builds.plan import Planner
from gpu_studio.core.builds.progress import DownloadPace, format_left
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import own_platform_key
from studio_setup.console import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.wheel_table import WheelTable
    from gpu_studio.core.wheels import WheelChoice
    from studio_setup.console import Console

_TIMEOUT_S = 10.0


def download_torch(
    choice: WheelChoice,
    folder: Path,
    console: Console,
    clock: Callable[[], float],
    table: WheelTable | None = None,
) -> Path:
    """Return the path of the wheel of a build; continue an interrupted download.

    Args:
        choice: The build.
        folder: Keeps the wheel, or the part of it that has arrived.
        console: Shows the progress.
        clock: Returns seconds that never go back.
        table: The builds; the program's own if None.

    Raises:
        TroubleError: It cannot be had.
        SetupError: The user stopped.
    """
    over = threading.Event()
    console.stops_with(over.set)

    def wait(seconds: float) -> None:
        over.wait(seconds)

    downloader = Downloader(folder, over.is_set, wait, timeout_s=_TIMEOUT_S)
    downloader.begin()
    key = own_platform_key()
    planner = Planner(downloader, table or load_table(), key, folder / "log.txt", over.is_set)
    pace = DownloadPace(clock)
    try:
        link = planner.torch_link(choice.tag)
        size = link.size_bytes or downloader.size(link.url) or 0

        def told(done: int) -> None:
            pace.note(done)
            left = pace.left_s(size)
            parts = [f"downloading PyTorch {format_size(done)} of {format_size(size)}"]
            parts += [format_left(left)] if left is not None else []
            console.detail(", ".join(parts), min(1.0, done / size) if size else None)

        return downloader.fetch(WheelFile(link.name, link.url, link.sha256, size or None), told)
    except StoppedError as error:
        raise SetupError("Stopped. The next start continues from here.") from error
