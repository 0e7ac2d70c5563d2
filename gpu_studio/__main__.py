"""``gpu-studio``: the window by default, a sub-command for the terminal."""

from __future__ import annotations

import os
import sys

_X11_SOCKETS = "/tmp/.X11-unix/X"
_PATIENCE_S = 3.0


def main() -> int:
    """Run the program; return its exit status."""
    if sys.argv[1:] or not has_display():
        from gpu_studio.cli.main import main as run_command

        return run_command(sys.argv[1:])
    try:
        from gpu_studio.app import main as open_window
    except ImportError as error:
        sys.stderr.write(
            f"The window cannot be opened, since a library is missing: {error}. On a checkout, "
            "“python3 packaging/bootstrap.py run” installs it; “gpu-studio devices” works without."
            "\n"
        )
        return 1
    return open_window()


def has_display() -> bool:
    """Return whether a window can be shown: on Linux, a display or a platform chosen for Qt."""
    if not sys.platform.startswith("linux"):
        return True
    if any(os.environ.get(name) for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM")):
        return True
    display = os.environ.get("DISPLAY", "")
    return display != "" and _answers(display)


def _answers(display: str) -> bool:
    """Return whether an X server listens at ``host:number.screen``; Qt aborts where none does.

    A server of this PC listens at a socket of that number, in a file or in Linux's abstract names,
    another one at the port 6000 and more: X(7). A name of any other form is left to Qt.
    """
    import socket

    host, _, number = display.rpartition(":")
    number = number.partition(".")[0]
    if not number.isdecimal() or "/" in host:
        return True
    if host not in ("", "unix"):
        try:
            socket.create_connection((host, 6000 + int(number)), _PATIENCE_S).close()
        except (OSError, OverflowError):
            return False
        return True
    path = f"{_X11_SOCKETS}{number}"
    with socket.socket(socket.AF_UNIX) as local:
        return any(local.connect_ex(name) == 0 for name in (f"\0{path}", path))


if __name__ == "__main__":
    sys.exit(main())
