"""What the builds' model asks of the disk and of the installer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.builds.progress import InstallProgress
    from gpu_studio.core.builds.record import BuildRecord, Wanted


class BuildStore(Protocol):
    """The installed builds on the disk.

    Attributes:
        torch_version: the version that this program installs, "2.13.0".
        python: the Python of this program, "3.11".
    """

    torch_version: str
    python: str

    def records(self) -> tuple[BuildRecord, ...]:
        """Return the records of the builds that are here, broken ones as well."""

    def used(self) -> str:
        """Return the build that the next engine uses; "" if there is none."""

    def is_begun(self, family: str) -> bool:
        """Return whether the user began the present version of a wanted build."""

    def remove(self, family: str) -> None:
        """Remove a build, or raise `TroubleError`."""

    def free_bytes(self) -> int:
        """Return the free space of the disk."""

    def downloads_bytes(self) -> int:
        """Return the size of the downloads that are not installed."""

    def wanted(self) -> Wanted:
        """Return what the user asked for."""

    def unfinished_bytes(self) -> int:
        """Return the size of what unfinished installations have downloaded and unpacked."""

    def discard(self) -> None:
        """Remove what unfinished installations have left, or raise `TroubleError`."""

    def write_wanted(self, wanted: Wanted) -> None:
        """Remember what the user asked for."""


class BuildInstallerPort(Protocol):
    """Installs builds."""

    def installing(
        self, family: str, wheels: Path | None = None, what: str = "install"
    ) -> Iterator[InstallProgress]:
        """Install, repair or only fetch a build; yield the progress, whose last value is the end.

        Args:
            family: the build.
            wheels: a folder of wheels in place of a download.
            what: "install", "repair", or "fetch" to download and change nothing.
        """

    def builds_in(self, folder: Path) -> tuple[str, ...]:
        """Return the builds whose PyTorch is in a folder of wheels."""

    def pause(self) -> None:
        """Ask for an early end, which keeps what was downloaded."""

    def close(self) -> None:
        """End it now, without an answer."""
