"""A Windows PC under Wine: its folders, and how a program runs there."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

WINE = Path("/usr/lib/wine/wine64")
_SERVER = Path("/usr/lib/wine/wineserver64")
HOME = "C:\\Python311"
ENVIRONMENT = "C:\\environment"
PYTHON = ENVIRONMENT + "\\Scripts\\python.exe"
CHECKOUT = "C:\\GPU Studio"
FONTS = "C:\\windows\\Fonts"
CPP_RUNTIME = ("vcruntime140", "vcruntime140_1", "msvcp140")
# What would lead the Python of Windows to folders of Linux.
_NOT_PASSED_ON = ("PYTHON", "PIP_", "SSL_CERT", "REQUESTS_CA", "CURL_CA", "VIRTUAL_ENV", "WINE")
# By it the processes of a PC are known, also those that were started with other variables: Wine
# hands on the environment of Linux beside that of Windows.
_MARK = "GPU_STUDIO_WINDOWS_PC"
_LONGEST_KILL_S = 10.0
_LOOK_S = 0.5


class WindowsPc:
    """A prefix of Wine.

    Args:
        folder: where all of it is.
        display: the X display for its windows; empty for none.
    """

    def __init__(self, folder: Path, display: str = "") -> None:
        self.folder = folder
        self.prefix = folder / "prefix"
        self.display = display

    def path(self, windows_path: str) -> Path:
        """Return where a path below ``C:`` is on Linux."""
        return self.prefix / "drive_c" / windows_path.removeprefix("C:\\").replace("\\", "/")

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        values = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_NOT_PASSED_ON) and name != "DISPLAY"
        }
        own = {
            "WINEPREFIX": str(self.prefix),
            _MARK: str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            # No offer to download Mono or Gecko, no debugger that holds a program that crashed, and
            # the C runtime with the functions that Wine lacks, and Microsoft's C++ runtime.
            "WINEDLLOVERRIDES": f"mscoree,mshtml,winedbg.exe=;ucrtbase,{','.join(CPP_RUNTIME)}=n",
            "LC_ALL": "C.UTF-8",
            "KMP_AFFINITY": "disabled",  # torch's OpenMP asks for cores in a way that Wine lacks
            **({"DISPLAY": self.display} if self.display else {}),
        }
        return values | own | {_handed_on(name): value for name, value in (more or {}).items()}

    def start(
        self,
        command: Sequence[str],
        *,
        folder: str = CHECKOUT,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a Windows program in a folder of ``C:``.

        Its output is one pipe: where it is a file of Linux, Python does not start under Wine 8.
        """
        return subprocess.Popen(
            [str(WINE), *command],
            cwd=self.path(folder),
            env=self.environ(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(
        self,
        command: Sequence[str],
        timeout_s: float,
        *,
        folder: str = CHECKOUT,
        environ: Mapping[str, str] | None = None,
        is_shown: bool = False,
    ) -> tuple[int, str]:
        """Run a Windows program; return its exit status and what it printed.

        Args:
            command: the program and its arguments.
            timeout_s: when to end it; its status is then that of a killed process.
            folder: its current folder.
            environ: variables on top of this PC's.
            is_shown: whether what it prints is printed here as it comes.
        """
        process = self.start(command, folder=folder, environ=environ)
        alarm = threading.Timer(timeout_s, self._end, (process,))
        alarm.start()
        printed = bytearray()
        assert process.stdout is not None
        try:
            for piece in _pieces_until_the_end(process):
                printed += piece
                if is_shown:
                    print(piece.decode("utf-8", "replace"), end="", flush=True)
            return process.wait(), printed.decode("utf-8", "replace").replace("\r", "")
        finally:
            alarm.cancel()
            alarm.join()  # or what it still ends would be what is run next
            if process.poll() is None:  # the wait was broken off
                self._end(process)
                process.wait()
            process.stdout.close()

    def pythons(self) -> dict[int, str]:
        """Return the Python processes of this PC: the Linux process id, and the command line."""
        lines = self._processes().items()
        return {pid: line for pid, line in lines if "python" in line.lower().split(".exe")[0]}

    def _processes(self) -> dict[int, str]:
        found = {}
        mark = f"{_MARK}={self.prefix}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(folder.name)] = line.decode("utf-8", "replace").strip()
        return found

    def shut_down(self) -> None:
        """End every program of this PC, also those that no longer listen to Wine's server."""
        for option in ("-k", "-w"):
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [str(_SERVER), option], env=self.environ(), check=False, timeout=30,
                    capture_output=True,
                )  # fmt: skip
        wait_until(self._are_killed, _LONGEST_KILL_S, look_s=0.1)

    def _are_killed(self) -> bool:
        left = self._processes()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return not left

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End what takes too long, and all that it has started."""
        self.shut_down()
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


def _pieces_until_the_end(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield what a process prints, until it has ended.

    The end of the pipe comes later: Wine's server and services, which the first program of a PC
    starts, have the same output, and run on while another program does.
    """
    assert process.stdout is not None
    output = process.stdout.fileno()
    while True:
        has_ended = process.poll() is not None  # asked first: what it printed last is read below
        while select.select([output], [], [], 0.0 if has_ended else _LOOK_S)[0]:
            if not (piece := os.read(output, 1 << 16)):
                return
            yield piece
        if has_ended:
            return


def _handed_on(name: str) -> str:
    """Return by which name Wine hands a variable on: those of Qt and X it keeps from Windows."""
    return f"WINE{name}" if name.startswith("QT_") else name


@contextlib.contextmanager
def screen(size: str = "1440x900x24", *, for_all_users: bool = False) -> Iterator[str]:
    """Yield an invisible X display.

    Args:
        size: its width, height and depth.
        for_all_users: whether other users of this PC may open windows on it.
    """
    access = ["-ac"] if for_all_users else []
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", *access],
        pass_fds=(writing,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


def wait_until(condition: object, timeout_s: float, look_s: float = 0.5) -> bool:
    assert callable(condition)
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        if condition():
            return True
        time.sleep(look_s)
    return bool(condition())
