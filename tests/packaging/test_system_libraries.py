from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import system_libraries
from system_libraries import (
    FONT,
    OFFSCREEN,
    SCREEN,
    apt_command,
    as_named_here,
    loads,
    missing_libraries,
)


def test_a_real_screen_needs_more() -> None:
    def missing(screen: bool, system: str, there: bool) -> dict[str, str]:
        return missing_libraries(screen, system, lambda soname: there, lambda: there)

    assert missing(False, "linux", False) == OFFSCREEN | FONT
    assert missing(True, "linux", False) == OFFSCREEN | SCREEN | FONT
    assert missing(True, "linux", True) == {}
    assert missing(True, "win32", False) == {}


def test_a_font_is_asked_of_fontconfig(tmp_path: Path) -> None:
    """A configuration of its own, in a process of its own: the system's fonts do not count."""
    configuration = tmp_path / "fonts.conf"
    configuration.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
        f"<dir>{tmp_path}</dir><cachedir>{tmp_path}</cachedir></fontconfig>"
    )
    code = "from system_libraries import has_fonts; print(has_fonts())"
    paths = [str(Path(system_libraries.__file__).parent), *filter(None, sys.path)]
    environ = os.environ | {
        "FONTCONFIG_FILE": str(configuration), "PYTHONPATH": os.pathsep.join(paths)
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    lacking = missing_libraries(False, "linux", lambda soname: True, lambda: False)
    assert apt_command([*lacking.values()]) == "sudo apt-get install -y fonts-dejavu-core"


def test_only_what_is_missing_is_named() -> None:
    missing = missing_libraries(True, "linux", lambda soname: "xcb" not in soname, lambda: True)
    assert list(missing.values()) == [
        "libxcb-cursor0",
        "libxcb-icccm4",
        "libxcb-keysyms1",
        "libxcb-shape0",
    ]
    assert apt_command(["libegl1", "libgl1"]) == "sudo apt-get install -y libegl1 libgl1"


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ("libglib2.0-0\nlibglib2.0-0-dbgsym\n", "libglib2.0-0"),
        ("libglib2.0-0t64\nlibglib2.0-0\n", "libglib2.0-0t64"),
        ("libglib2.0-0t64\n", "libglib2.0-0t64"),
        ("", "libglib2.0-0"),
    ],
)
def test_glib_has_two_names(known: str, name: str) -> None:
    assert as_named_here(["libgl1", "libglib2.0-0"], known) == ["libgl1", name]


def test_a_library_that_is_not_there_does_not_load() -> None:
    assert not loads("libno-such-library.so.7")
