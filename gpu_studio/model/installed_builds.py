"""The builds on the disk, as of the last look: what is asked ten times a second is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.builds.record import BuildRecord
    from gpu_studio.model.build_ports import BuildStore


class InstalledBuilds:
    """What is installed.

    Args:
        store: the builds on the disk.

    Attributes:
        records: the builds, broken ones as well.
        used: the build that the next engine uses; "" if there is none.
        free_bytes: the free space of the disk.
        unfinished_bytes: the size of what unfinished installations have left.
    """

    def __init__(self, store: BuildStore) -> None:
        self._store = store
        self.records, self.used = store.records(), store.used()
        self.free_bytes = self.unfinished_bytes = 0

    def look(self) -> None:
        """Read the disk."""
        self.records, self.used = self._store.records(), self._store.used()
        self.free_bytes = self._store.free_bytes()
        self.unfinished_bytes = self._store.unfinished_bytes()

    def has(self, family: str) -> bool:
        """Return whether a build is installed, and as new as this program."""
        return any(
            one.family == family and one.is_ready and not self._store.outdated(one)
            for one in self.records
        )

    def outdated(self, record: BuildRecord) -> str:
        """Return why a build is older than this program; "" if it is not."""
        return self._store.outdated(record)

    def downloads_bytes(self) -> int:
        """Return the size of the downloads that are not installed."""
        return self._store.downloads_bytes()
