from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from studio_setup.need import Need
from studio_setup.place import environment_folder

# As deep as the download of a Windows user whose name is short, and one letter more.
FITS = Path("/" + "d" * 51)
TOO_LONG = Path("/" + "d" * 52)
HOME = Path("/home/me")


class Registry:
    """Stands in for the module winreg: its one value, or an error if it is missing."""

    HKEY_LOCAL_MACHINE = "HKLM"

    def __init__(self, value: int | None) -> None:
        self._value = value

    def OpenKey(self, root: str, path: str) -> contextlib.AbstractContextManager[str]:
        assert (root, path) == ("HKLM", r"SYSTEM\CurrentControlSet\Control\FileSystem")
        return contextlib.nullcontext("key")

    def QueryValueEx(self, key: str, name: str) -> tuple[int, int]:
        assert (key, name) == ("key", "LongPathsEnabled")
        if self._value is None:
            raise FileNotFoundError
        return self._value, 4


@pytest.fixture(autouse=True)
def windows_as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "winreg", Registry(0))


def test_the_environment_is_beside_the_program_as_long_as_windows_can_name_its_files() -> None:
    assert environment_folder(FITS, "win32", HOME) == FITS / ".venv"
    elsewhere = environment_folder(TOO_LONG, "win32", HOME)
    assert elsewhere.parent == HOME / ".gpu-studio"
    # With a licence of PyTorch in it, both are names that Windows takes.
    licence = "Lib/site-packages/torch-2.13.0+cu126.dist-info/licenses/third_party/kineto/"
    licence += "libkineto/third_party/dynolog/third_party/prometheus-cpp/3rdparty/civetweb/src/"
    licence += "third_party/duktape-1.5.2/LICENSE.txt"
    assert len(str(FITS / ".venv" / licence)) < 260
    # The longest name that Windows gives a user has 20 characters.
    deepest = environment_folder(TOO_LONG, "win32", Path("C:/Users/" + "u" * 20))
    assert len(str(deepest / licence)) < 260


def test_every_program_folder_has_an_environment_of_its_own() -> None:
    other = TOO_LONG.with_name("e" * 60)
    found = {environment_folder(folder, "win32", HOME) for folder in (TOO_LONG, other)}
    assert len(found) == 2
    assert environment_folder(TOO_LONG, "win32", HOME) in found


def test_where_long_names_are_allowed_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment_folder(TOO_LONG, "linux", HOME) == TOO_LONG / ".venv"
    monkeypatch.setitem(sys.modules, "winreg", Registry(None))
    assert environment_folder(TOO_LONG, "win32", HOME) != TOO_LONG / ".venv"
    monkeypatch.setitem(sys.modules, "winreg", Registry(1))
    assert environment_folder(TOO_LONG, "win32", HOME) == TOO_LONG / ".venv"


def test_a_need_asks_there(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio_setup.need.environment_folder", lambda _root: tmp_path / "e")
    # It would ask a real Windows' registry for its cards.
    monkeypatch.setattr("studio_setup.need.hardware_fingerprint", lambda: "")
    need = Need(root, (), False, False, None)
    assert need.environment == tmp_path / "e"
    assert need.present["place"] == str(tmp_path / "e")
    assert str(tmp_path / "e") in need.python
