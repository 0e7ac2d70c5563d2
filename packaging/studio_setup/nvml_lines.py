"""Ask the NVIDIA driver for its cards through ctypes, in a separate process.

This runs as a script because only ending the process can end a driver call that never returns. It
prints one line per card in the format of `nvidia-smi --query-gpu=compute_cap,driver_version,name
--format=csv,noheader`. It is for drivers whose nvidia-smi does not know compute_cap, and for PCs
without nvidia-smi on the path.
"""

from __future__ import annotations

import ctypes
import os
import sys


def _library() -> ctypes.CDLL:
    name = "libnvidia-ml.so.1"
    if sys.platform == "win32":
        system = os.environ.get("SYSTEMROOT", r"C:\Windows")
        name = os.path.join(system, "System32", "nvml.dll")
    return ctypes.CDLL(name)


def card_lines(nvml: ctypes.CDLL) -> list[str]:
    """Return one line per card; empty if the driver refuses."""
    if nvml.nvmlInit_v2() != 0:
        return []
    driver = ctypes.create_string_buffer(96)
    count = ctypes.c_uint()
    nvml.nvmlSystemGetDriverVersion(driver, 96)
    nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    lines = []
    for index in range(count.value):
        handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(96)
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
            continue
        capability = (ctypes.byref(major), ctypes.byref(minor))
        if nvml.nvmlDeviceGetCudaComputeCapability(handle, *capability) != 0:
            continue
        nvml.nvmlDeviceGetName(handle, name, 96)
        texts = [driver.value.decode(errors="replace"), name.value.decode(errors="replace")]
        lines.append(", ".join([f"{major.value}.{minor.value}", *texts]))
    return lines


if __name__ == "__main__":
    try:
        library = _library()
    except OSError:
        sys.exit(0)
    print("\n".join(card_lines(library)))
