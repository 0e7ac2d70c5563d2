"""The program's entry in the menu of a Linux desktop, and the icon on it.

A checkout writes one, and so does the portable folder, which contains this file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

APP_ID = "gpu-studio"
STARTER = "gpu-studio"


class OtherEntryError(Exception):
    """The menu has no entry of this folder; the text says what it has."""


def quoted(argument: str) -> str:
    """Quote an argument for the key Exec, by the Desktop Entry Specification 1.5.

    Inside double quotes, four characters need a backslash. Every backslash is then doubled,
    because the value is itself an escaped string. A percent sign is doubled.
    """
    inner = re.sub(r'(["`$\\])', r"\\\1", argument).replace("\\", "\\\\").replace("%", "%%")
    return f'"{inner}"'


def entry_text(template: str, command: Sequence[str], **keys: str) -> str:
    """Return the template with another command, and with more or other keys.

    Args:
        template: The text of gpu-studio.desktop.
        command: The program and its arguments.
        **keys: Values that are a string, as `Icon`.
    """
    lines = [
        line for line in template.splitlines() if line.partition("=")[0] not in (*keys, "Exec")
    ]
    lines.append("Exec=" + " ".join(quoted(word) for word in command))
    lines += [f"{key}={_escaped(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


def menu_folder(environ: Mapping[str, str], home: Path) -> Path:
    """Return where a desktop looks for the entries of a user."""
    return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "applications"


def desktop_folder(environ: Mapping[str, str], home: Path) -> Path | None:
    """Return the folder of the desktop, or None if there is none.

    user-dirs.dirs names it, in the user's language; a folder equal to home means none.
    """
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "user-dirs.dirs"
    folder = home / "Desktop"
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    if match := re.search(r'^XDG_DESKTOP_DIR="(.*)"', text, re.MULTILINE):
        folder = Path(match[1].replace("$HOME", str(home)))
    return folder if folder.is_dir() and folder != home else None


def write_entry(path: Path, text: str) -> None:
    """Write an entry, which a file manager may start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def add_to_menu(app: Path, environ: Mapping[str, str], home: Path) -> Path:
    """Put a portable folder into the menu; return the entry."""
    path = menu_folder(environ, home) / f"{APP_ID}.desktop"
    template = (app / f"{APP_ID}.desktop").read_text(encoding="utf-8")
    starter, icon = app / STARTER, app / "resources" / "app" / "gpu-studio.svg"
    # TryExec hides the entry once the folder is gone.
    text = entry_text(template, [str(starter)], TryExec=str(starter), Icon=str(icon))
    write_entry(path, text)
    refresh_desktop([path])
    return path


def remove_from_menu(app: Path, environ: Mapping[str, str], home: Path) -> Path:
    """Take a portable folder out of the menu; return the entry that was there.

    Raises:
        OtherEntryError: there is none of this folder.
    """
    path = menu_folder(environ, home) / f"{APP_ID}.desktop"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if f"TryExec={_escaped(str(app / STARTER))}" not in text.splitlines():
        found = f"{path} belongs to another installation" if text else "there is no entry"
        raise OtherEntryError(f"This folder is not in the menu: {found}.")
    path.unlink()
    refresh_desktop([path])
    return path


def refresh_desktop(paths: Sequence[Path]) -> None:
    """Let the desktop read entries again: the first in the menu, all others on the desktop."""
    commands = [["update-desktop-database", "-q", str(paths[0].parent)]]
    # GNOME starts a desktop entry only if it is marked as trusted.
    commands += [["gio", "set", str(path), "metadata::trusted", "true"] for path in paths[1:]]
    for command in commands:
        if shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False, timeout=10)
