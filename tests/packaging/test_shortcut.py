from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from studio_setup import shortcut
from studio_setup.menu_entry import (
    APP_ID,
    OtherEntryError,
    add_to_menu,
    desktop_folder,
    quoted,
    remove_from_menu,
)
from studio_setup.shortcut import checkout_entry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="for Linux desktops")


def _entry(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path, encoding="utf-8")
    return dict(parser["Desktop Entry"])


def _read_exec(value: str) -> list[str]:
    """Undo the two layers of escapes: of a string value, then of a quoted argument."""
    value = value.replace("\\\\", "\\")
    arguments = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', value)
    return [
        re.sub(r'\\(["`$\\])', r"\1", quoted_one or bare).replace("%%", "%")
        for quoted_one, bare in arguments
    ]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("/a b/ü", '"/a b/ü"'),
        ('say "hi"', r'"say \\"hi\\""'),
        ("$HOME/`x`", r'"\\$HOME/\\`x\\`"'),
        ("back\\slash", r'"back\\\\slash"'),
        ("100%", '"100%%"'),
    ],
)
def test_any_path_survives_the_quoting(argument: str, value: str) -> None:
    assert quoted(argument) == value
    assert _read_exec(value) == [argument]


def test_the_entry_starts_this_checkout(root: Path, tmp_path: Path) -> None:
    template = (root / "packaging" / f"{APP_ID}.desktop").read_text(encoding="utf-8")
    checkout = tmp_path / "GPU Studio 100% \\1"
    path = tmp_path / f"{APP_ID}.desktop"
    path.write_text(checkout_entry(template, Path("/usr/bin/python3"), checkout), encoding="utf-8")
    entry = _entry(path)
    assert _read_exec(entry["Exec"]) == [
        "/usr/bin/python3",
        str(checkout / "packaging" / "bootstrap.py"),
        "--progress",
        "window",
        "run",
    ]
    assert (entry["Icon"], entry["StartupWMClass"]) == (APP_ID, APP_ID)
    assert (entry["Type"], entry["Terminal"]) == ("Application", "false")


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="no validator here")
def test_the_entries_are_valid(root: Path, tmp_path: Path) -> None:
    template = root / "packaging" / f"{APP_ID}.desktop"
    created = tmp_path / f"{APP_ID}.desktop"
    text = template.read_text(encoding="utf-8")
    created.write_text(checkout_entry(text, Path(sys.executable), root), encoding="utf-8")
    for path in (template, created):
        done = subprocess.run(
            ["desktop-file-validate", str(path)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")


def test_launchers_and_icons_land_where_desktops_look(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed: list[list[str]] = []
    monkeypatch.setattr(
        shortcut, "refresh_desktop", lambda paths: refreshed.append([str(p) for p in paths])
    )
    config = tmp_path / ".config"
    config.mkdir()
    (tmp_path / "Schreibtisch").mkdir()
    (config / "user-dirs.dirs").write_text(
        '# comment\nXDG_DESKTOP_DIR="$HOME/Schreibtisch"\n', encoding="utf-8"
    )
    entries = shortcut._make_entries(root, Path("/usr/bin/python3"), {}, tmp_path)
    assert entries == [
        tmp_path / ".local/share/applications" / f"{APP_ID}.desktop",
        tmp_path / "Schreibtisch" / f"{APP_ID}.desktop",
    ]
    assert refreshed == [[str(path) for path in entries]]
    assert all(path.stat().st_mode & 0o100 for path in entries)
    icons = tmp_path / ".local/share/icons/hicolor"
    assert (icons / "scalable/apps" / f"{APP_ID}.svg").read_text(encoding="utf-8")[:4] == "<svg"
    assert (icons / "256x256/apps" / f"{APP_ID}.png").read_bytes()[:4] == b"\x89PNG"


@pytest.fixture
def portable(root: Path, tmp_path: Path) -> Path:
    """A portable folder with what its menu entry needs."""
    app = tmp_path / "GPU Studio 100% \\1"
    app.mkdir()
    shutil.copy(root / "packaging" / f"{APP_ID}.desktop", app)
    starter = app / "gpu-studio"
    starter.write_text("#!/bin/sh\n", encoding="utf-8")
    starter.chmod(0o755)
    return app


def test_the_portable_folder_is_in_the_menu_with_its_own_paths(
    portable: Path, tmp_path: Path
) -> None:
    path = add_to_menu(portable, {}, tmp_path)
    assert path == tmp_path / ".local/share/applications" / f"{APP_ID}.desktop"
    entry = _entry(path)
    assert _read_exec(entry["Exec"]) == [str(portable / "gpu-studio")]
    places = [entry[key].replace("\\\\", "\\") for key in ("TryExec", "Icon")]
    assert places == [
        str(portable / "gpu-studio"),
        str(portable / "resources" / "app" / "gpu-studio.svg"),
    ]
    if shutil.which("desktop-file-validate"):
        done = subprocess.run(
            ["desktop-file-validate", str(path)], capture_output=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, b"")
    assert remove_from_menu(portable, {}, tmp_path) == path
    assert not path.exists()


def test_only_the_entry_of_this_folder_is_removed(portable: Path, tmp_path: Path) -> None:
    with pytest.raises(OtherEntryError, match="no entry"):
        remove_from_menu(portable, {}, tmp_path)
    path = add_to_menu(portable, {}, tmp_path)
    with pytest.raises(OtherEntryError, match="another installation"):
        remove_from_menu(portable / "newer", {}, tmp_path)
    assert path.exists()


def test_a_home_without_a_desktop_has_none(tmp_path: Path) -> None:
    assert desktop_folder({}, tmp_path) is None
    (tmp_path / "Desktop").mkdir()
    assert desktop_folder({}, tmp_path) == tmp_path / "Desktop"
    (tmp_path / "user-dirs.dirs").write_text('XDG_DESKTOP_DIR="$HOME"\n', encoding="utf-8")
    assert desktop_folder({"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path) is None


def test_the_icon_file_of_windows_holds_all_sizes(root: Path) -> None:
    content = (root / "resources" / "app" / "gpu-studio.ico").read_bytes()
    count = int.from_bytes(content[4:6], "little")
    sides = [content[6 + 16 * index] or 256 for index in range(count)]
    assert sides == [16, 20, 24, 32, 40, 48, 64, 256]
    for index in range(count):
        row = content[6 + 16 * index : 22 + 16 * index]
        size, offset = int.from_bytes(row[8:12], "little"), int.from_bytes(row[12:16], "little")
        drawing = content[offset : offset + size]
        assert drawing.startswith(b"\x89PNG")
        assert drawing.endswith(b"IEND\xaeB`\x82")
        assert int.from_bytes(drawing[16:20], "big") == sides[index]


def test_the_colours_are_those_of_cpu_and_gpu(root: Path) -> None:
    drawing = (root / "resources" / "app" / "gpu-studio.svg").read_text(encoding="utf-8")
    assert re.findall(r'stroke="(#E69F00|#56B4E9)"', drawing) == ["#56B4E9", "#E69F00"]
