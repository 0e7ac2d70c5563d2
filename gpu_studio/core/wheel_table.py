"""The table of PyTorch's builds, `resources/wheels.json`, and about how large they are."""

from __future__ import annotations

import json
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_studio.core import operating_system
from gpu_studio.core.resources import MissingResourceError, resource_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_TABLE = "wheels.json"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
NVIDIA = "NVIDIA"
CPU_TAG = "cpu"
"""The build without code for cards."""


class IndexPackage(NamedTuple):
    """A package that a build needs, and that only the build's own index has.

    PyPI may have another one of the same name: placeholders, and packages of other people.

    Attributes:
        name: "rocm-sdk-core".
        version: Exact: "10.0.0".
        source_sha256: The hash of its source, if the index has no wheel of it; otherwise "".
    """

    name: str
    version: str
    source_sha256: str = ""


class TorchBuild(NamedTuple):
    """One build.

    Attributes:
        tag: Our name of the build: "cu130", "cpu", "xpu", "rocm-gfx1032".
        index_url: The package index of the build.
        arch_list: The architectures in its code ("sm_75"), by platform ("linux-x86_64"); empty for
            other makers' builds.
        driver_floor: The oldest driver that runs it, by system ("linux").
        maker: Whose cards it is for; "" for the CPU's build.
        version: The version of its PyTorch; "" for that of the table with the tag.
        extra: The extra of PyTorch's package that asks for the chip, "device-gfx1032".
        chips: The chips that it has code for ("gfx1032", "bmg"), by platform.
        packages: What only its index has, besides PyTorch, for each system ("linux").
        needs: What its PyTorch needs from PyPI, if its index tells that only inside the wheel.
        kernel_floor: The oldest Linux kernel that runs a chip, by chip.
        untested: The chips that its maker has not tested it on, by platform.
        wrong_results: The chips that it was seen to compute wrong results on.
        sha256: The hashes of files on an index that publishes none, as far as they are known.
        has_hashes: Whether its index publishes hashes.
    """

    tag: str
    index_url: str
    arch_list: Mapping[str, Sequence[str]]
    driver_floor: Mapping[str, str]
    maker: str = NVIDIA
    version: str = ""
    extra: str = ""
    chips: Mapping[str, Sequence[str]] = _NOTHING
    packages: Mapping[str, Sequence[IndexPackage]] = _NOTHING
    needs: Sequence[str] = ()
    kernel_floor: Mapping[str, str] = _NOTHING
    untested: Mapping[str, Sequence[str]] = _NOTHING
    wrong_results: Sequence[str] = ()
    sha256: Mapping[str, str] = _NOTHING
    has_hashes: bool = True


class PublishedBuild(NamedTuple):
    """A build that PyTorch published for some versions, whether this program installs it or not.

    Attributes:
        tag: "cu118".
        torch: The first and last PyTorch series with this build and code: ("2.0", "2.7").
        arch_list: The architectures in its code on x86-64.
    """

    tag: str
    torch: tuple[str, str]
    arch_list: tuple[str, ...]


class WheelTable(NamedTuple):
    """The table of builds.

    Attributes:
        torch_version: The PyTorch version that this program installs.
        builds: Its builds: from the newest CUDA to the CPU, then other makers'.
        published: The builds of every PyTorch since 2.0, oldest CUDA first.
        python: The oldest and the newest Python that the builds are for.
        driver_floor: The oldest driver that runs a CUDA generation ("12"), by system.
        torch_sha256: The hashes of PyTorch's wheels, by file name, as far as they are known.
    """

    torch_version: str
    builds: tuple[TorchBuild, ...]
    published: tuple[PublishedBuild, ...] = ()
    python: tuple[tuple[int, int], tuple[int, int]] = ((3, 10), (3, 14))
    driver_floor: Mapping[str, Mapping[str, str]] = _NOTHING
    torch_sha256: Mapping[str, str] = _NOTHING

    def build(self, tag: str) -> TorchBuild:
        """Return the build with a tag.

        Raises:
            KeyError: The table has no such build.
        """
        for build in self.builds:
            if build.tag == tag:
                return build
        raise KeyError(tag)

    def version_of(self, tag: str) -> str:
        """Return the version of a build's PyTorch: "2.13.0+cu126".

        Raises:
            KeyError: The table has no such build.
        """
        return self.build(tag).version or f"{self.torch_version}+{tag}"


@cache
def load_table() -> WheelTable:
    """Return the table of `resources/wheels.json`, which is read once.

    Raises:
        MissingResourceError: The file is missing or invalid.
    """
    path = resource_path(_TABLE)
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        return WheelTable(
            torch_version=str(content["torch_version"]),
            builds=(
                *(
                    TorchBuild(
                        tag=row["tag"],
                        index_url=row["index_url"],
                        arch_list=row["arch_list"],
                        driver_floor=row["driver_floor"],
                        maker=NVIDIA if row["arch_list"] else "",
                    )
                    for row in content["builds"]
                ),
                *(build for row in content["other_makers"] for build in _builds_of(row)),
            ),
            published=tuple(
                PublishedBuild(
                    tag=row["tag"],
                    torch=(row["torch"][0], row["torch"][1]),
                    arch_list=tuple(row["arch_list"]),
                )
                for row in content["published"]
            ),
            python=(_pair(content["python"]["oldest"]), _pair(content["python"]["newest"])),
            driver_floor=content["driver_floor"],
            torch_sha256=content["torch_sha256"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MissingResourceError(_TABLE, "cannot be read") from error


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    major, minor = numbers
    return int(major), int(minor)


def _builds_of(row: Mapping[str, Any]) -> Iterator[TorchBuild]:
    """Yield the builds in a row of another maker: one for all chips, or one for each."""
    everything = tuple(dict.fromkeys(chip for chips in row["chips"].values() for chip in chips))
    for own in [(chip,) for chip in everything] if row["is_per_chip"] else [everything]:
        chip = own[0] if row["is_per_chip"] else ""
        yield TorchBuild(
            tag=f"{row['tag']}-{chip}" if chip else row["tag"],
            index_url=row["index_url"],
            arch_list={},
            driver_floor={},
            maker=row["maker"],
            version=row["version"],
            extra=f"device-{chip}" if chip else "",
            chips={key: [one for one in own if one in row["chips"][key]] for key in row["chips"]},
            packages={
                system: tuple(_packages(row["packages"], chip, system))
                for system in ("linux", "windows")
            },
            needs=tuple(row.get("needs", ())),
            kernel_floor=row["kernel_floor"],
            untested=row.get("untested", {}),
            wrong_results=tuple(row.get("wrong_results", ())),
            sha256=row.get("sha256", {}),
            has_hashes="sha256" not in row,
        )


def _packages(rows: Sequence[Mapping[str, Any]], chip: str, system: str) -> Iterator[IndexPackage]:
    for row in rows:
        if row.get("system", system) == system and chip in row.get("chips", (chip,)):
            name = row["name"].format(chip=chip)
            yield IndexPackage(name, row["version"], row.get("source_sha256", ""))


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
