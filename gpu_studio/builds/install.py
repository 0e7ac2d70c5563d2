"""Installs one build of PyTorch: plan, download, check, unpack, test, and record, in this order.

Everything that takes long can be stopped and continues at the next start: the plan and the wheels
stay in the folder of downloads, a half unpacked wheel has no RECORD, and the build's own record is
written last.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gpu_studio.builds.download import Downloader, StoppedError, disk_trouble
from gpu_studio.builds.plan import ChildLog, Planner, WheelPlan, kept_plan, last_words
from gpu_studio.builds.shelf import OWN_PYTHON, extended, require_short
from gpu_studio.builds.unpack import Unpacker, unpacked_bytes
from gpu_studio.core import limits, operating_system
from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.progress import DownloadPace, InstallProgress, InstallStage
from gpu_studio.core.builds.record import BuildRecord, parsed_json
from gpu_studio.core.builds.trouble import TroubleError
from gpu_studio.core.builds.words import unproven_sentence
from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import family_of
from gpu_studio.core.packages_folder import variables_for
from gpu_studio.core.user_file import write_atomically
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import own_platform_key
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from gpu_studio.builds.shelf import BuildShelf
    from gpu_studio.core.wheel_table import WheelTable

    OnProgress = Callable[[InstallProgress], None]
    Check = Callable[[str, Path, Path, Callable[[], bool]], "CheckedBuild"]

MODULE = "gpu_studio.engine.build_check"
_POLL_S = 0.1
_LONGEST_S = 300.0  # the first import on a slow disk, with a virus scanner
_PROGRESS_EVERY_S = 0.1
# The bar's shares of a download; a disk unpacks some ten times as fast as a home's line.
_DOWNLOADED, _UNPACKED = 0.8, 0.97
# Unpacked bytes for each byte of a wheel: 3.6 was measured for torch 2.13.0+cpu on Linux, 1.3 for
# its CUDA build with all packages; AMD's have 5.7 GB of 1.6 (setup_words.py). The exact number is
# known and checked after the download.
_GROWTH = {"cpu": 3.7}
_GROWTH_OF_ROCM = 3.6
_GROWTH_OF_OTHERS = 1.6


# The troubles of a server that may be gone for good.
_GONE = (
    troubles.TroubleKind.NO_NETWORK,
    troubles.TroubleKind.SERVER,
    troubles.TroubleKind.CHANGED_FILE,
    troubles.TroubleKind.INDEX,
)


class CheckedBuild(NamedTuple):
    """The outcome of a test.

    Attributes:
        torch_version: "2.13.0+cu126".
        runs_on_card: Whether a kernel ran on a graphics card.
        sentence: What ran, for people.
    """

    torch_version: str
    runs_on_card: bool
    sentence: str


def check_build(
    tag: str,
    folder: Path,
    log_path: Path,
    is_over: Callable[[], bool] = lambda: False,
    module: str = MODULE,
    longest_s: float = _LONGEST_S,
) -> CheckedBuild:
    """Import PyTorch from a folder and compute with it.

    Args:
        tag: The build.
        folder: Its packages.
        log_path: The file for the child's errors.
        is_over: Returns whether to stop.
        module: The child's module.
        longest_s: How long to wait.

    Raises:
        TroubleError: It does not run; a missing runtime of Windows has its own words.
        StoppedError: The user stopped.
    """
    log = ChildLog(log_path)
    child = ChildProcess(module, environment=variables_for(folder), log_path=log_path)
    try:
        waited_s = 0.0
        while child.wait(_POLL_S) is None:
            waited_s += _POLL_S
            if is_over():
                raise StoppedError
            if waited_s >= longest_s:
                detail = f"no answer within {longest_s:.0f} s"
                raise TroubleError(troubles.failed_check(tag, detail))
        line = next(child.lines(), b"")
    finally:
        child.kill()
        child.end(limits.current.child_end_s)
    try:
        answer: Any = parsed_json(line.decode("utf-8"))
        return CheckedBuild(
            str(answer["torch_version"]), bool(answer["runs_on_card"]), str(answer["sentence"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TroubleError(_trouble(tag, last_words(log.text()))) from error


def _trouble(tag: str, detail: str) -> troubles.Trouble:
    if family_of(detail) is Family.RUNTIME:
        return troubles.missing_runtime(detail)
    return troubles.failed_check(tag, detail or "its process ended without an answer")


class BuildInstaller:
    """Installs builds onto a shelf.

    Args:
        shelf: The shelf.
        on_progress: Takes the progress; the last one is one of `progress.ENDS`.
        is_over: Returns whether to stop.
        clock: Returns seconds that never go back.
        wait: Waits some seconds.
        table: The builds; the program's own if None.
        check: Tests an installed build.
    """

    def __init__(
        self,
        shelf: BuildShelf,
        on_progress: OnProgress,
        is_over: Callable[[], bool] = lambda: False,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        table: WheelTable | None = None,
        check: Check = check_build,
    ) -> None:
        self._shelf, self._on_progress, self._is_over = shelf, on_progress, is_over
        self._clock, self._wait, self._check = clock, wait, check
        self._table = table or load_table()
        self._pace = DownloadPace(clock)
        self._shown_s = -1.0
        self._last = InstallProgress(InstallStage.WAITING)
        self._downloader = Downloader(shelf.downloads, is_over, wait, self._on_broken)
        key = own_platform_key()
        self._planner = Planner(self._downloader, self._table, key, shelf.log_path, is_over)

    def install(self, family: str, wheels: Path | None = None) -> bool:
        """Install a build, or finish an interrupted installation; return whether it is ready.

        Args:
            family: One of `core.builds.record.FAMILIES`.
            wheels: A folder of wheels in place of a download.
        """
        return self._guarded(family, lambda: self._install(family, wheels))

    def fetch(self, family: str) -> bool:
        """Download a build and change nothing: the engine may use an older one meanwhile."""

        def work() -> None:
            self._fetch(family, None)
            self._enter(InstallStage.FETCHED)

        return self._guarded(family, work)

    def repair(self, family: str, wheels: Path | None = None) -> bool:
        """Look at every file of a build, and install again what is damaged or missing.

        A build whose files are whole and whose test passes needs no network.
        """

        def work() -> None:
            self._enter(InstallStage.CHECKING)
            unpacker = Unpacker(self._shelf.folder(family), self._is_over, self._wait)
            damaged = unpacker.damaged()
            for record in damaged:
                unpacker.forget(record)
            if damaged or unpacker.has_unlisted() or not self._is_sound(family):
                self._install(family, wheels)

        return self._guarded(family, work)

    def _is_sound(self, family: str) -> bool:
        """Return whether a build of whole files passes its test; then its repair is done."""
        record = self._shelf.record(family)
        if record is None or not self._shelf.is_loadable(record):
            return False
        try:
            checked = self._test(family)
        except TroubleError:  # a whole package may be missing, which no list of files tells
            return False
        self._shelf.write_record(record._replace(runs_on_card=checked.runs_on_card))
        self._enter(InstallStage.READY, fraction=1.0, result=record.note)
        return True

    def _guarded(self, family: str, work: Callable[[], None]) -> bool:
        """Do the work alone, and report its end."""
        try:
            with self._shelf.alone(family):
                work()
            return True
        except StoppedError:
            self._enter(InstallStage.PAUSED)
        except TroubleError as error:
            self._fail(error.trouble)
        except OSError as error:
            path = str(error.filename or self._shelf.root)
            self._fail(disk_trouble(error, path, None))
        return False

    def _fetch(self, family: str, wheels: Path | None) -> tuple[WheelPlan, list[Path]]:
        self._require_fit(family)
        self._enter(InstallStage.PLANNING)
        self._downloader.begin()
        plan = self._kept_plan(family) if wheels is None else None
        if plan is not None:
            try:
                return plan, self._downloaded(family, plan)
            except TroubleError as error:
                newer = self._plan_instead(family, plan, error.trouble.kind)
                if newer is None:
                    raise
                plan = newer
        else:
            plan = self._new_plan(family, wheels)
        return plan, self._downloaded(family, plan)

    def _downloaded(self, family: str, plan: WheelPlan) -> list[Path]:
        self._require_bytes(self._needed_bytes(family, plan))
        with self._naming_room(family, plan):
            return self._download(plan)

    def _install(self, family: str, wheels: Path | None) -> None:
        plan, paths = self._fetch(family, wheels)
        with self._naming_room(family, plan):
            self._unpack(family, plan, paths)
        size_bytes = self._shelf.size_bytes(family)
        record = BuildRecord(
            family, plan.torch_version, plan.python, size_bytes=size_bytes,
            made_by=os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
        )  # fmt: skip
        try:
            checked = self._test(family)
        except TroubleError:
            # On the list it can be repaired and removed; without a record it could not.
            with contextlib.suppress(OSError):
                self._shelf.write_record(record.broken("its test failed", size_bytes))
            raise
        note = " ".join(filter(None, (checked.sentence, unproven_sentence(plan.unproven))))
        self._shelf.write_record(
            record._replace(
                torch_version=checked.torch_version,
                runs_on_card=checked.runs_on_card,
                note=note,
            )
        )
        self._clear(family, plan)
        self._enter(InstallStage.READY, fraction=1.0, result=note)

    def _require_fit(self, family: str) -> None:
        unfit = troubles.unfit_pc(
            operating_system.system(), operating_system.machine(), is_64_bit=sys.maxsize > 2**32
        )
        if unfit is not None:
            raise TroubleError(unfit)
        require_short(self._shelf.folder(family), allows_long=_allows_long_paths())

    def _kept_plan(self, family: str) -> WheelPlan | None:
        """Return the plan of an interrupted installation; None if another one is needed now."""
        saved = kept_plan(self._shelf.plan_path(family))
        wanted = (self._table.version_of(family), OWN_PYTHON)
        if saved is None or (saved.torch_version, saved.python) != wanted:
            return None
        local = (file.local_path for file in saved.files)
        return saved if all(one is None or one.exists() for one in local) else None

    def _new_plan(self, family: str, wheels: Path | None = None) -> WheelPlan:
        if wheels is not None:
            return self._planner.from_folder(family, wheels)
        plan = self._planner.from_index(family)
        write_atomically(self._shelf.plan_path(family), msgspec.json.encode(plan))
        return plan

    def _plan_instead(
        self, family: str, plan: WheelPlan, kind: troubles.TroubleKind
    ) -> WheelPlan | None:
        """Return a plan with other addresses, if a kept one's server is gone and there are any."""
        if kind not in _GONE:
            return None
        self._enter(InstallStage.PLANNING)
        try:
            newer = self._new_plan(family)
        except TroubleError:  # it is the network
            return None
        return newer if newer.files != plan.files else None

    def _needed_bytes(self, family: str, plan: WheelPlan) -> int:
        """Return how much the rest of an installation adds to the disk."""
        saved_bytes = sum(self._downloader.kept_bytes(file) for file in plan.files)
        others = _GROWTH_OF_ROCM if family.startswith("rocm") else _GROWTH_OF_OTHERS
        growth = _GROWTH.get(family, others)
        needed = max(0, plan.total_bytes - saved_bytes) + round(growth * plan.total_bytes)
        return needed - self._shelf.size_bytes(family)

    @contextlib.contextmanager
    def _naming_room(self, family: str, plan: WheelPlan) -> Iterator[None]:
        """If the disk fills up, name the room for all that is left: not only for one file."""
        try:
            yield
        except TroubleError as error:
            if error.trouble.kind is not troubles.TroubleKind.DISK_FULL:
                raise
            missing = self._needed_bytes(family, plan) - self._shelf.free_bytes()
            root = str(self._shelf.root)
            trouble = troubles.disk_full(
                root, missing if missing > 0 else None, error.trouble.detail
            )
            raise TroubleError(trouble) from error

    def _require_bytes(self, needed: int) -> None:
        free = self._shelf.free_bytes()
        if needed > free:
            text = f"{troubles.format_size(needed)} needed, {troubles.format_size(free)} free"
            root = str(self._shelf.root)
            raise TroubleError(troubles.disk_full(root, needed - free, f"{root}: {text}"))

    def _download(self, plan: WheelPlan) -> list[Path]:
        total, before, paths = plan.total_bytes, 0, []
        for file in plan.files:

            def on_bytes(done: int, name: str = file.name, base: int = before) -> None:
                self._on_bytes(InstallStage.DOWNLOADING, base + done, total, name)

            paths.append(self._downloader.fetch(file, on_bytes))
            before += file.size_bytes or paths[-1].stat().st_size
        return paths

    def _unpack(self, family: str, plan: WheelPlan, paths: Sequence[Path]) -> None:
        folder = self._shelf.folder(family)
        self._shelf.withdraw(family)
        if not _holds_only(folder, plan):
            self._enter(InstallStage.INSTALLING, fraction=_DOWNLOADED)
            self._shelf.remove(family)
        sizes = [unpacked_bytes(path) for path in paths]
        self._require_bytes(sum(sizes) - self._shelf.size_bytes(family))
        unpacker = Unpacker(folder, self._is_over, self._wait)
        self._pace.restart()
        before = 0
        for path, size in zip(paths, sizes, strict=True):

            def on_bytes(done: int, name: str = path.name, base: int = before) -> None:
                self._on_bytes(InstallStage.INSTALLING, base + done, sum(sizes), name)

            unpacker.unpack(path, on_bytes)
            before += size
        unpacker.require_all()

    def _test(self, family: str) -> CheckedBuild:
        self._enter(InstallStage.TESTING, fraction=_UNPACKED)
        folder, log = self._shelf.folder(family), self._shelf.log_path
        return self._check(family, folder, log, self._is_over)

    def _clear(self, family: str, plan: WheelPlan) -> None:
        """Remove the wheels: what they had is in the folder now."""
        with contextlib.suppress(OSError):
            self._shelf.plan_path(family).unlink()
        others = [
            other.name
            for path in self._shelf.plan_paths
            if (saved := kept_plan(path)) is not None
            for other in saved.files
        ]
        for file in plan.files:
            place = file.local_path
            is_ours = place is None or place.parent == self._shelf.downloads.resolve()
            if is_ours and file.name not in others:
                with contextlib.suppress(OSError):
                    (self._shelf.downloads / file.name).unlink()
        shutil.rmtree(self._shelf.downloads / "plan", ignore_errors=True)

    def _on_bytes(self, stage: InstallStage, done: int, total: int, subject: str) -> None:
        """Report bytes, but not more often than a person can see."""
        now_s = self._clock()
        is_due = now_s - self._shown_s >= _PROGRESS_EVERY_S or done >= total
        if stage is self._last.stage and subject == self._last.subject and not is_due:
            return
        self._pace.note(done)
        share = min(1.0, done / total) if total else 0.0
        low, high = (0.0, _DOWNLOADED)
        if stage is InstallStage.INSTALLING:
            low, high = _DOWNLOADED, _UNPACKED
        self._send(
            InstallProgress(
                stage=stage,
                done_bytes=done,
                total_bytes=total,
                fraction=low + share * (high - low),
                left_s=self._pace.left_s(total),
                subject=subject,
            )
        )

    def _on_broken(self) -> None:
        self._pace.restart()
        self._send(msgspec.structs.replace(self._last, stage=InstallStage.RESUMING, left_s=None))

    def _enter(
        self, stage: InstallStage, *, fraction: float | None = None, result: str = ""
    ) -> None:
        last = self._last
        share = last.fraction if fraction is None else fraction
        # Bytes are those of a stage; a pause is the one that continues.
        is_pause = stage is InstallStage.PAUSED
        done, total = (last.done_bytes, last.total_bytes) if is_pause else (0, 0)
        self._send(InstallProgress(stage, done, total, share, None, "", None, result))

    def _fail(self, trouble: troubles.Trouble) -> None:
        failed = InstallStage.FAILED
        self._send(msgspec.structs.replace(self._last, stage=failed, left_s=None, trouble=trouble))

    def _send(self, progress: InstallProgress) -> None:
        self._last, self._shown_s = progress, self._clock()
        self._on_progress(progress)


def _holds_only(folder: Path, plan: WheelPlan) -> bool:
    """Return whether a folder has nothing but whole or half unpacked wheels of a plan."""
    planned = {"-".join(file.name.split("-")[:2]).lower() for file in plan.files}
    with contextlib.suppress(OSError):
        for name in os.listdir(extended(folder)):
            is_wheel = name.endswith(".dist-info")
            if is_wheel and name.removesuffix(".dist-info").lower() not in planned:
                return False
    return True


def _allows_long_paths() -> bool:
    """Return whether long paths are turned on in this Windows."""
    try:
        winreg: Any = importlib.import_module("winreg")
    except ImportError:  # not Windows
        return True
    place = r"SYSTEM\CurrentControlSet\Control\FileSystem"
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])
    except OSError:
        return False
