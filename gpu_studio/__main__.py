"""``gpu-studio``: the window by default, a sub-command for the terminal."""

from __future__ import annotations

import contextlib
import os
import sys

_X11_SOCKETS = "/tmp/.X11-unix/X"
_PATIENCE_S = 3.0
_WARNING = 0x30  # MB_ICONWARNING of winuser.h


def main() -> int:
    """Run the program; return its exit status."""
    if sys.argv[1:] or not has_display():
        from gpu_studio.cli.main import main as run_command

        return run_command(sys.argv[1:])
    try:
        from gpu_studio.app import main as open_window
    except ImportError as error:
        _tell(
            f"The window cannot be opened, since a library is missing: {error}. On a checkout, "
            "“python3 packaging/bootstrap.py run” installs it; “gpu-studio devices” works without."
        )
        return 1
    return open_window()


def _tell(sentence: str) -> None:
    """Say why there is no window; after a double-click on Windows there is no terminal for it."""
    if sys.stderr is not None:
        sys.stderr.write(f"{sentence}\n")
    elif sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, sentence, "GPU Studio", _WARNING)


def has_display() -> bool:
    """Return whether a window can be shown: on Linux, a display or a platform chosen for Qt."""
    is_chosen = any(os.environ.get(name) for name in ("WAYLAND_SOCKET", "QT_QPA_PLATFORM"))
    system: str = sys.platform
    if is_chosen or not system.startswith("linux"):
        return True
    wayland, display = (os.environ.get(name, "") for name in ("WAYLAND_DISPLAY", "DISPLAY"))
    # A socket below the folder of the session, as libwayland looks for it: a terminal that outlived
    # its session, or that of another user, still has the name.
    if wayland and _is_listening(os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), wayland)):
        return True
    return display != "" and _answers(display)


def _answers(display: str) -> bool:
    """Return whether an X server listens at ``host:number.screen``; Qt aborts where none does.

    A server of this PC listens at a socket of that number, in a file or in Linux's abstract names,
    another one at the port 6000 and more: X(7). A name of any other form is left to Qt.
    """
    host, _, number = display.rpartition(":")
    number = number.partition(".")[0]
    if not number.isdecimal() or "/" in host:
        return True
    if host not in ("", "unix"):
        import socket

        try:
            socket.create_connection((host, 6000 + int(number)), _PATIENCE_S).close()
        except (OSError, OverflowError):
            return False
        return True
    path = f"{_X11_SOCKETS}{number}"
    return _is_listening(f"\0{path}") or _is_listening(path)


def _is_listening(path: str) -> bool:
    """Return whether somebody listens at a Unix socket, which Windows' Python does not know."""
    import socket

    is_listening = False
    if sys.platform != "win32":
        with socket.socket(socket.AF_UNIX) as local, contextlib.suppress(OSError):
            local.connect(path)
            is_listening = True
    return is_listening


if __name__ == "__main__":
    sys.exit(main())
