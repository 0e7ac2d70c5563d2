from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from gpu_studio.core.check.check_folder import is_same_boot
from gpu_studio.hardware.cpu import (
    boot_mark,
    cuda_variables,
    has_secure_boot,
    is_wsl,
    linux_distribution,
)
from gpu_studio.hardware.nvidia.nvml import is_library_replaced, library_version

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("release", "expected"),
    [("5.15.167.4-microsoft-standard-WSL2", True), ("6.8.0-45-generic", False)],
)
def test_wsl_is_known_by_its_kernel(release, expected):
    assert is_wsl(release) is expected


def test_a_linux_is_reported_with_those_it_descends_from(tmp_path):
    path = tmp_path / "os-release"
    path.write_text('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n')
    assert linux_distribution(path) == "linuxmint ubuntu debian"
    assert linux_distribution(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("value", "is_on"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x01", False), (b"", False)],
)
def test_secure_boot_is_the_byte_behind_the_attributes(value, is_on, tmp_path):
    path = tmp_path / "SecureBoot"
    path.write_bytes(value)
    assert has_secure_boot(path) is is_on
    assert not has_secure_boot(tmp_path / "none")


def test_only_what_cuda_reads_is_told_of_the_environment(monkeypatch):
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("SECRET", "1")
    result = cuda_variables()
    assert result["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"
    assert not {"SECRET", "CUDA_VISIBLE_DEVICES", "HOME", "PATH"} & set(result)


@pytest.mark.parametrize(
    ("line", "version"),
    [("7f0 r-xp 00000000 08:01 12 /usr/lib/libnvidia-ml.so.595.71.05", "595.71.05"),
     ("7f0 r-xp 00000000 08:01 12 /usr/lib/libnvidia-ml.so.595.71.05 (deleted)", "595.71.05"),
     ("7f0 r-xp 00000000 08:01 12 /usr/lib/libnvidia-ml.so.1", None), ("", None)],
)  # fmt: skip
def test_the_loaded_library_reports_its_version(line, version, tmp_path):
    path = tmp_path / "maps"
    path.write_text(f"7e0 r-xp 00000000 08:01 9 /usr/lib/libc.so.6\n{line}\n")
    assert library_version(path) == version
    assert library_version(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("line", "is_replaced"),
    [("7f0 r-xp 00000000 08:01 12 /usr/lib/libnvidia-ml.so.595.71.05 (deleted)", True),
     ("7f0 r-xp 00000000 08:01 12 /usr/lib/libnvidia-ml.so.1 (deleted)", True),
     ("7f0 r-xp 00000000 08:01 12 /usr/lib/libnvidia-ml.so.595.71.05", False),
     ("7f0 r-xp 00000000 08:01 12 /usr/lib/libc.so.6 (deleted)", False)],
)  # fmt: skip
def test_a_library_that_is_used_and_no_longer_on_the_disk_was_replaced(line, is_replaced, tmp_path):
    path = tmp_path / "maps"
    path.write_text(f"7e0 r-xp 00000000 08:01 9 /usr/lib/libm.so.6\n{line}\n")
    assert is_library_replaced(path) is is_replaced
    assert not is_library_replaced(tmp_path / "none")


def test_a_start_of_the_pc_has_its_mark(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("1a2b-3c4d\n")
    assert boot_mark(tmp_path / "boot_id") == "1a2b-3c4d"
    assert is_same_boot(boot_mark(tmp_path / "missing"), str(int(psutil.boot_time())))
