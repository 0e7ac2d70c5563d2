"""How much each build downloads, and how much of the disk it takes, before an index is asked."""

from __future__ import annotations

from gpu_studio.core import operating_system

# PyTorch 2.13.0 with all that it needs: the CPU's wheels were measured (132 MB for Windows, 202 MB
# for Linux), those with CUDA have between 1.9 and 3.1 GB. For ROCm, others report 1.0 GB (gfx1151)
# to 2.1 GB (gfx950) and 5.7 to 6.2 GB on the disk: github.com/ultralytics/ultralytics, number
# 24137. For XPU, PyTorch's wheel alone had 0.8 GB and Intel's parts that were listed 0.5 GB:
# github.com/intel/torch-xpu-ops, number 2745. The exact size is known once it is asked.
_CPU_DOWNLOADS = {"Windows": "130 MB", "Linux": "200 MB"}
_DOWNLOADS = {
    "cpu": _CPU_DOWNLOADS.get(operating_system.system(), "100 to 200 MB"),
    "cu126": "2 to 3 GB",
    "cu130": "2 to 3 GB",
    "xpu": "1.5 to 2.5 GB",
}
_ROCM_DOWNLOAD = "1 to 2 GB"
# Measured after an installation, rounded up: 0.74 GB for the CPU; the others as in wheels.json.
_DISK = {"cpu": "0.8 GB", "cu126": "up to 6 GB", "cu130": "up to 6 GB", "xpu": "up to 6 GB"}
_ROCM_DISK = "up to 6.5 GB"


def download_size(family: str) -> str:
    """Return about how much an engine's download has, in words: "2 to 3 GB"."""
    return _DOWNLOADS.get(family, _ROCM_DOWNLOAD)


def disk_size(family: str) -> str:
    """Return about how much of the disk an engine takes, in words: "up to 6 GB"."""
    return _DISK.get(family, _ROCM_DISK)
