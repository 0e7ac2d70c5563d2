from __future__ import annotations

import platform
import subprocess

import pytest

from gpu_studio.core import operating_system


def test_this_pc_is_named_as_python_names_it():
    assert operating_system.system() == platform.system()
    assert operating_system.machine() == platform.machine()
    assert operating_system.release() == platform.release()


def test_no_process_is_started_for_a_name(monkeypatch: pytest.MonkeyPatch):
    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert operating_system.system()
    assert operating_system.machine()
    assert operating_system.release()


@pytest.mark.parametrize(
    ("platform_name", "name"),
    [("win32", "Windows"), ("darwin", "Darwin"), ("linux", "Linux"), ("freebsd14", "Freebsd14")],
)
def test_the_system_has_one_name(platform_name: str, name: str):
    assert operating_system.system(platform_name) == name


@pytest.mark.parametrize(
    ("environ", "machine"),
    [
        ({"PROCESSOR_ARCHITECTURE": "AMD64"}, "AMD64"),
        ({"PROCESSOR_ARCHITECTURE": "x86", "PROCESSOR_ARCHITEW6432": "AMD64"}, "AMD64"),
        ({}, ""),
    ],
)
def test_a_32_bit_program_is_told_the_processor_of_windows(environ: dict[str, str], machine: str):
    assert operating_system.machine_of_windows(environ) == machine
