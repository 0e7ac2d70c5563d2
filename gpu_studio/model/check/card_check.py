"""The check of a card in the window: its choices, the check that runs, and the shown record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.check.check_folder import FOLDER_NAME, STATE_EVERY_S, CheckFolder
from gpu_studio.core.check.check_record import read_record
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_verdict import interruption_sentence
from gpu_studio.core.check.stages import NORMAL_MINUTES, stages_for
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.messages.check_messages import (
    CheckFindingMade,
    CheckStageFinished,
)
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.program_version import program_title
from gpu_studio.core.units import local_now
from gpu_studio.model.awake_timer import AwakeTimer, PauseTimer
from gpu_studio.model.engine_session import EngineSession, EngineState
from gpu_studio.model.file_reading import FileReading, opening
from gpu_studio.model.pages import CHECK
from gpu_studio.model.run_queue import QueueStep, RunQueue, WorkState
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.check.check_folder import CutOffCheck
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.check_messages import PlantKind
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.headline import Headline
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.studio import Studio

_STOP_PATIENCE_MS = 10_000  # a step of a check takes a second at most, on a slow card some more
_CUT_OFF = "The results so far are kept."
_STARTING = "Wait until PyTorch has started."
_OTHER_CHECK = "Another check is running on this PC: wait for its end, or stop it."
_OTHER_WORK = "Wait until the other work has ended: it would disturb the check."
_OPEN_LATER = "A check is running: open the record after its end, or stop the check."


class _Rounds:
    """A plan of the rounds of a check, which knows itself whether it goes on."""

    def __init__(self, run: CheckRun) -> None:
        self._run = run

    def next_step(self, runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        request = self._run.next_request()
        return QueueStep(request) if request is not None else None


class CardCheck(QObject):
    """Runs one check at a time, and shows one record: of this check, or of a file.

    While a card is checked, the program's own engine is released: its context would use memory of
    the card, and its work would disturb the check. Files are read and written in a thread.

    Signals:
        choices_changed(): another device, length or fault is chosen or can be.
        check_changed(): the check began, progressed or ended, or another record is shown.
        notified(Notice): a file could not be read or written.

    Attributes:
        minutes: the chosen length.
        plant: the fault that the next check makes on purpose.
        phase: what the check does.
        run: the check that runs, or ran last in this window; None if a record is shown instead.
        record: the shown record: of the check that is over, or of a file; None while a check runs.
        kept: the records of this PC, the last one first.
    """

    choices_changed = Signal()
    check_changed = Signal()
    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.phase = WorkState.IDLE
        self._identity = ""
        self.minutes = NORMAL_MINUTES
        self.plant: PlantKind | None = None
        self.run: CheckRun | None = None
        self.record: CheckRecord | None = None
        self.kept: tuple[CheckRecord, ...] = ()
        self._cut_off: tuple[CutOffCheck, ...] = ()
        self._interruption: Headline | None = None
        self._checked_pc = studio.pcs.here
        self._session: EngineSession | None = None
        data = studio.data_folder
        self._folder = CheckFolder(data / FOLDER_NAME if data is not None else None, studio.boot)
        self._files = TaskQueue(self)
        self._files.failed.connect(self._on_failed)
        self._path = Path()
        self._reading = FileReading(self)  # a drive that hangs must not hold what is kept
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self._on_opened)
        self._reading.failed.connect(self._on_failed)
        self._queue = RunQueue(self)
        self._queue.step_begun.connect(self._expect_event)
        self._queue.event_received.connect(self._on_event)
        self._queue.finished.connect(self._end)
        self._silence = AwakeTimer(self)
        self._silence.ended.connect(self._give_up)
        self._pauses = PauseTimer(self)
        self._pauses.resumed.connect(self._begin_anew)
        self._keeping = QTimer(self)
        self._keeping.setInterval(round(1000 * STATE_EVERY_S))
        self._keeping.timeout.connect(self._keep_state)
        for changed in (
            studio.board.changed, studio.session.state_changed, studio.lab.state_changed,
            studio.pcs.session_changed,
        ):  # fmt: skip
            changed.connect(self.choices_changed)
        studio.pcs.changed.connect(self._on_pcs_changed)
        studio.closing.connect(self.close)
        self._find_kept()

    # ── choices ──────────────────────────────────────────────────────────────────────────────

    @property
    def devices(self) -> tuple[DeviceRow, ...]:
        """The devices that can be checked, cards first."""
        board = self._studio.board
        return (*board.cards, *board.cpus)

    @property
    def device(self) -> DeviceRow:
        """The chosen device; the first card here that PyTorch can use until you choose."""
        devices = self.devices
        chosen = (one for one in devices if one.identity == self._identity)
        here = (one for one in devices if not one.pc)
        usable = (one for one in here if one.obstacle in (None, Obstacle.NO_ENGINE))
        return next(chosen, next(usable, self._studio.board.cpu))

    @property
    def pc(self) -> Pc:
        """The PC of the chosen device."""
        return self._studio.pcs.of(self.device.identity)

    @property
    def reason(self) -> str:
        """Why no check can start now; empty if one can."""
        session = self.pc.session
        if session.description is None:
            return session.absence or _STARTING
        if self.device.obstacle is not None:
            return self.device.reason
        return "" if _is_free(self.pc) else _OTHER_WORK

    @property
    def is_barred(self) -> bool:
        """Whether the chosen device cannot be checked until something is done about it."""
        is_ready = self.pc.session.description is not None
        return is_ready and self.device.obstacle not in (None, Obstacle.NO_ENGINE)

    @property
    def can_run(self) -> bool:
        """Whether a check can start."""
        return not self.phase.is_busy and not self.reason

    @property
    def cut_off(self) -> CutOffCheck | None:
        """The last check that was cut off, and that you can continue or keep as a result."""
        return self._cut_off[0] if self._cut_off and not self.phase.is_busy else None

    @property
    def can_resume(self) -> bool:
        """Whether the check that was cut off ended recently, and its device is free."""
        if self.cut_off is None or not self.cut_off.can_continue:
            return False
        address = self.cut_off.state.plan.device
        pc = self._studio.pcs.of(address)
        is_there = any(one.address == address for one in self.devices)
        return is_there and pc.session.description is not None and _is_free(pc)

    def choose_device(self, identity: str) -> None:
        """Choose what is checked."""
        self._identity = identity
        self.choices_changed.emit()

    def choose_minutes(self, minutes: int) -> None:
        """Choose the length of the check."""
        self.minutes = minutes
        self.choices_changed.emit()

    def choose_plant(self, plant: PlantKind | None) -> None:
        """Choose a fault that the next check makes on purpose, or none."""
        self.plant = plant
        self.choices_changed.emit()

    # ── what a person does ───────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start the chosen check; does nothing while one runs.

        A check with a fault made on purpose is not kept: it is no result of the card.
        """
        address = self.device.address
        if not self.can_run or address is None:
            return
        self._identity = self.device.identity  # while its engine is released, no card is usable
        stages = stages_for(self.minutes)
        plan = CheckPlan(device=address, minutes=self.minutes, stages=stages, plant=self.plant)
        self._begin(CheckRun(plan, local_now(), program=program_title()))

    def resume(self) -> None:
        """Continue the check that was cut off, after its last finished stage."""
        cut_off = self.cut_off
        if cut_off is None or not self.can_resume:
            return
        self._drop_first()
        self._identity = self._studio.board.identity_of(cut_off.state.plan.device)
        self._begin(CheckRun.resumed(cut_off.state, cut_off.interruption, program_title()))

    def conclude(self) -> None:
        """Keep the check that was cut off as a result."""
        cut_off = self.cut_off
        if cut_off is None:
            return
        self._drop_first()
        self.run = CheckRun.concluded(cut_off.state, cut_off.interruption, program_title())
        self._keep_result(self.run)
        self._show_record(self.run.record())

    def stop(self) -> None:
        """Stop the check; the results so far are kept."""
        if self.phase is WorkState.RUNNING and self.run is not None:
            self.phase = WorkState.STOPPING
            self.run.stop()
            if self._session is not None:
                self._session.stop()
            self.check_changed.emit()

    def open_file(self, path: Path) -> None:
        """Show the record in a picture or a JSON file; not while a check runs."""
        if self.phase.is_busy:
            self._fail(_OPEN_LATER)
            return
        self._path = path
        self._reading.read(lambda is_over: read_record(path, is_over))

    def show_record(self, place: int) -> None:
        """Show a kept record by its place in `kept`."""
        if not self.phase.is_busy and 0 <= place < len(self.kept):
            self.run = None
            self._show_record(self.kept[place])

    def close(self) -> None:
        """End the engine and a running check.

        Your closing of the window stops the check, as its Stop button does. Only a check that the
        system ends can be continued at the next start.
        """
        self._keeping.stop()
        run = self.run
        if self.phase.is_busy and run is not None:
            if self._studio.is_ended_by_system and not run.is_stopped:
                self._keep_state()
            else:
                if not run.is_over:
                    run.stop()
                self._keep_result(run)
        self._silence.stop()
        if self._session is not None:
            self._session.close()
        self._reading.close()
        self._files.close()
        self._folder.close()

    # ── the check that runs ──────────────────────────────────────────────────────────────────

    def _begin(self, run: CheckRun) -> None:
        self.notified.emit(Notice())  # what became of a file of the check before
        self.run, self.record = run, None
        self._checked_pc = self._studio.pcs.of(run.plan.device)
        self.phase = WorkState.RUNNING
        self._files.add(self._folder.claim, self._on_claimed, keeps=False)
        self._emit_all()

    def _on_claimed(self, is_alone: bool) -> None:
        """Go on if no other program checks: two checks would disturb each other."""
        run = self.run
        if run is None or not self.phase.is_busy:
            self._files.add(self._folder.release)
            return
        if not is_alone:
            self.run, self.phase = None, WorkState.IDLE
            self._fail(_OTHER_CHECK)
            self._emit_all()
            return
        self._keep_state()
        self._keeping.start()
        ending = None if is_cpu(run.plan.device) else self._checked_pc.session.release()
        if ending is None:
            self._run_rounds()
            return
        if not self._checked_pc.name:  # work on the other PCs goes on
            self._studio.headlines.notify_check(self.device.label)
        ending.finished.connect(self._run_rounds)

    def _run_rounds(self) -> None:
        run, pc = self.run, self._checked_pc
        if run is None or not self.phase.is_busy:
            return
        if self._session is not None:  # it ended with the check before
            self._session.close()
            self._session.deleteLater()
        # An engine that does nothing else: a bad card may hang or end it, which is the result.
        self._session = EngineSession(
            pc.lab_factory, self, environment=pc.session.environment,
            describes=False, stop_patience_ms=_STOP_PATIENCE_MS, leaves_hung=True,
        )  # fmt: skip
        self._session.start()
        self._pauses.start()
        self._studio.wakefulness.need(CHECK, needed=True)
        self._queue.start(_Rounds(run), self._session)
        if not self._queue.state.is_busy:  # it was stopped before its first round
            self._end()

    def _on_event(self, event: Event) -> None:
        if self.run is None:
            return
        self._pauses.look()
        self.run.apply(event)
        if not self._queue.is_answered:
            self._expect_event()
        if isinstance(event, (CheckStageFinished, CheckFindingMade)):
            self._keep_state()
        self.check_changed.emit()

    def _expect_event(self) -> None:
        if self.run is not None:
            self._silence.start(round(1000 * self.run.patience_s))

    def _give_up(self) -> None:
        if self.run is None or self._session is None:
            return
        if self._session.is_held:
            self._begin_anew(self.run.patience_s)
            return
        self.run.give_up()
        self._session.restart()

    def _begin_anew(self, pause_s: float) -> None:
        """After a pause, run the stage again with a new engine."""
        if self.run is None or self._session is None or self._queue.is_answered:
            return
        self.run.pause(pause_s)
        self._keep_state()
        self._session.restart()

    def _end(self) -> None:
        run = self.run
        if run is None or not self.phase.is_busy:
            return
        self._silence.stop()
        self._pauses.stop()
        self._keeping.stop()
        self._studio.wakefulness.need(CHECK, needed=False)
        if self._session is not None:
            self._session.end()  # its context would use memory of the card
        # The next action depends on the last check of this card.
        folder = self._folder
        self._files.add(lambda: folder.earlier(run.fingerprint), self._on_earlier, keeps=False)

    def _on_earlier(self, earlier: CheckRecord | None) -> None:
        run = self.run
        if run is None or not self.phase.is_busy:
            return
        run.earlier = earlier
        self.phase = WorkState.IDLE
        self._studio.headlines.notify_check("")
        if not is_cpu(run.plan.device) and self._checked_pc.session.is_released:
            self._checked_pc.session.restart()
        self._keep_result(run)
        self._files.add(self._folder.release)
        self._show_record(run.record())
        self.choices_changed.emit()

    def _on_pcs_changed(self) -> None:
        """Stop the check of a PC that the user disconnected."""
        if self._checked_pc.is_shut:
            self.stop()

    # ── what is kept ─────────────────────────────────────────────────────────────────────────

    def _keep_state(self) -> None:
        if self.run is not None and not self.run.plan.plant:
            state = self.run.state()
            self._files.add(lambda: self._folder.keep_state(state))

    def _keep_result(self, run: CheckRun) -> None:
        self._files.add(lambda: self._folder.conclude(run))
        self._find_kept()

    def _find_kept(self) -> None:
        folder = self._folder
        self._files.add(
            lambda: (folder.cut_off(), folder.records()), self._on_kept_found, keeps=False
        )

    def _on_kept_found(
        self, found: tuple[tuple[CutOffCheck, ...], tuple[CheckRecord, ...]]
    ) -> None:
        is_new = bool(found[0]) and not self._cut_off
        self._cut_off, self.kept = found
        if is_new:
            sentence = interruption_sentence(self._cut_off[0].interruption)
            headlines = self._studio.headlines
            self._interruption = headlines.notify(sentence, _CUT_OFF, Action.SHOW_CHECK)
        self.check_changed.emit()

    def _drop_first(self) -> None:
        """Offer a check that was cut off no longer, nor tell about it."""
        self._cut_off = self._cut_off[1:]
        if self._interruption is not None:
            self._studio.headlines.withdraw(self._interruption)

    def _on_delayed(self) -> None:
        self.notified.emit(Notice(opening(self._path)))

    def _on_opened(self, record: CheckRecord) -> None:
        if self.phase.is_busy:
            self._fail(_OPEN_LATER)
            return
        self.run = None
        self.notified.emit(Notice())
        self._show_record(record)

    def _show_record(self, record: CheckRecord) -> None:
        self.record = record
        self.check_changed.emit()

    def _emit_all(self) -> None:
        self.choices_changed.emit()
        self.check_changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        self._fail(failure.message)

    def _fail(self, sentence: str) -> None:
        self.notified.emit(Notice(sentence, Tone.FAILURE))


def _is_free(pc: Pc) -> bool:
    """Return whether neither the engine of a PC nor an experiment of the memory lab works there.

    A reading of the memory is no work: it ends with its engine, and no signal tells its end.
    """
    return pc.session.state.is_idle and pc.lab.state is EngineState.ABSENT
