"""The check of a card in the window: its choices, the check that runs, and the shown record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QTimer

from gpu_studio.core import limits
from gpu_studio.core.check.check_file import read_record
from gpu_studio.core.check.check_folder import FOLDER_NAME, STATE_EVERY_S, CheckFolder
from gpu_studio.core.check.check_record import interruption_sentence
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_words import (
    HeroWords,
    StageRow,
    findings_part,
    length_text,
    planned_rows,
    record_parts,
    result_rows,
    result_words,
    running_rows,
    running_words,
)
from gpu_studio.core.check.stages import NORMAL_MINUTES, check_code, fault_words, stages_for
from gpu_studio.core.device_name import CPU, address_there, is_cpu, name_at
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.adapters import is_adapter
from gpu_studio.core.messages.check_messages import (
    CheckFindingMade,
    CheckStageFinished,
    PlantKind,
)
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.program_version import program_title
from gpu_studio.core.switcher.whole_snippet import complete
from gpu_studio.core.units import local_now
from gpu_studio.model.awake_timer import AwakeTimer, PauseTimer
from gpu_studio.model.engine_session import EngineSession, EngineState
from gpu_studio.model.latest import Latest, opening
from gpu_studio.model.page_model import PageModel
from gpu_studio.model.pages import CHECK
from gpu_studio.model.run_queue import QueueStep, RunQueue, WorkState
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_words import RecordRow
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.studio import Studio

_WORDS_MS = 200  # words that change faster cannot be read
_STARTING = "Wait until PyTorch has started."
_OTHER_CHECK = "Another check is running on this PC: wait for its end, or stop it."
_OTHER_WORK = "Wait until the other work has ended: it would disturb the check."
_OPEN_LATER = "A check is running: open the record after its end, or stop the check."
_LOAD = (
    "It loads the device fully, and the desktop may become slow. Save your work first. You can "
    "stop it at any time."
)
_ON_CPU = "On the CPU, the check tests the RAM of its own process and computes on all cores."


class CheckChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What is chosen: the device by its identity, the length, and a fault made on purpose."""

    device: str = ""
    minutes: int = NORMAL_MINUTES
    plant: PlantKind | None = None


class CardCheck(PageModel):
    """Runs one check at a time, and shows one record: of this check, or of a file.

    While a card is checked, the program's own engine is released: its context would use memory of
    the card, and its work would disturb the check. Files are read and written in a thread.

    Attributes:
        phase: what the check does.
        run: the check that runs, or ran last in this window; None if a record is shown instead.
        record: the shown record: of the check that is over, or of a file; None while a check runs.
        kept: the records of this PC, the last one first.
        outcome: what became of a file that was saved or opened.
    """

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(CheckChoices(), parent)
        self._studio, self.adapters = studio, studio.adapters
        self.phase = WorkState.IDLE
        self.run: CheckRun | None = None
        self.record: CheckRecord | None = None
        self.kept: tuple[CheckRecord, ...] = ()
        self.outcome = Notice()
        self._checked_pc = studio.pcs.here
        self._session: EngineSession | None = None
        data = studio.data_folder
        self._folder = CheckFolder(data / FOLDER_NAME if data is not None else None, studio.boot)
        self._files = TaskQueue(self)
        self._files.failed.connect(self._on_failed)
        self._path = Path()
        self._reading = Latest(self)  # a drive that hangs must not hold what is kept
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self.show_record)
        self._reading.failed.connect(self._on_failed)
        self._queue = RunQueue(self)
        self._queue.step_begun.connect(self._expect_event)
        self._queue.event_received.connect(self._on_event)
        self._queue.finished.connect(self._end)
        self._silence = AwakeTimer(self)
        self._silence.ended.connect(self._give_up)
        self._pauses = PauseTimer(self)
        self._pauses.resumed.connect(self._begin_anew)
        self._keeping = QTimer(self, interval=round(1000 * STATE_EVERY_S))
        self._keeping.timeout.connect(self._keep_progress)
        self._soon = QTimer(self, singleShot=True, interval=_WORDS_MS)
        self._soon.timeout.connect(self.changed)
        self.follow(
            studio.board.changed, studio.session.state_changed, studio.lab.state_changed,
            studio.pcs.session_changed, self.adapters.changed,
        )  # fmt: skip
        studio.pcs.changed.connect(self._on_pcs_changed)
        studio.closing.connect(self.close)
        self._files.add(self._folder.conclude_cut_off, self._on_cut_off)
        self._find_kept()

    # ── choices ──────────────────────────────────────────────────────────────────────────────

    @property
    def devices(self) -> tuple[DeviceRow, ...]:
        """The devices that can be checked, cards first."""
        board = self._studio.board
        return (*board.cards, *board.adapters, *board.cpus)

    @property
    def device_items(self) -> list[tuple[str, str]]:
        """The names of the devices, and what they stand for."""
        return [(_title(device), device.identity) for device in self.devices]

    @property
    def device(self) -> DeviceRow:
        """The chosen device; the first card here that PyTorch can use until you choose."""
        devices = self.devices
        chosen = (one for one in devices if one.identity == self.choices.device)
        here = (one for one in devices if not one.pc)
        usable = (one for one in here if one.obstacle in (None, Obstacle.NO_ENGINE)
                  and not (one.adapter and one.adapter.is_software))  # fmt: skip
        return next(chosen, next(usable, self._studio.board.cpu))

    @property
    def pc(self) -> Pc:
        """The PC of the chosen device."""
        return self._studio.pcs.of(self.device.identity)

    @property
    def reason(self) -> str:
        """Why no check can start now; empty if one can."""
        if self.device.adapter is not None:
            works = EngineState.BUSY in (self._studio.session.state, self.pc.session.state)
            return _OTHER_WORK if works else ""
        session = self.pc.session
        if session.description is None:
            return session.absence or _STARTING
        if self.device.obstacle is not None:
            return self.device.reason
        return "" if _is_free(self.pc) else _OTHER_WORK

    def choose_adapters(self) -> None:
        """Choose what computes without PyTorch, if there is something."""
        if self.adapters.adapters and not self.is_busy:
            self.choose(device=self.adapters.adapters[0].identity)

    @property
    def is_busy(self) -> bool:
        """Whether a check runs or is being stopped."""
        return self.phase.is_busy

    @property
    def can_run(self) -> bool:
        """Whether a check can start."""
        return not self.is_busy and not self.reason

    @property
    def can_stop(self) -> bool:
        """Whether a check runs that is not being stopped yet."""
        return self.phase is WorkState.RUNNING

    # ── words ────────────────────────────────────────────────────────────────────────────────

    @property
    def running(self) -> CheckRun | None:
        """The check while it runs."""
        return self.run if self.is_busy else None

    @property
    def shown(self) -> CheckRun | CheckRecord | None:
        """The check that runs, or the shown record; None before a check."""
        return self.running or self.record

    @property
    def hero(self) -> HeroWords:
        """The words at the top: the question, the errors so far, or the result."""
        if (run := self.running) is not None:
            return running_words(run, self.device.label)
        return result_words(self.record) if self.record is not None else self._question()

    def _question(self) -> HeroWords:
        device, plant, planted = self.device, self.choices.plant, ""
        if plant is not None:
            does = fault_words(plant)
            planted = f"This check will make a fault on purpose, to show that it is found: {does}"
        is_ready = device.adapter is None and self.pc.session.description is not None
        if is_ready and not device.is_cpu and device.obstacle not in (None, Obstacle.NO_ENGINE):
            words = Notice("Cannot be checked yet", Tone.AMBER)
            fix = planted or "The Devices tab says how to fix it."
            return HeroWords(device.label, words, self.reason, fix)
        question = "Does this CPU compute correctly?" if device.is_cpu else "Is this card sound?"
        if device.adapter is not None and device.adapter.is_software:
            question = "Does it compute correctly?"
        hint = f"{_ON_CPU} {_LOAD}" if device.is_cpu else _LOAD
        length = length_text(self.choices.minutes)
        plan = f"{len(stages_for(self.choices.minutes, self.address))} stages. {length}."
        next_step = " ".join(filter(None, (planted, self.reason or hint)))
        return HeroWords(_title(device), Notice(question), plan, next_step)

    @property
    def stage_rows(self) -> tuple[StageRow, ...]:
        """The stages, in their order."""
        if (run := self.running) is not None:
            return running_rows(run)
        if self.record is not None:
            return result_rows(self.record)
        return planned_rows(self.choices.minutes, self.address)

    def rows(self, part: str) -> tuple[RecordRow, ...]:
        """Return the rows of a part of the record; of a running check, its findings."""
        if (run := self.running) is not None:
            return findings_part(run.findings).rows if part == "findings" else ()
        parts = record_parts(self.record) if self.record is not None else ()
        return next((one.rows for one in parts if one.name == part), ())

    @property
    def address(self) -> str:
        """PyTorch's name for the shown or chosen device, or one of its kind."""
        if self.record is not None:
            return self.record.device.address
        if (run := self.running) is not None:
            return run.plan.device
        row = self.device
        return row.address or row.number or (CPU if row.is_cpu else "cuda:0")

    def show_code(self) -> None:
        """Let the code drawer have the check in a few lines of PyTorch, as they run on this PC."""
        if is_adapter(self.address):  # PyTorch has nothing to do with it
            self._studio.snippets.show("", CHECK)
            return
        inventory = self.pc.sensors.inventory
        code = complete(
            check_code(address_there(self.address)),
            device_count=len(inventory.cards) if inventory is not None else 0,
            visible_devices=self.pc.session.environment.visible_devices,
        )
        self._studio.snippets.show(code, CHECK)

    # ── what a person does ───────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start the chosen check; does nothing while one runs.

        A check with a fault made on purpose is not kept: it is no result of the card.
        """
        address = self.device.address
        if not self.can_run or address is None:
            return
        self.choose(device=self.device.identity)  # while its engine is released, none is usable
        minutes = self.choices.minutes
        plan = CheckPlan(
            device=address, minutes=minutes, stages=stages_for(minutes, address),
            plant=self.choices.plant,
        )  # fmt: skip
        self._begin(CheckRun(plan, local_now(), program=program_title()))

    def stop(self) -> None:
        """Stop the check; the results so far are kept."""
        if self.phase is WorkState.RUNNING and self.run is not None:
            self.phase = WorkState.STOPPING
            self.run.stop()
            if self._session is not None:
                self._session.stop()
            self.changed.emit()

    def open_file(self, path: Path) -> None:
        """Show the record in a picture or a JSON file; not while a check runs."""
        if self.is_busy:
            self._fail(_OPEN_LATER)
            return
        self._path, self.outcome = path, Notice()
        self._reading.ask(lambda is_over: read_record(path, is_over))

    def show_record(self, record: CheckRecord) -> None:
        """Show a record that was kept or opened; not while a check runs."""
        if self.is_busy:
            self._fail(_OPEN_LATER)
            return
        self.run, self.outcome = None, Notice()
        self._show_record(record)

    def close(self) -> None:
        """End the engine and a running check.

        Your closing of the window stops the check, as its Stop button does. A check that the
        system ends was cut off: the next start says so.
        """
        self._keeping.stop()
        run = self.run
        if self.is_busy and run is not None:
            if self._studio.is_ended_by_system and not run.is_stopped:
                self._keep_progress()
            else:
                if not run.is_over:
                    run.stop()
                self._keep_result(run)
        self._silence.stop()
        if self._session is not None:
            self._session.close()
        self._reading.close()
        self._files.close()
        self._folder.release()

    # ── the check that runs ──────────────────────────────────────────────────────────────────

    def _begin(self, run: CheckRun) -> None:
        self.outcome = Notice()  # of the check before
        self.run, self.record = run, None
        self._checked_pc = self._studio.pcs.of(run.plan.device)
        self.phase = WorkState.RUNNING
        self._files.add(self._folder.claim, self._on_claimed, keeps=False)
        self.changed.emit()

    def _on_claimed(self, is_alone: bool) -> None:
        """Go on if no other program checks: two checks would disturb each other."""
        run = self.run
        if run is None or not self.is_busy:
            self._files.add(self._folder.release)
            return
        if not is_alone:
            self.run, self.phase = None, WorkState.IDLE
            self._fail(_OTHER_CHECK)
            return
        self._keep_progress()
        self._keeping.start()
        ending = None if is_cpu(run.plan.device) else self._beside.release()
        if ending is None:
            self._run_rounds()
            return
        if not self._checked_pc.name:  # work on the other PCs goes on
            self._studio.headlines.notify_check(self.device.label)
        ending.finished.connect(self._run_rounds)

    @property
    def _beside(self) -> EngineSession:
        """The engine that would disturb the check: an adapter may be a card of PyTorch's."""
        checked = self._checked_pc
        return (self._studio.pcs.here if checked is self.adapters else checked).session

    def _run_rounds(self) -> None:
        run, pc = self.run, self._checked_pc
        if run is None or not self.is_busy:
            return
        if self._session is not None:  # it ended with the check before
            self._session.close()
            self._session.deleteLater()
        # An engine that does nothing else: a bad card may hang or end it, which is the result.
        self._session = EngineSession(
            pc.engine_factory, self, environment=pc.session.environment,
            describes=False, stop_patience_ms=limits.current.stop_check_ms,
        )  # fmt: skip
        self._session.start()
        self._pauses.start()
        self._studio.wakefulness.need(CHECK, needed=True)

        def next_round(*_: object) -> QueueStep | None:
            request = run.next_request()  # it knows itself whether it goes on
            return QueueStep(request) if request is not None else None

        self._queue.start(next_round, self._session)
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
            self._keep_progress()
        if not self._soon.isActive():
            self._soon.start()

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
        self._keep_progress()
        self._session.restart()

    def _end(self) -> None:
        run = self.run
        if run is None or not self.is_busy:
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
        if run is None or not self.is_busy:
            return
        run.earlier = earlier
        self.phase = WorkState.IDLE
        self._studio.headlines.notify_check("")
        if not is_cpu(run.plan.device) and self._beside.is_released:
            self._beside.restart()
        self._keep_result(run)
        self._files.add(self._folder.release)
        self._show_record(run.record())

    def _on_pcs_changed(self) -> None:
        """Stop the check of a PC that the user disconnected."""
        if self._checked_pc.is_shut:
            self.stop()

    # ── what is kept ─────────────────────────────────────────────────────────────────────────

    def _keep_progress(self) -> None:
        if (run := self.run) is not None:
            record = run.record()
            self._files.add(
                lambda: self._folder.keep_progress(run.check_id, record, run.fingerprint)
            )

    def _keep_result(self, run: CheckRun) -> None:
        record = run.record()
        self._files.add(lambda: self._folder.conclude(run.check_id, record, run.fingerprint))
        self._find_kept()

    def _find_kept(self) -> None:
        self._files.add(self._folder.records, self._on_kept_found, keeps=False)

    def _on_kept_found(self, kept: tuple[CheckRecord, ...]) -> None:
        self.kept = kept
        self.changed.emit()

    def _on_cut_off(self, record: CheckRecord | None) -> None:
        """Show the result of a check that was cut off, and tell it on the other tabs."""
        if record is None or self.is_busy:
            return
        sentence = interruption_sentence(record.interruptions[-1])
        kept = "The results so far are kept." if record.has_tested else ""
        self._studio.headlines.notify(sentence, kept, Action.SHOW_CHECK)
        if self.record is None:
            self._show_record(record)

    def _on_delayed(self) -> None:
        self.note(Notice(opening(self._path)))

    def _show_record(self, record: CheckRecord) -> None:
        self.record = record
        self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        self._fail(failure.message)

    def note(self, outcome: Notice) -> None:
        """Say what became of a file."""
        self.outcome = outcome
        self.changed.emit()

    def _fail(self, sentence: str) -> None:
        self.note(Notice(sentence, Tone.FAILURE))


def _title(device: DeviceRow) -> str:
    """Return a device's name in the list of what can be checked."""
    if device.adapter is not None:
        return device.name
    if not device.is_cpu:
        return device.label
    title = f"CPU and RAM: {device.device.short_name}" if device.device else "CPU and RAM"
    return name_at(device.pc, title)


def _is_free(pc: Pc) -> bool:
    """Return whether neither the engine of a PC nor an experiment of the memory lab works there.

    A reading of the memory is no work: it ends with its engine, and no signal tells its end.
    """
    return pc.session.state.is_idle and pc.lab.state is EngineState.ABSENT
