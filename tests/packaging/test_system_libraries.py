from __future__ import annotations

import sys

import pytest
from studio_setup.system_libraries import (
    OFFSCREEN,
    SCREEN,
    apt_command,
    as_named_here,
    loads,
    missing_libraries,
    missing_venv_package,
)


def test_a_real_screen_needs_more() -> None:
    assert missing_libraries(False, "linux", lambda soname: False) == OFFSCREEN
    assert missing_libraries(True, "linux", lambda soname: False) == OFFSCREEN | SCREEN
    assert missing_libraries(True, "linux", lambda soname: True) == {}
    assert missing_libraries(True, "win32", lambda soname: False) == {}


def test_only_what_is_missing_is_named() -> None:
    missing = missing_libraries(True, "linux", lambda soname: "xcb" not in soname)
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


def test_debian_splits_venv_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "studio_setup.system_libraries.importlib.util.find_spec", lambda name: object()
    )
    assert missing_venv_package() is None
    monkeypatch.setattr("studio_setup.system_libraries.importlib.util.find_spec", lambda name: None)
    major, minor = sys.version_info[:2]
    assert missing_venv_package() == f"python{major}.{minor}-venv"
