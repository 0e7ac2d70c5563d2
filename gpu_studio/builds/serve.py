"""The installer's process: ``python -m gpu_studio.builds.serve --engines FOLDER install cpu``.

It writes one JSON object per line, the last of which is the end, and it ends when its input
closes: closing it means a pause, because everything that was downloaded stays.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from gpu_studio.builds.install import BuildInstaller
from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.builds.trouble import Trouble, TroubleKind
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout
from gpu_studio.process.sleep_block import SleepBlock

_GRACE_S = 0.5  # for a read of the network, which cannot be interrupted; nothing is lost then
_log = logging.getLogger(__name__)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gpu_studio.builds.serve")
    parser.add_argument("--engines", type=Path, required=True, help="the folder of all builds")
    parser.add_argument("what", choices=("install", "repair", "fetch"))
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--wheels", type=Path, help="a folder of wheels in place of a download")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Install or repair a build; return the exit code."""
    options = _parsed(arguments)
    lifeline, out = take_over_stdin(buffering=0), take_over_stdout(buffering=0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal: the parent decides
    over = threading.Event()
    last = InstallProgress(InstallStage.PLANNING)

    def send(progress: InstallProgress) -> None:
        nonlocal last
        last = progress
        _write(out, progress)

    def send_pause() -> None:
        paused = InstallStage.PAUSED
        _write(out, msgspec.structs.replace(last, stage=paused, left_s=None, subject=""))

    def wait(seconds: float) -> None:
        over.wait(seconds)

    threading.Thread(target=_end_with, args=(lifeline, send_pause, over), daemon=True).start()
    installer = BuildInstaller(BuildShelf(options.engines), send, over.is_set, wait=wait)
    try:
        with SleepBlock("An installation"):
            if options.what == "fetch":
                return 0 if installer.fetch(options.family) else 1
            work = installer.repair if options.what == "repair" else installer.install
            return 0 if work(options.family, options.wheels) else 1
    except Exception as error:
        text = traceback.format_exc()
        sys.stderr.write(text)
        trouble = Trouble(
            kind=TroubleKind.INTERNAL,
            sentence="The installation stopped because of an error in GPU Studio.",
            next_step="Try again. If it happens again, report the details.",
            detail=f"{type(error).__name__}: {error}",
        )
        send(InstallProgress(InstallStage.FAILED, trouble=trouble))
        return 1


def _write(out: BinaryIO, progress: InstallProgress) -> None:
    try:
        out.write(msgspec.json.encode(progress) + b"\n")
    except OSError:  # the window is gone
        os._exit(1)


def _end_with(lifeline: BinaryIO, send_pause: Callable[[], None], over: threading.Event) -> None:
    while lifeline.read(1 << 10):
        pass
    over.set()
    time.sleep(_GRACE_S)
    # A read of a slow line or a child of pip may still block: the parts are on the disk.
    send_pause()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
