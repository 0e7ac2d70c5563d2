"""Installed builds in memory, and an installer that says what a test lets it say."""

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

from gpu_studio.core.builds.progress import ENDS, InstallProgress, InstallStage
from gpu_studio.core.builds.record import FAMILIES, BuildRecord, Wanted, best_of
from gpu_studio.core.builds.trouble import Trouble
from tests.patience import PATIENCE_S

TORCH, PYTHON = "2.13.0", "3.11"


def record(family: str, *, on_card: bool = False, torch: str = TORCH) -> BuildRecord:
    """Return the record of a build of 700 MB."""
    return BuildRecord(
        family, f"{torch}+{family}", PYTHON, size_bytes=700_000_000, runs_on_card=on_card
    )


class FakeStore:
    """Satisfies `model.builds.BuildStore`.

    Attributes:
        may_remove: A removal waits until it is set; it is set at first.
        unfinished: The bytes that unfinished installations have left.
        begun: The builds whose present version the user began.
    """

    def __init__(self, *records: BuildRecord, wanted: Wanted | None = None) -> None:
        self.kept = {one.family: one for one in records}
        self.wish = wanted or Wanted()
        self.removed: list[str] = []
        self.removal_error: Exception | None = None
        self.unfinished = 0
        self.torch_version, self.python = TORCH, PYTHON
        self.begun: set[str] = set()
        self.may_remove = threading.Event()
        self.may_remove.set()

    def records(self) -> tuple[BuildRecord, ...]:
        return tuple(self.kept.values())

    def used(self) -> str:
        return best_of(self.records(), self.wish.used, TORCH, PYTHON)

    def is_begun(self, family: str) -> bool:
        return family in self.begun or family not in self.kept

    def remove(self, family: str) -> None:
        self.may_remove.wait(PATIENCE_S)
        self.kept.pop(family, None)
        self.removed.append(family)
        if self.removal_error is not None:
            raise self.removal_error

    def free_bytes(self) -> int:
        return 20_000_000_000

    def downloads_bytes(self) -> int:
        return 0

    def unfinished_bytes(self) -> int:
        return self.unfinished

    def discard(self) -> None:
        self.may_remove.wait(PATIENCE_S)
        if self.removal_error is not None:
            raise self.removal_error
        self.unfinished = 0

    def wanted(self) -> Wanted:
        return self.wish

    def write_wanted(self, wanted: Wanted) -> None:
        self.wish = wanted


class FakeShelf(FakeStore):
    """A store that the composition root takes for a shelf."""

    root = Path("/nowhere")

    def used_folder(self) -> None:
        """Return no folder: the scripted engines need none."""


class ScriptedBuildInstaller:
    """Satisfies `model.builds.BuildInstallerPort`; `say` brings the next line.

    Attributes:
        calls: (family, folder of wheels, what is done) of each start.
        is_paused: Whether a pause was asked for.
        answers_pause: Whether a pause is answered at once.
        in_folder: The builds in every folder of wheels.
    """

    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.calls: list[tuple[str, Path | None, str]] = []
        self.is_paused = self.is_closed = False
        self.in_folder = FAMILIES
        self.answers_pause = True
        self._lines: queue.SimpleQueue[InstallProgress | None] = queue.SimpleQueue()

    def installing(
        self, family: str, wheels: Path | None = None, what: str = "install"
    ) -> Iterator[InstallProgress]:
        self.calls.append((family, wheels, what))
        yield from iter(self._lines.get, None)

    def say(self, stage: InstallStage, done: int = 0, total: int = 0, **more: object) -> None:
        fraction = done / total if total else 0.0
        progress = InstallProgress(stage, done, total, fraction, **more)  # type: ignore[arg-type]
        self._lines.put(progress)
        if stage in ENDS:
            self._lines.put(None)

    def finish(self, made: BuildRecord) -> None:
        self._store.kept[made.family] = made
        self.say(InstallStage.READY, result="It ran.")

    def fail(self, trouble: Trouble) -> None:
        self.say(InstallStage.FAILED, 30, 100, trouble=trouble)

    def builds_in(self, folder: Path) -> tuple[str, ...]:
        return self.in_folder

    def pause(self) -> None:
        self.is_paused = True
        if self.answers_pause:
            self.say(InstallStage.PAUSED, 30, 100)

    def close(self) -> None:
        self.is_closed = True
        self._lines.put(None)
