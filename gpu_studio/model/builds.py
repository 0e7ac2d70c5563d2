"""The builds of PyTorch that the window installs for itself, and the one that the engine uses."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from PySide6.QtCore import QObject, Signal

from gpu_studio.core import limits
from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.builds.trouble import Trouble, TroubleError, TroubleKind
from gpu_studio.core.builds.words import build_title
from gpu_studio.core.failure import first_line
from gpu_studio.core.wheel_table import CPU_TAG
from gpu_studio.model.engine_handover import MADE_FOR_OTHER, NOT_INSTALLED, EngineHandover
from gpu_studio.model.worker import Task, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpu_studio.core.builds.record import BuildRecord, Wanted
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.wheels import WheelChoice
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors


# A card that is added later, or only has no driver yet, is often NVIDIA's.
_ALWAYS_OFFERED = (CPU_TAG, "cu126", "cu130")
Installation = Literal["", "runs", "stopped"]
"""What the installation of the engine does; empty before it began and after its end."""


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


class InstalledBuilds:
    """What is installed.

    Args:
        store: the builds on the disk.

    Attributes:
        records: the builds, broken ones as well.
        used: the build that the next engine uses; "" if there is none.
        free_bytes: the free space of the disk.
        unfinished_bytes: the size of what unfinished installations have left.
        torch_version: the version that this program installs, "2.13.0".
        python: the Python that the builds are for, "3.11".
    """

    def __init__(self, store: BuildStore) -> None:
        self._store = store
        self.torch_version, self.python = store.torch_version, store.python
        self.records: tuple[BuildRecord, ...] = ()
        self.used, self.free_bytes, self.unfinished_bytes = "", 0, 0

    def reload(self) -> None:
        """Read the disk."""
        self.records, self.used = self._store.records(), self._store.used()
        self.free_bytes = self._store.free_bytes()
        self.unfinished_bytes = self._store.unfinished_bytes()

    def has(self, family: str) -> bool:
        """Return whether a build is installed, and as new as this program."""
        return any(
            one.family == family and one.is_ready and not self.outdated(one) for one in self.records
        )

    def outdated(self, record: BuildRecord) -> str:
        """Return why a build is older than this program; "" if it is not."""
        return record.outdated(self.torch_version, self.python)

    def is_loadable(self, record: BuildRecord) -> bool:
        """Return whether this Python can load a build."""
        return record.is_ready and record.python == self.python

    @property
    def older(self) -> tuple[BuildRecord, ...]:
        """The whole builds of another PyTorch or Python than this program's."""
        return tuple(one for one in self.records if one.is_ready and self.outdated(one))

    def downloads_bytes(self) -> int:
        """Return the size of the downloads that are not installed."""
        return self._store.downloads_bytes()


class RecommendedBuild(QObject):
    """The build for the cards of this PC, as far as they are known.

    Signals:
        changed(): it is another one, or for another reason.
    """

    changed = Signal()

    def __init__(self, sensors: Sensors, parent: QObject) -> None:
        super().__init__(parent)
        self._choice: WheelChoice | None = None
        sensors.inventory_changed.connect(self._on_inventory)

    @property
    def family(self) -> str:
        """The build for this PC's cards; the CPU's until they are known."""
        return self._choice.tag if self._choice is not None else CPU_TAG

    @property
    def why(self) -> str:
        """Why this build: the card, its capability and the driver."""
        if self._choice is not None:
            return self._choice.sentence
        return "The graphics cards of this PC are not known yet. The CPU build runs on every PC."

    @property
    def offered(self) -> tuple[str, ...]:
        """The builds to choose among: the CPU's, CUDA's, and those for other cards of this PC."""
        others = self._choice.offered if self._choice is not None else ()
        return tuple(one for one in FAMILIES if one in (*_ALWAYS_OFFERED, *others))

    def _on_inventory(self, inventory: Inventory) -> None:
        from gpu_studio.core.devices.pc_facts import recommended_build  # 10 ms

        choice = recommended_build(inventory)
        if choice != self._choice:
            self._choice = choice
            self.changed.emit()


class Builds(QObject):
    """Installs the builds that the user wants, one after the other, and hands them to the engine.

    The CPU's build comes first, because it is small: the engine works while the others come. A
    build that runs on a card takes over as soon as the engine has nothing to do.

    Attributes:
        family: the build in work, or the last one; "" before the first.
        progress: the last progress of its installer.
        wheels: the folder of wheels that is used in place of downloads; None for downloads.
        installed: the builds on the disk.
        recommended: the build for this PC's cards.
        engine: hands a build to the engine.
        is_pausing: whether the installer was asked to pause and has not answered yet.
        is_discarding: whether the rest of an installation that was given up is being removed.
        removing: the build that is being removed; "" if none is.
        repairing: the build whose engine ends before its repair begins; "" if none does.

    Signals:
        changed(): one of the attributes or results changed.
    """

    changed = Signal()

    def __init__(
        self,
        session: EngineSession,
        lab: EngineSession,
        sensors: Sensors,
        store: BuildStore,
        installer: BuildInstallerPort,
        parent: QObject | None = None,
        *,
        wheels: Path | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._installer = store, installer
        self._worker: Worker | None = None
        self._waiting: list[str] = []
        self._is_closed = False
        self._unremoved = ""
        self.is_pausing = self.is_discarding = False
        self.family = self.removing = self.repairing = ""
        self.progress = InstallProgress(InstallStage.WAITING)
        self.wheels = wheels
        self.installed = InstalledBuilds(store)
        self.engine = EngineHandover(session, lab, self)
        self._reload()
        self.engine.changed.connect(self.changed)
        self.recommended = RecommendedBuild(sensors, self)
        self.recommended.changed.connect(self.changed)

    @property
    def has_engine(self) -> bool:
        """Whether there is a build for the engine."""
        return bool(self.engine.best)

    @property
    def is_at_work(self) -> bool:
        """Whether an installer runs."""
        return self._worker is not None

    @property
    def can_give_up(self) -> bool:
        """Whether there is an installation of this window that came to a halt, not to its end."""
        is_halted = self.progress.stage in (InstallStage.PAUSED, InstallStage.FAILED)
        is_others = self.trouble is not None and self.trouble.kind is TroubleKind.IN_USE
        return is_halted and not (is_others or self._unremoved or self._is_busy)

    @property
    def trouble(self) -> Trouble | None:
        """Why the last installation failed; None if it did not."""
        return self.progress.trouble

    @property
    def needs_attention(self) -> bool:
        """Whether the user should hear of the builds on every page."""
        is_offered = bool(self.updates) and not self.has_declined
        return not self.has_engine or bool(self.installation or self._waiting) or is_offered

    @property
    def installation(self) -> Installation:
        """What the installation of an engine does."""
        if self.is_at_work:
            return "runs"
        is_over = self.progress.stage in (InstallStage.WAITING, InstallStage.READY)
        return "" if is_over else "stopped"

    @property
    def updates(self) -> tuple[BuildRecord, ...]:
        """The installed builds that are older than this program, and not coming yet."""
        return tuple(one for one in self.installed.older if one.family not in self.coming)

    @property
    def has_declined(self) -> bool:
        """Whether the user does not want these updates now, and can do without."""
        return self.has_engine and self._store.wanted().declined == self._store.torch_version

    def decline_updates(self) -> None:
        """Offer the updates on the engine's page only, until the next version."""
        self._write_wanted(declined=self._store.torch_version)
        self.changed.emit()

    @property
    def planned(self) -> tuple[str, ...]:
        """The builds that one press installs, the CPU's first: updates, or those for this PC."""
        if self.updates:
            return tuple(one.family for one in self.updates)
        both = dict.fromkeys((CPU_TAG, self.recommended.family))
        return tuple(one for one in both if not self.installed.has(one))

    @property
    def next_builds(self) -> tuple[str, ...]:
        """The builds that come after the one in work."""
        return tuple(self._waiting)

    @property
    def coming(self) -> tuple[str, ...]:
        """The builds that are being installed, wait for it, or wait for the present run's end."""
        at_work = (self.family,) if self.is_at_work else ()
        taking_over = (self.engine.taking_over,) if self.engine.taking_over else ()
        return (*at_work, *self._waiting, *taking_over)

    def can_change(self, family: str) -> bool:
        """Return whether a build can be repaired or removed now."""
        is_free = family != self.engine.in_use or self.engine.is_free
        return is_free and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        """Whether something is done to the builds, or is about to be."""
        is_changing = bool(self.removing or self.repairing)
        return self.is_at_work or self.is_discarding or is_changing

    def start(self) -> None:
        """Start the engine if there is a build for it, and continue an interrupted installation."""
        self._reload()
        self.engine.start()
        wanted = self._store.wanted()
        older = [one.family for one in self.installed.older]
        missing = [one for one in wanted.builds if not self.installed.has(one)]
        if self.wheels is None:
            missing = [one for one in missing if one not in older or self._store.is_begun(one)]
        elif not self.has_engine:
            missing = missing or [CPU_TAG]
        self._waiting = missing
        # A download that began with another version would begin again: that is asked first.
        is_other = self.wheels is None and not all(map(self._store.is_begun, missing))
        if missing and (wanted.is_paused or is_other):
            self.family = missing[0]
            self.progress = InstallProgress(InstallStage.PAUSED)
        self._next()
        self.changed.emit()

    def begin(self, *families: str) -> None:
        """Install builds, in this order."""
        at_work = self.family if self.is_at_work else ""
        self._waiting += [one for one in families if one not in (*self._waiting, at_work)]
        self._remember(is_paused=False)
        if not self.is_at_work:
            self.progress = InstallProgress(InstallStage.WAITING)
        self._next()
        self.changed.emit()

    def begin_from(self, folder: Path, *families: str) -> None:
        """Install builds from a folder of wheels: those that it has.

        If it has none of them, the best that it has; a folder without any is refused in words.
        """
        wanted = families or tuple(self._waiting) or (self.family or CPU_TAG,)
        found = self._installer.builds_in(folder)
        chosen = tuple(one for one in wanted if one in found) or found[-1:] or wanted[:1]
        self.wheels = folder
        self._waiting = [one for one in self._waiting if one in chosen]
        self.begin(*chosen)

    def download_instead(self) -> None:
        """Forget the folder of wheels."""
        self.wheels = None
        self.changed.emit()

    def pause(self) -> None:
        """Pause; the download continues there at `go_on`, also after a restart."""
        if self.is_at_work and not self.is_pausing:
            self.is_pausing = True
            self._remember(is_paused=True)
            self._installer.pause()
            self.changed.emit()

    def go_on(self) -> None:
        """Continue after a pause or a failure."""
        if self._unremoved:
            self.remove(self._unremoved)
        elif not self.is_at_work and self.family:
            if self.family not in self._waiting:
                self._waiting.insert(0, self.family)
            self._remember(is_paused=False)
            was_other = self.trouble is not None and self.trouble.kind is TroubleKind.IN_USE
            self.progress = InstallProgress(InstallStage.WAITING)
            if was_other:
                self._use_of_other_window()
            self._next()
            self.changed.emit()

    def give_up(self) -> None:
        """Give up the installations that came to a halt, and remove what they have downloaded.

        They stay wanted until all of it is removed: a window that is closed meanwhile offers it
        again.
        """
        if not self.can_give_up:
            return
        self.is_discarding = True
        given_up, self._waiting = tuple(self._waiting), []
        self.progress = InstallProgress(InstallStage.WAITING)
        self._clean("installation", self._store.discard, partial(self._on_discarded, given_up))
        self.changed.emit()

    def repair(self, family: str) -> None:
        """Look at every file of a build, and install again what is damaged."""
        if self.can_change(family):
            self.repairing = family
            self.changed.emit()
            self.engine.without(family, lambda: self._install(family, "repair"))

    def remove(self, family: str) -> None:
        """Remove a build; the engine takes another one, or ends."""
        if self.can_change(family):
            self.removing, self._unremoved = family, ""
            if self.trouble is not None:
                self.progress = InstallProgress(InstallStage.WAITING)
            self.changed.emit()
            self.engine.without(family, lambda: self._remove(family))

    def use(self, family: str) -> None:
        self._write_wanted(used=family)
        self._reload()
        self.engine.switch_now_if_idle()
        self.changed.emit()

    def close(self) -> None:
        """End the installer and wait for its end; its next start continues."""
        self._is_closed = True
        self.engine.close()
        self._installer.close()
        if self._worker is not None:
            self._worker.wait(limits.current.install_end_ms)

    def _remember(self, *, is_paused: bool) -> None:
        builds = dict.fromkeys((*self._store.wanted().builds, *self._waiting))
        if self.is_at_work:
            builds[self.family] = None
        ordered = tuple(one for one in FAMILIES if one in builds)
        self._write_wanted(builds=ordered, is_paused=is_paused)

    def _use_of_other_window(self) -> None:
        """Use what another window has installed meanwhile, instead of downloading it again."""
        self._reload()
        if self.installed.has(self.family):
            self.progress = InstallProgress(InstallStage.READY, fraction=1.0)
        self._waiting = [one for one in self._waiting if not self.installed.has(one)]
        self.engine.start()

    def _next(self) -> None:
        """Install the next build, unless something stands in the way."""
        at_rest = self.progress.stage in (InstallStage.PAUSED, InstallStage.FAILED)
        is_busy = self._worker is not None or self.is_discarding
        if is_busy or at_rest or not self._waiting or self._is_closed:
            return
        family = self._waiting.pop(0)
        if family == self.engine.in_use and self.wheels is None:
            self._install(family, "fetch")  # the engine works while a newer build comes
        else:
            self.engine.without(family, lambda: self._install(family, "install"))

    def _install(self, family: str, what: str) -> None:
        if self._is_closed:
            return
        self.family, self.is_pausing, self.repairing = family, False, ""
        self._waiting = [one for one in self._waiting if one != family]
        self._unremoved = ""
        self.progress = InstallProgress(InstallStage.PLANNING)
        installer, wheels = self._installer, self.wheels
        worker = Worker(lambda: installer.installing(family, wheels, what), self)
        worker.value_produced.connect(self._on_progress)
        worker.failure_raised.connect(self._on_failure)
        worker.finished.connect(self._on_finished)
        worker.finished.connect(worker.deleteLater)
        self._worker = worker
        worker.start()
        self.changed.emit()

    def _on_progress(self, progress: InstallProgress) -> None:
        self.progress = progress
        self.changed.emit()

    def _on_failure(self, failure: Failure) -> None:
        trouble = Trouble(
            kind=TroubleKind.INTERNAL,
            sentence="The installation could not be started.",
            next_step="Try again. The log says why.",
            detail=first_line(failure.message, 300),
        )
        self._on_progress(InstallProgress(InstallStage.FAILED, trouble=trouble))

    def _on_finished(self) -> None:
        self._worker, self.is_pausing = None, False
        if self._is_closed:
            return
        self._reload()
        if self.progress.stage is InstallStage.FETCHED:
            family = self.family
            self.engine.without(family, lambda: self._install(family, "install"))
            self.changed.emit()
            return
        if self.progress.stage in (InstallStage.PAUSED, InstallStage.FAILED):
            self._waiting.insert(0, self.family)
        if self.progress.stage is InstallStage.READY and not self._waiting:
            self.wheels = None  # a later build may not be in that folder
        self.engine.start()
        self._next()
        self.changed.emit()

    def _remove(self, family: str) -> None:
        wanted = self._store.wanted()
        families = tuple(one for one in wanted.builds if one != family)
        used = "" if wanted.used == family else wanted.used
        self._write_wanted(builds=families, used=used)
        self._waiting = [one for one in self._waiting if one != family]
        is_last, store = not self._waiting, self._store

        def remove() -> None:
            store.remove(family)
            if is_last:  # the downloads of an engine that failed its test
                with contextlib.suppress(TroubleError):
                    store.discard()

        self._clean(build_title(family), remove, partial(self._on_removed, family))

    def _clean(
        self, what: str, work: Callable[[], None], on_end: Callable[[Trouble | None], None]
    ) -> None:
        """Remove files in a thread; `on_end` gets what went wrong."""
        task = Task(partial(_trouble_of, what, work), self)
        task.succeeded.connect(on_end)
        task.finished.connect(self._on_cleaned)
        task.start()

    def _on_removed(self, family: str, trouble: Trouble | None) -> None:
        if trouble is not None:
            self._unremoved = family
            self.progress = InstallProgress(InstallStage.FAILED, trouble=trouble)

    def _on_discarded(self, given_up: tuple[str, ...], trouble: Trouble | None) -> None:
        if trouble is not None:
            self._waiting = list(dict.fromkeys((*given_up, *self._waiting)))
            self.progress = InstallProgress(InstallStage.FAILED, trouble=trouble)
            return
        self.wheels = None
        families = tuple(one for one in FAMILIES if self.installed.has(one) or one in self._waiting)
        self._write_wanted(builds=families, is_paused=False)

    def _on_cleaned(self) -> None:
        self.removing, self.is_discarding = "", False
        if not self._is_closed:
            self._reload()
            self.engine.start()
            self._next()
            self.changed.emit()

    def _write_wanted(self, **changes: Any) -> None:
        self._store.write_wanted(self._store.wanted()._replace(**changes))

    def _reload(self) -> None:
        self.installed.reload()
        absence = MADE_FOR_OTHER if self.installed.older else NOT_INSTALLED
        self.engine.set_best(self.installed.used, absence)


def _trouble_of(what: str, work: Callable[[], None]) -> Trouble | None:
    """Remove files; return what went wrong."""
    try:
        work()
    except TroubleError as error:
        return error.trouble
    except OSError as error:
        return Trouble(
            kind=TroubleKind.FILE_HELD,
            sentence=f"Not all files of the {what} could be removed.",
            next_step="Close the programs that use them, then try again.",
            detail=str(error),
        )
    return None
