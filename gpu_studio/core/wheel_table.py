"""The table of PyTorch's builds, `resources/wheels.json`, which names its sources.

Standard library only, like wheels.py, which uses it.
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
        tag: PyTorch's name of the build: "cu130", "cu126" or "cpu".
        index_url: The package index of the build.
        arch_list: The architectures in its code ("sm_75"), by platform ("linux-x86_64").
        driver_floor: The oldest driver that runs it, by system ("linux").
    """

    tag: str
    index_url: str
    arch_list: Mapping[str, Sequence[str]]
    driver_floor: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PublishedBuild:
    """A build that PyTorch published for some versions, whether this program installs it or not.

    Attributes:
        tag: "cu118".
        torch: The first and last PyTorch series with this build and code: ("2.0", "2.7").
        arch_list: The architectures in its code on x86-64.
    """

    tag: str
    torch: tuple[str, str]
    arch_list: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WheelTable:
    """The table of builds.

    Attributes:
        torch_version: The PyTorch version that this program installs.
        builds: Its builds, from the newest CUDA to the CPU.
        published: The builds of every PyTorch since 2.0, oldest CUDA first.
        driver_floor: The oldest driver that runs a CUDA generation ("12"), by system.
        torch_sha256: The hashes of PyTorch's wheels, by file name, as far as they are known.
    """

    torch_version: str
    builds: tuple[TorchBuild, ...]
    published: tuple[PublishedBuild, ...] = ()
    driver_floor: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    torch_sha256: Mapping[str, str] = field(default_factory=dict)

    def build(self, tag: str) -> TorchBuild:
        """Return the build with a tag.

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
        MissingResourceError: The file is missing or invalid.
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
            torch_sha256=content["torch_sha256"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MissingResourceError(_TABLE, "cannot be read") from error
