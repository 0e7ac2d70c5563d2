"""What is copied is about the Python that runs the program, whatever a shell calls python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gpu_studio.core.devices.findings import python_here, typed

ENDING = ".exe" if sys.platform == "win32" else ""
BIN = "Scripts" if sys.platform == "win32" else "bin"


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{ENDING}"
    path.write_text("")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def ours(tmp_path: Path) -> str:
    return program(tmp_path / ".venv" / BIN, "python")


def test_another_python_in_the_shell_is_not_the_one_to_install_into(
    ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "usr", "python")
    program(tmp_path / "usr", "gpu-studio")
    monkeypatch.setenv("PATH", str(tmp_path / "usr"))
    assert typed("python -m pip install torch==2.13.0", ours) == (
        f"{ours} -m pip install torch==2.13.0"
    )
    assert typed("gpu-studio bench matmul", ours) == f"{ours} -m gpu_studio bench matmul"


def test_a_shell_without_any_python_gets_the_path(
    ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert python_here(ours) == ours
    assert typed("gpu-studio doctor", ours) == f"{ours} -m gpu_studio doctor"


def test_in_an_activated_environment_the_short_words_do(
    ours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(Path(ours).parent, "gpu-studio")
    monkeypatch.setenv("PATH", os.path.dirname(ours))
    for command in ("python -m pip install torch", "gpu-studio bench matmul"):
        assert typed(command, ours) == command


@pytest.mark.parametrize("action", ["", "nvidia-smi", "export CUDA_DEVICE_ORDER=PCI_BUS_ID"])
def test_other_commands_and_addresses_stay(action: str, ours: str) -> None:
    assert typed(action, ours) == action


@pytest.mark.skipif(sys.platform == "win32", reason="quoted for a shell of Linux")
def test_a_folder_with_a_space_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    path = program(tmp_path / "my programs" / BIN, "python")
    assert python_here(path) == f"'{path}'"


def test_the_windows_own_python_has_no_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert python_here(str(tmp_path / "pythonw.exe")) == str(tmp_path / "python.exe")


def test_a_python_that_does_not_know_its_path_is_called_python() -> None:
    assert python_here("") == "python"
