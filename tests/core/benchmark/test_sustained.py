"""The words on a run that has not reached its sustained speed."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE_S

_UNSTEADY = """
import sys
from gpu_studio.core.benchmark.sustained import unsteadiness
print(unsteadiness([1.0, 1.0, 2.0, 2.0]))
print(unsteadiness([1.0, 3.0, 2.0, 2.0, 3.0, 1.0]))
print("numpy.ma" in sys.modules)
"""


def test_the_halves_are_compared_by_medians_without_numpy_s_masked_arrays():
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", _UNSTEADY], capture_output=True, text=True,
        encoding="utf-8", timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    changed, steady, has_masked = ended.stdout.splitlines()
    assert "100\u202f%" in changed
    assert (steady, has_masked) == ("", "False")
