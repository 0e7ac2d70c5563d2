import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from menu import APP_ID, OtherEntryError, add_to_menu, quoted, remove_from_menu

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
