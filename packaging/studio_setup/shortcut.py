"""A launcher with an icon, in the menu and on the desktop."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW

if TYPE_CHECKING:
    from collections.abc import Mapping

APP_ID = "org.gpustudio.GPUStudio"
_POWERSHELL = """
[Console]::OutputEncoding = [Text.Encoding]::UTF8
$shell = New-Object -ComObject WScript.Shell
foreach ($place in 'Desktop', 'Programs') {
  $path = Join-Path ([Environment]::GetFolderPath($place)) 'GPU Studio.lnk'
  $link = $shell.CreateShortcut($path)
  $link.TargetPath = $env:GPU_STUDIO_TARGET
  $link.Arguments = $env:GPU_STUDIO_ARGUMENTS
  $link.WorkingDirectory = $env:GPU_STUDIO_FOLDER
  $link.IconLocation = $env:GPU_STUDIO_ICON
  $link.Description = 'GPU Studio'
  $link.Save()
  Write-Output $path
}
"""


def make_shortcut(root: Path) -> list[Path]:
    """Make the launcher for this system; it runs bootstrap.py, which notices an update.

    Args:
        root: The checkout.

    Returns:
        The new files.

    Raises:
        SetupError: The launcher cannot be made here.
    """
    python = getattr(sys, "_base_executable", None) or sys.executable
    system: str = sys.platform
    try:
        if system == "win32":
            return _make_links(root, Path(python))
        if system == "linux":
            return _make_entries(root, Path(python), os.environ, Path.home())
    except OSError as error:
        raise SetupError(
            f"Cannot create the shortcut: {error.filename}: {error.strerror}."
        ) from error
    raise SetupError("Shortcuts are available on Linux and Windows only.")


def quoted(argument: str) -> str:
    """Quote an argument for the key Exec, by the Desktop Entry Specification 1.5.

    Inside double quotes, four characters need a backslash. Every backslash is then doubled,
    because the value is itself an escaped string. A percent sign is doubled.
    """
    inner = re.sub(r'(["`$\\])', r"\\\1", argument).replace("\\", "\\\\").replace("%", "%%")
    return f'"{inner}"'


def desktop_entry(template: str, python: Path, root: Path) -> str:
    """Return the launcher's text: the template with this checkout's command."""
    script = root / "packaging" / "bootstrap.py"
    command = " ".join(
        [quoted(str(python)), quoted(str(script)), "--progress", "window", "run"],
    )
    return re.sub(r"^Exec=.*$", lambda _: f"Exec={command}", template, flags=re.MULTILINE)


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


def _make_entries(root: Path, python: Path, environ: Mapping[str, str], home: Path) -> list[Path]:
    share = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    icons = share / "icons" / "hicolor"
    template = root / "packaging" / f"{APP_ID}.desktop"
    entry = desktop_entry(template.read_text(encoding="utf-8"), python, root)
    for name, folder in (("svg", "scalable"), ("png", "256x256")):
        icon = icons / folder / "apps" / f"{APP_ID}.{name}"
        icon.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / "resources" / "app" / f"gpu-studio.{name}", icon)
    paths = []
    desktop = desktop_folder(environ, home)
    for place in [share / "applications", *([desktop] if desktop else [])]:
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{APP_ID}.desktop"
        path.write_text(entry, encoding="utf-8")
        path.chmod(0o755)
        paths.append(path)
    _refresh_desktop(share, paths)
    return paths


def _refresh_desktop(share: Path, paths: list[Path]) -> None:
    commands = [["update-desktop-database", "-q", str(share / "applications")]]
    # GNOME starts a desktop entry only if it is marked as trusted.
    commands += [["gio", "set", str(path), "metadata::trusted", "true"] for path in paths[1:]]
    for command in commands:
        if shutil.which(command[0]):
            subprocess.run(command, capture_output=True, check=False, timeout=10)


def _make_links(root: Path, python: Path) -> list[Path]:
    windowed = python.with_name("pythonw.exe")
    script = root / "packaging" / "bootstrap.py"
    environ = os.environ | {
        "GPU_STUDIO_TARGET": str(windowed if windowed.exists() else python),
        "GPU_STUDIO_ARGUMENTS": f'"{script}" --progress window run',
        "GPU_STUDIO_FOLDER": str(root),
        "GPU_STUDIO_ICON": str(root / "resources" / "app" / "gpu-studio.ico"),
    }
    command = ["powershell", "-NoProfile", "-NonInteractive", "-Command", _POWERSHELL]
    done = subprocess.run(
        command,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        creationflags=NO_WINDOW,
    )
    paths = [Path(line.strip()) for line in done.stdout.splitlines() if line.strip()]
    if done.returncode != 0 or not paths:
        raise SetupError(f"Windows could not create the shortcut: {done.stderr.strip()[:200]}")
    return paths
