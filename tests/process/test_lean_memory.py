"""Large memory that the window frees goes back to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gpu_studio.process.steady_memory import glibc_version

# A freed piece of 8 MiB raises the threshold of glibc, unless it is set: then the next one also
# comes from the system by itself.
_SCRIPT = """
import ctypes
from gpu_studio.process.lean_memory import give_large_back
give_large_back()
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
class Counts(ctypes.Structure):
    names = "arena ordered small mapped mapped_bytes a b c d e".split()
    _fields_ = [(name, ctypes.c_size_t) for name in names]
c.mallinfo2.restype = Counts
c.free(c.malloc(8 << 20))
before = c.mallinfo2().mapped
c.malloc(8 << 20)
print(c.mallinfo2().mapped - before)
"""


@pytest.mark.skipif((glibc_version() or ()) < (2, 33), reason="mallinfo2 is of glibc 2.33")
@pytest.mark.parametrize(
    ("variables", "mapped"), [({}, "1"), ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=4"}, "0")]
)
def test_a_large_piece_is_the_systems_again(variables, mapped, monkeypatch):
    monkeypatch.delenv("GPU_STUDIO_STEADY", raising=False)
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True)
    assert done.stdout.strip() == mapped, done.stderr
