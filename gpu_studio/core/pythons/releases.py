"""Which torchvision and torchaudio belong to which PyTorch, and which Pythons it is for.

The table is `resources/torch_releases.json`, which names its sources.
"""

from __future__ import annotations

from functools import cache

import msgspec

from gpu_studio.core.maker_builds import version_numbers
from gpu_studio.core.resources import read_resource


class Release(msgspec.Struct, frozen=True):
    """What belongs to one PyTorch; "" for what is not known.

    Attributes:
        vision: the version of torchvision.
        audio: that of torchaudio.
        rocm: the ROCm of PyTorch's own build for AMD cards on Linux, "6.4".
    """

    vision: str
    audio: str
    rocm: str


class PythonRange(msgspec.Struct, frozen=True):
    """The oldest and newest Python for some PyTorch series, both ends included, by system."""

    torch: tuple[str, str]
    linux: tuple[str, str]
    windows: tuple[str, str]


class RocmChip(msgspec.Struct, frozen=True):
    """From which ROCm on PyTorch's own builds have code for a chip, and before which none had."""

    sure_from: str
    not_before: str


class AmdCompanions(msgspec.Struct, frozen=True):
    """What belongs to the PyTorch of AMD's own index."""

    vision: str
    audio: str


class TorchReleases(msgspec.Struct, frozen=True):
    """The table: PyTorch's releases since 2.0, oldest first."""

    releases: dict[str, Release]
    pythons: tuple[PythonRange, ...]
    rocm_chips: dict[str, RocmChip]
    amd: AmdCompanions

    def release(self, torch_version: str) -> Release | None:
        """Return what belongs to a PyTorch, whatever its label; None if it is not known."""
        return self.releases.get(torch_version.partition("+")[0])

    def suits(self, torch_version: str, python: tuple[int, int] | None, system: str) -> bool:
        """Return whether a release exists for a Python; also if that is unknown."""
        series = version_numbers(torch_version)[:2]
        for row in self.pythons:
            oldest, newest = map(version_numbers, row.torch)
            if oldest <= series <= newest:
                first, last = row.windows if system == "Windows" else row.linux
                return python is None or version_numbers(first) <= python <= version_numbers(last)
        return False

    def rocm_covers(self, rocm: tuple[int, ...], chip: str) -> bool | None:
        """Return whether PyTorch's own build for a ROCm has code for a chip; None if unknown."""
        row = self.rocm_chips.get(chip)
        if row is None or rocm[:2] < version_numbers(row.not_before):
            return False
        return True if rocm[:2] >= version_numbers(row.sure_from) else None


@cache
def torch_releases() -> TorchReleases:
    """Return the table.

    Raises:
        MissingResourceError: the file is missing or broken.
    """
    return read_resource("torch_releases.json", TorchReleases)
