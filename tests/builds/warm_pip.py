"""pip without its start: each run is a fork of a process that has imported pip.

Half of a second of pip's work is Python's imports. The real pip answers, with the arguments, the
environment, the folder and the streams of the process that stands for it.

    python -m tests.builds.warm_pip DESCRIPTOR   # the socket on which it is asked
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST_QUESTION = 1 << 20
# With all that they import, and what pip imports later than at its start.
_IMPORTED = (
    "pip._internal.cli.main", "pip._internal.commands.configuration",
    "pip._internal.commands.download", "pip._internal.commands.install",
    "pip._internal.metadata.importlib", "pip._internal.metadata.pkg_resources",
    "pip._internal.resolution.resolvelib.resolver", "pip._vendor.distro", "plistlib", "netrc",
)  # fmt: skip
# Runs in place of pip. It ends when the fork does, and the fork ends with it.
_ASKS = """
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect({address!r})
question = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(asked, [question], [0, 1, 2])
os._exit((asked.recv(1) or b"\\1")[0])
"""


@contextlib.contextmanager
def warm_pip(folder: Path) -> Iterator[Path]:
    """Yield a script that is run in place of the module pip.

    Args:
        folder: an empty one.
    """
    address, script = folder / "socket", folder / "pip.py"
    script.write_text(_ASKS.format(address=str(address)), encoding="utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())],
            cwd=_ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()],
        )  # fmt: skip
    with process:  # which ends when its input does
        yield script


def _serve(listener: socket.socket) -> None:
    """Answer until standard input ends."""
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):  # of another version of pip
            importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks are not waited for
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        while sys.stdin not in [key.fileobj for key, _ in selector.select()]:
            asked, _ = listener.accept()
            question, streams, _, _ = socket.recv_fds(asked, _LONGEST_QUESTION, 3)
            if os.fork() == 0:
                listener.close()
                _run(asked, question, streams)
            asked.close()
            for one in streams:
                os.close(one)


def _run(asked: socket.socket, question: bytes, streams: list[int]) -> None:
    """Be pip in a fork, and end with its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    arguments, environment, folder = json.loads(question)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, one in enumerate(streams):
        os.dup2(one, number)
    threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
    sys.argv = ["pip", *arguments]
    code = 1
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        asked.send(bytes([code]))
        os._exit(code)


def _end_with(asked: socket.socket) -> None:
    asked.recv(1)
    os._exit(1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
