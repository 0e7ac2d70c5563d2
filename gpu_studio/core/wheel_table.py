"""The table of PyTorch's builds, `resources/wheels.json`, which names its sources.

Standard library only, like wheels.py, which chooses from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpu_studio.core.resources import MissingResourceError, resource_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TABLE = "wheels.json"


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """One row of the table.

    Attributes:
        tag: PyTorch's name for the build: "cu130", "cu126" or "cpu".
        index_url: The package index that has it.
        arch_list: Per platform ("linux-x86_64"), the architectures it has code for ("sm_75").
        driver_floor: Per system ("linux"), the oldest driver that runs it.
        disk_bytes: Space that installing it and the rest of the program takes, rounded up.
    """

    tag: str
    index_url: str
    arch_list: Mapping[str, Sequence[str]]
    driver_floor: Mapping[str, str]
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class PublishedBuild:
    """A build that PyTorch published for some of its versions, this program's or not.

    Attributes:
        tag: "cu118".
        torch: The first and the last series of PyTorch that has it with this code: ("2.0", "2.7").
        arch_list: The architectures it has code for on x86-64.
    """

    tag: str
    torch: tuple[str, str]
    arch_list: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WheelTable:
    """The table of builds.

    Attributes:
        torch_version: The PyTorch that this program installs.
        builds: Its builds from the newest CUDA to the CPU.
        published: The builds of every PyTorch from 2.0 on, oldest CUDA first.
        driver_floor: Per generation of CUDA ("12") and system, the oldest driver that runs it.
    """

    torch_version: str
    builds: tuple[TorchBuild, ...]
    published: tuple[PublishedBuild, ...] = ()
    driver_floor: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def build(self, tag: str) -> TorchBuild:
        """The build of that tag.

        Raises:
            KeyError: The table has no such build.
        """
        for build in self.builds:
            if build.tag == tag:
                return build
        raise KeyError(tag)


def load_table() -> WheelTable:
    """Read `resources/wheels.json`.

    Raises:
        MissingResourceError: It is not there, or is not such a table.
    """
    path = resource_path(_TABLE)
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        return WheelTable(
            torch_version=str(content["torch_version"]),
            builds=tuple(
                TorchBuild(
                    tag=row["tag"],
                    index_url=row["index_url"],
                    arch_list=row["arch_list"],
                    driver_floor=row["driver_floor"],
                    disk_bytes=int(row["disk_bytes"]),
                )
                for row in content["builds"]
            ),
            published=tuple(
                PublishedBuild(
                    tag=row["tag"],
                    torch=(row["torch"][0], row["torch"][1]),
                    arch_list=tuple(row["arch_list"]),
                )
                for row in content["published"]
            ),
            driver_floor=content["driver_floor"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MissingResourceError(_TABLE, "cannot be read") from error
