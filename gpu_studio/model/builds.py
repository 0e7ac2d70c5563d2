"""The builds of PyTorch that the window installs for itself, and the one that the engine uses."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.record import FAMILIES, BuildRecord, Wanted
from gpu_studio.core.builds.trouble import Trouble, TroubleError, TroubleKind
from gpu_studio.core.builds.words import build_title
from gpu_studio.core.failure import first_line
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.task import Task
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.wheels import WheelChoice
    from gpu_studio.model.build_ports import BuildInstallerPort, BuildStore
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors

CPU = "cpu"
# The runs of a plan follow each other within milliseconds: none of them gets another PyTorch.
_SETTLE_MS = 1500
_LONGEST_END_MS = 5000
_AT_REST = (EngineState.READY, EngineState.FAILED, EngineState.ABSENT)
NOT_INSTALLED = "The engine is not installed yet: see the top of this window."
Installation = Literal["", "runs", "stopped"]
"""What the installation of the engine does; empty before it began and after its end."""


class Builds(QObject):
    """Installs the builds that the user wants, one after the other, and hands them to the engine.

    The CPU's build comes first, because it is small: the engine works while the others come. A
    build that runs on a card takes over as soon as the engine has nothing to do.

    Attributes:
        family: the build in work, or the last one; "" before the first.
        progress: what its installer said last.
        in_use: the build of the present engine; "" if there is no engine.
        wheels: the folder of wheels that is used in place of downloads; None for downloads.
        free_bytes: the free space of the disk, as of the last look.
        unfinished_bytes: the size of what unfinished installations have left, as of the last look.

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
        self._session, self._lab, self._sensors = session, lab, sensors
        self._store, self._installer = store, installer
        self._worker: Worker | None = None
        self._waiting: list[str] = []
        self._is_closed = self._is_pausing = False
        self._is_discarding = False
        self._removing = self._repairing = self._unremoved = ""
        self._is_at_rest = True
        self._postponed: Callable[[], None] | None = None
        self._choice: WheelChoice | None = None
        self.records, self._used = store.records(), store.used()
        self.family, self.in_use = "", ""
        self.progress = InstallProgress(InstallStage.WAITING)
        self.wheels = wheels
        self.free_bytes = self.unfinished_bytes = 0
        self._settled = QTimer(self)
        self._settled.setSingleShot(True)
        self._settled.setInterval(_SETTLE_MS)
        self._settled.timeout.connect(self._take_over)
        session.set_absence("" if self.has_engine else NOT_INSTALLED)
        session.state_changed.connect(self._follow_engine)
        sensors.inventory_changed.connect(self._look_at_cards)

    @property
    def has_engine(self) -> bool:
        """Whether there is a build for the engine."""
        return bool(self._used)

    @property
    def is_at_work(self) -> bool:
        """Whether an installer runs."""
        return self._worker is not None

    @property
    def is_pausing(self) -> bool:
        """Whether the installer was asked to pause and has not answered yet."""
        return self._is_pausing

    @property
    def is_discarding(self) -> bool:
        """Whether the rest of an installation that was given up is being removed."""
        return self._is_discarding

    @property
    def can_give_up(self) -> bool:
        """Whether there is an installation of this window that came to a halt, not to its end."""
        is_halted = self.progress.stage in (InstallStage.PAUSED, InstallStage.FAILED)
        is_others = self.trouble is not None and self.trouble.kind is TroubleKind.IN_USE
        return is_halted and not (is_others or self._unremoved or self._is_busy)

    @property
    def removing(self) -> str:
        """The build that is being removed; "" if none is."""
        return self._removing

    @property
    def repairing(self) -> str:
        """The build whose engine ends before its repair begins; "" if none does."""
        return self._repairing

    @property
    def trouble(self) -> Trouble | None:
        """Why the last installation failed; None if it did not."""
        return self.progress.trouble

    @property
    def has_news(self) -> bool:
        """Whether the user should hear of the builds on every page."""
        return not self.has_engine or bool(self.installation) or bool(self._waiting)

    @property
    def installation(self) -> Installation:
        """What the installation of an engine does."""
        if self.is_at_work:
            return "runs"
        is_over = self.progress.stage in (InstallStage.WAITING, InstallStage.READY)
        return "" if is_over else "stopped"

    @property
    def recommended(self) -> str:
        """The build for this PC's cards; the CPU's until they are known."""
        return self._choice.tag if self._choice is not None else CPU

    @property
    def why(self) -> str:
        """Why this build: the card, its capability and the driver."""
        if self._choice is not None:
            return self._choice.sentence
        return "The graphics cards of this PC are not known yet. The CPU engine runs on every PC."

    @property
    def planned(self) -> tuple[str, ...]:
        """The builds that one press installs, the CPU's first."""
        both = dict.fromkeys((CPU, self.recommended))
        return tuple(one for one in both if not self.has(one))

    @property
    def next_builds(self) -> tuple[str, ...]:
        """The builds that come after the one in work."""
        return tuple(self._waiting)

    @property
    def coming(self) -> tuple[str, ...]:
        """The builds that are being installed, wait for it, or wait for the present run's end."""
        at_work = (self.family,) if self.is_at_work else ()
        return (*at_work, *self._waiting, *((self.taking_over,) if self.taking_over else ()))

    @property
    def taking_over(self) -> str:
        """The build that waits for the engine to have nothing to do; "" if none does."""
        return self._used if self.in_use and self._used != self.in_use else ""

    def outdated(self, record: BuildRecord) -> str:
        """Return why a build is older than this program; "" if it is not."""
        return self._store.outdated(record)

    def downloads_bytes(self) -> int:
        """Return the size of the downloads that are not installed."""
        return self._store.downloads_bytes()

    def can_change(self, family: str) -> bool:
        """Return whether a build can be repaired or removed now."""
        is_free = family != self.in_use or self._is_engine_free
        return is_free and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        """Whether something is done to the builds, or is about to be."""
        is_changing = bool(self._removing or self._repairing)
        return self.is_at_work or self._is_discarding or is_changing

    @property
    def _is_engine_free(self) -> bool:
        """Whether no engine works: not this one, not the lab's, and none that it made room for."""
        made_room = self._session.is_released and bool(self.in_use)
        at_rest = all(one.state in _AT_REST for one in (self._session, self._lab))
        return at_rest and not made_room

    def start(self) -> None:
        """Start the engine if there is a build for it, and continue an interrupted installation."""
        self._look()
        self._start_engine()
        wanted = self._store.wanted()
        missing = [one for one in wanted.builds if not self.has(one)]
        if self.wheels is not None and not self.has_engine:
            missing = missing or [CPU]
        self._waiting = missing
        if missing and wanted.is_paused:
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
        wanted = families or tuple(self._waiting) or (self.family or CPU,)
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
        if self.is_at_work and not self._is_pausing:
            self._is_pausing = True
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
                self._take_from_other_window()
            self._next()
            self.changed.emit()

    def give_up(self) -> None:
        """Give up the installations that came to a halt, and remove what they have downloaded.

        They stay wanted until all of it is removed: a window that is closed meanwhile offers it
        again.
        """
        if not self.can_give_up:
            return
        self._is_discarding = True
        given_up, self._waiting = tuple(self._waiting), []
        self.progress = InstallProgress(InstallStage.WAITING)
        task = Task(self._discarded, self)
        task.succeeded.connect(lambda trouble: self._finish_discarding(given_up, trouble))
        task.finished.connect(self._go_on_after_discarding)
        task.start()
        self.changed.emit()

    def repair(self, family: str) -> None:
        """Look at every file of a build, and install again what is damaged."""
        if self.can_change(family):
            self._repairing = family
            self.changed.emit()
            self._without_engine(family, lambda: self._install(family, "repair"))

    def remove(self, family: str) -> None:
        """Remove a build; the engine takes another one, or ends."""
        if self.can_change(family):
            self._removing, self._unremoved = family, ""
            if self.trouble is not None:
                self.progress = InstallProgress(InstallStage.WAITING)
            self.changed.emit()
            self._without_engine(family, lambda: self._remove(family))

    def use(self, family: str) -> None:
        """Use this build from now on."""
        self._store.write_wanted(self._store.wanted()._replace(used=family))
        self._look()
        self._settled.start(0)
        self.changed.emit()

    def close(self) -> None:
        """End the installer and wait for its end; its next start continues."""
        self._is_closed = True
        self._settled.stop()
        self._installer.close()
        if self._worker is not None:
            self._worker.wait(_LONGEST_END_MS)

    def has(self, family: str) -> bool:
        """Return whether a build is installed, and as new as this program."""
        return any(
            one.family == family and one.is_ready and not self._store.outdated(one)
            for one in self.records
        )

    def _remember(self, *, is_paused: bool) -> None:
        builds = dict.fromkeys((*self._store.wanted().builds, *self._waiting))
        if self.is_at_work:
            builds[self.family] = None
        ordered = tuple(one for one in FAMILIES if one in builds)
        used = self._store.wanted().used
        self._store.write_wanted(Wanted(ordered, used, is_paused))

    def _take_from_other_window(self) -> None:
        """Use what another window has installed meanwhile, instead of downloading it again."""
        self._look()
        if self.has(self.family):
            self.progress = InstallProgress(InstallStage.READY, fraction=1.0)
        self._waiting = [one for one in self._waiting if not self.has(one)]
        self._start_engine()

    def _next(self) -> None:
        """Install the next build, unless something stands in the way."""
        at_rest = self.progress.stage in (InstallStage.PAUSED, InstallStage.FAILED)
        is_busy = self._worker is not None or self._is_discarding
        if is_busy or at_rest or not self._waiting or self._is_closed:
            return
        family = self._waiting.pop(0)
        if family == self.in_use and self.wheels is None:
            self._install(family, "fetch")  # the engine works while a newer build comes
        else:
            self._without_engine(family, lambda: self._install(family, "install"))

    def _without_engine(self, family: str, work: Callable[[], None]) -> None:
        """Do something to a build that no engine uses meanwhile."""
        if family != self.in_use:
            work()
            return
        if not self._is_engine_free:
            self._settled.start()
            self._postponed = lambda: self._without_engine(family, work)
            return
        self._lab.end()
        self.in_use = ""
        ending = self._session.release()
        if ending is None:  # it has none
            work()
        else:
            ending.finished.connect(work)

    def _install(self, family: str, what: str) -> None:
        if self._is_closed:
            return
        self.family, self._is_pausing, self._repairing = family, False, ""
        self._waiting = [one for one in self._waiting if one != family]
        self._unremoved = ""
        self.progress = InstallProgress(InstallStage.PLANNING)
        installer, wheels = self._installer, self.wheels
        worker = Worker(lambda: installer.installing(family, wheels, what), self)
        worker.value_produced.connect(self._take)
        worker.failure_raised.connect(self._fail)
        worker.finished.connect(self._finish)
        worker.finished.connect(worker.deleteLater)
        self._worker = worker
        worker.start()
        self.changed.emit()

    def _take(self, told: InstallProgress) -> None:
        self.progress = told
        self.changed.emit()

    def _fail(self, failure: Failure) -> None:
        trouble = Trouble(
            TroubleKind.INTERNAL,
            "The installation could not be started.",
            "Try again. The log says why.",
            first_line(failure.message, 300),
        )
        self._take(InstallProgress(InstallStage.FAILED, trouble=trouble))

    def _finish(self) -> None:
        self._worker, self._is_pausing = None, False
        if self._is_closed:
            return
        self._look()
        if self.progress.stage is InstallStage.FETCHED:
            family = self.family
            self._without_engine(family, lambda: self._install(family, "install"))
            self.changed.emit()
            return
        if self.progress.stage in (InstallStage.PAUSED, InstallStage.FAILED):
            self._waiting.insert(0, self.family)
        if self.progress.stage is InstallStage.READY and not self._waiting:
            self.wheels = None  # a later build may not be in that folder
        self._start_engine()
        self._next()
        self.changed.emit()

    def _remove(self, family: str) -> None:
        wanted = self._store.wanted()
        kept = tuple(one for one in wanted.builds if one != family)
        used = "" if wanted.used == family else wanted.used
        self._store.write_wanted(Wanted(kept, used, wanted.is_paused))
        self._waiting = [one for one in self._waiting if one != family]
        is_last = not self._waiting
        task = Task(lambda: self._removed(family, with_downloads=is_last), self)
        task.failed.connect(self._tell_removal)
        task.finished.connect(self._finish_removal)
        task.start()

    def _removed(self, family: str, *, with_downloads: bool) -> None:
        self._store.remove(family)
        if with_downloads:  # those of an engine that failed its test
            with contextlib.suppress(TroubleError):
                self._store.discard()

    def _tell_removal(self, failure: Failure) -> None:
        trouble = Trouble(
            TroubleKind.FILE_HELD,
            f"Not all files of the {build_title(self._removing)} could be removed.",
            "Close the programs that use it, then try again.",
            failure.message,
        )
        self._unremoved = self._removing
        self.progress = InstallProgress(InstallStage.FAILED, trouble=trouble)

    def _discarded(self) -> Trouble | None:
        """Remove what was downloaded; return what went wrong."""
        try:
            self._store.discard()
        except TroubleError as error:
            return error.trouble
        except OSError as error:
            return Trouble(
                TroubleKind.FILE_HELD,
                "Not all files of the installation could be removed.",
                "Close the programs that use them, then give up once more, or try again.",
                str(error),
            )
        return None

    def _finish_discarding(self, given_up: tuple[str, ...], trouble: Trouble | None) -> None:
        if trouble is not None:
            self._waiting = list(dict.fromkeys((*given_up, *self._waiting)))
            self.progress = InstallProgress(InstallStage.FAILED, trouble=trouble)
            return
        self.wheels = None
        kept = tuple(one for one in FAMILIES if self.has(one) or one in self._waiting)
        self._store.write_wanted(Wanted(kept, self._store.wanted().used))

    def _go_on_after_discarding(self) -> None:
        self._is_discarding = False
        if not self._is_closed:
            self._look()
            self._next()
            self.changed.emit()

    def _finish_removal(self) -> None:
        self._removing = ""
        if self._is_closed:
            return
        self._look()
        self._start_engine()
        self.changed.emit()

    def _start_engine(self) -> None:
        """Start the engine with the best build, or let it take over from another one."""
        used = self._used
        self._session.set_absence("" if used else NOT_INSTALLED)
        if not used or used == self.in_use:
            return
        if not self.in_use:
            self.in_use = used
            self._session.restart()
        else:
            self._settled.start()

    def _take_over(self) -> None:
        used = self._used
        if self._is_closed:
            return
        if self._postponed is not None:
            postponed, self._postponed = self._postponed, None
            postponed()
            return
        if not used or used == self.in_use:
            return
        is_idle = self._session.is_free or self._session.state is EngineState.FAILED
        if not is_idle or not self._is_engine_free:
            self._settled.start()  # a check or an experiment may take minutes
            return
        self._lab.end()
        self.in_use = used
        self._session.restart()
        self.changed.emit()

    def _follow_engine(self, state: EngineState) -> None:
        if state is EngineState.STARTING and self._used:
            self.in_use = self._used  # each new engine takes the best build of its moment
        if (self.taking_over or self._postponed) and state in _AT_REST:
            self._settled.start()
        if (is_at_rest := state in _AT_REST) is not self._is_at_rest:
            self._is_at_rest = is_at_rest
            self.changed.emit()

    def _look(self) -> None:
        """Read the disk: what is asked ten times a second is kept."""
        self.records, self._used = self._store.records(), self._store.used()
        self.free_bytes = self._store.free_bytes()
        self.unfinished_bytes = self._store.unfinished_bytes()

    def _look_at_cards(self, inventory: Inventory) -> None:
        from gpu_studio.core.devices.pc_facts import recommended_build

        choice = recommended_build(inventory)
        if choice != self._choice:
            self._choice = choice
            self.changed.emit()
