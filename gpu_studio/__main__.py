"""``gpu-studio``: opens the window, or runs a terminal command."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# What needs no Qt comes first: PySide reads the source of each module that is imported after it.
_WITHOUT_QT = (
    "platformdirs", "gpu_studio.builds.client", "gpu_studio.engine.client",
    "gpu_studio.engine.memory.modelled_engine", "gpu_studio.engine.recorded_engine",
    "gpu_studio.hardware.client", "gpu_studio.hardware.cpu", "gpu_studio.process.console_end",
)  # fmt: skip
_X11_SOCKETS = "/tmp/.X11-unix/X"
_PATIENCE_S = 3.0
_WARNING = 0x30  # MB_ICONWARNING of winuser.h


def main() -> int:
    """Run the program; return its exit status."""
    if sys.argv[1:] or not has_display():
        from gpu_studio.cli.main import main as run_command

        return run_command(sys.argv[1:])
    try:
        open_window = load_window()
    except ImportError as error:
        from gpu_studio.core.program_form import typed

        _show_error(
            f"The window cannot open because a library is missing: {error}. "
            f"“{typed('gpu-studio devices')}” works anyway."
        )
        return 1
    return open_window()


def load_window() -> Callable[..., int]:
    """Import the window, and collect no garbage until it is painted.

    What is imported and made until then stays: looking through it again and again would be 5 % of
    the time until the first paint. `app.collect_in_its_thread` takes over there.
    """
    gc.disable()
    for name in _WITHOUT_QT:
        import_module(name)
    from gpu_studio.app import main as open_window

    return open_window


def _show_error(sentence: str) -> None:
    """Say why there is no window; on Windows in a dialog, as a double-click has no terminal."""
    if sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")
    elif sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, sentence, "GPU Studio", _WARNING)


def has_display() -> bool:
    """Return whether a window can open: on Linux, with a display or a chosen Qt platform."""
    is_chosen = any(os.environ.get(name) for name in ("WAYLAND_SOCKET", "QT_QPA_PLATFORM"))
    system: str = sys.platform
    if is_chosen or not system.startswith("linux"):
        return True
    wayland, display = (os.environ.get(name, "") for name in ("WAYLAND_DISPLAY", "DISPLAY"))
    # The socket is in the session's folder, as in libwayland. A terminal that outlived its session,
    # or another user's terminal, still has the name.
    if wayland and _is_listening(os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), wayland)):
        return True
    return display != "" and _answers(display)


def _answers(display: str) -> bool:
    """Return whether an X server listens at ``host:number.screen``; without one, Qt aborts.

    A server on this PC listens at a socket with that number, in a file or in Linux's abstract
    namespace; a remote server listens at port 6000 plus the number: X(7). Qt handles names of any
    other form.
    """
    host, _, number = display.rpartition(":")
    number = number.partition(".")[0]
    if not number.isdecimal() or "/" in host:
        return True
    if host not in ("", "unix"):
        import socket  # 2 ms, which only X11 needs

        try:
            socket.create_connection((host, 6000 + int(number)), _PATIENCE_S).close()
        except (OSError, OverflowError):
            return False
        return True
    path = f"{_X11_SOCKETS}{number}"
    return _is_listening(f"\0{path}") or _is_listening(path)


def _is_listening(path: str) -> bool:
    """Return whether a server listens at a Unix socket, which Python on Windows lacks."""
    import socket  # 2 ms, which only X11 needs

    is_listening = False
    if sys.platform != "win32":
        with socket.socket(socket.AF_UNIX) as local, contextlib.suppress(OSError):
            local.connect(path)
            is_listening = True
    return is_listening


if __name__ == "__main__":
    sys.exit(main())
