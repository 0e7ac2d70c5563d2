"""``gpu-studio``: the window by default, a sub-command for the terminal."""

from __future__ import annotations

import os
import sys


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
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return any(os.environ.get(name) for name in names)


if __name__ == "__main__":
    sys.exit(main())
