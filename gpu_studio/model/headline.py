"""The most important sentence now, for the banner above the tabs and a device's verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core import limits
from gpu_studio.core.devices.finding import KINDS, Finding, is_usable
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead
from gpu_studio.core.messages.pitfall_messages import PitfallFailed
from gpu_studio.core.messages.run_messages import RunFailed, RunStopped
from gpu_studio.core.notice import Action, Tone
from gpu_studio.model.engine_session import EngineState, Reply

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device, Reading, Unreadable
    from gpu_studio.model.builds import Builds
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.pc import Doctor
    from gpu_studio.model.sensors import Sensors
    from gpu_studio.model.settings import Settings

_SILENCE = "driver_not_answering"
_SLOW = "engine_slow"
_NOT_RESPONDING = "engine_silent"
_OWN = "program"
_CHECKING = "check_running"
_SLOW_START = "PyTorch has not answered since it started."
# Ends that prove nothing about an engine; a reading of the memory is no work.
_NO_SUCCESS = (
    RunFailed, RunStopped, RequestFailed, PitfallFailed, EngineEnded, MemoryRead, SegmentsRead,
)  # fmt: skip
# These also happen while the program runs: the banner tells them on every tab.
_LIVE = frozenset({"card_lost", "driver_not_answering"})
# A reason to doubt a card's numbers stops no tab.
_STOPS_NOTHING = frozenset({"not_as_named", "slow_link"})
# Findings that need no action stay out of the banner.
_QUIET = (Tone.PLAIN, Tone.GOOD)


def lost_headline(card: Device, reason: str, error_code: Unreadable | None = None) -> Finding:
    """Return the headline about a card that was readable at first and no longer is."""
    return Finding(
        code=_SILENCE if error_code == "silent" else "card_lost",
        sentence=f"{card.short_name}: {reason}",
        tone=Tone.FAILURE,
        device_uuid=card.identity,
    )


def why_silent(asks_driver: bool) -> str:
    """Return why the sensors may be silent; a driver that was not asked is not the cause.

    Args:
        asks_driver: as `Sensors.asks_driver`.
    """
    if asks_driver:
        return "Usually the graphics driver hangs. Restart the PC if the driver does not recover."
    return "See the log for more (Help, Open the log folder)."


class HeadlineModel(QObject):
    """Chooses the headline of the banner.

    Sentences about the program come first, then a lost engine, silent sensors, a lost card, the
    check that other tabs wait for, and the findings at the start.

    Signals:
        headline_changed(Finding | None): None if there is nothing to say.
        action_wanted(Finding): the user wants its action, which is another one's work.
    """

    headline_changed = Signal(object)
    action_wanted = Signal(object)

    def __init__(
        self,
        session: EngineSession,
        sensors: Sensors,
        doctor: Doctor,
        settings: Settings,
        builds: Builds | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._sensors, self._doctor = session, sensors, doctor
        self._builds = builds
        self.headline: Finding | None = None
        """The current headline; None if there is none."""
        self._own: Finding | None = None
        self._lost_reason = ""
        self._lost_cards: list[Finding] = []
        self._check: Finding | None = None
        self._has_failed = self._has_engine = False
        self._start = QTimer(self)
        self._start.setSingleShot(True)
        self._start.setInterval(limits.current.engine_start_ms)
        self._start.timeout.connect(self._choose)
        self._dismissed: set[tuple[str, str]] = set()
        session.engine_lost.connect(self._on_engine_lost)
        session.state_changed.connect(self._on_state_changed)
        session.silence_changed.connect(self._on_engine_silence_changed)
        session.request_submitted.connect(self._on_request_submitted)
        session.engine_described.connect(self._on_engine_described)
        doctor.findings_changed.connect(self._choose)
        sensors.silence_changed.connect(self._on_sensors_silence_changed)
        sensors.reading_taken.connect(self._on_reading_taken)
        settings.trouble_reported.connect(self.notify)
        if settings.trouble:
            self.notify(settings.trouble)
        self._choose()

    def offered(self, headline: Finding) -> Finding:
        """Return a headline with a button that installs its build, if this program can."""
        if not headline.build_tag or self._builds is None:
            return headline
        is_coming = headline.build_tag in self._builds.coming
        action = Action.SHOW_SET_UP if is_coming else Action.INSTALL
        return msgspec.structs.replace(headline, action=action)

    @property
    def blocks_work(self) -> bool:
        """Whether the headline stops a tab from working, or is about the program.

        A finding about one card stops nothing if PyTorch can use another one.
        """
        headline = self.headline
        if headline is None or not self.is_about_pc:
            return headline is not None
        stops = headline.code not in _STOPS_NOTHING
        return stops and not is_usable(self._doctor.findings)

    @property
    def is_about_pc(self) -> bool:
        """Whether the headline is what was found on the PC; not what happened to the program."""
        headline = self.headline
        return headline is not None and headline.code in KINDS and headline.code not in _LIVE

    @property
    def is_about_sensors(self) -> bool:
        """Whether the current headline is that the sensors have stopped."""
        return self.headline is not None and self.headline.code == _SILENCE

    def notify(self, sentence: str, detail: str = "", action: Action | None = None) -> Finding:
        """Show a sentence about the program itself, before all others, until it is dismissed."""
        self._own = Finding(code=_OWN, sentence=sentence, detail=detail, action=action)
        self._choose()
        return self._own

    def withdraw(self, headline: Finding) -> None:
        """Show a sentence about the program no longer, if it is the current one."""
        if self._own is headline:
            self._own = None
            self._choose()

    def notify_check(self, label: str) -> None:
        """Say that the other tabs wait for the check of a card; without a label, it is over."""
        self._forget_dismissed(_CHECKING)
        sentence = f"{label} is being checked. The other tabs wait until the check ends."
        self._check = (
            Finding(code=_CHECKING, sentence=sentence, action=Action.SHOW_CHECK, tone=Tone.PLAIN)
            if label
            else None
        )
        self._choose()

    def dismiss(self) -> None:
        """Hide the current headline until it changes."""
        headline = self.headline
        if headline is None:
            return
        if headline.code == _OWN:
            self._own = None
        elif headline.code == "engine_lost":
            self._lost_reason = ""
        else:
            self._dismissed.add((headline.code, headline.sentence))
        self._choose()

    def act(self, headline: Finding | None = None) -> None:
        """Do the action of a headline's button; of the current one if none is given."""
        headline = headline or self.headline
        if headline is None:
            return
        match headline.action:
            case Action.RESTART_ENGINE:
                self._session.restart()
            case Action.RESTART_SENSORS:
                self._sensors.start_again()
            case Action.SHOW_CHECK if headline is self._check:  # the tabs still wait
                self.action_wanted.emit(headline)
            case Action.SHOW_LOG | Action.SHOW_CHECK:
                self.dismiss()
                self.action_wanted.emit(headline)
            case _:
                self.action_wanted.emit(headline)

    def act_otherwise(self) -> None:
        """Do the action of the current headline's second button."""
        if self.headline is not None and self.headline.other_action is Action.STOP_RUN:
            self._session.stop()

    def _on_engine_silence_changed(self, _is_silent: bool) -> None:
        self._forget_dismissed(_NOT_RESPONDING)
        self._choose()

    def _forget_dismissed(self, code: str) -> None:
        """Each check and each silence is new, even if the last one was dismissed."""
        self._dismissed = {key for key in self._dismissed if key[0] != code}

    def _on_request_submitted(self, reply: Reply) -> None:
        reply.finished.connect(self._on_request_finished)

    def _on_request_finished(self) -> None:
        """Hide the lost engine once another one has completed a request."""
        reply = self.sender()
        assert isinstance(reply, Reply)
        if self._lost_reason and not isinstance(reply.last, _NO_SUCCESS):
            self._lost_reason = ""
            self._choose()

    def _on_engine_lost(self, reason: str) -> None:
        self._lost_reason = reason
        self._choose()

    def _on_state_changed(self, state: EngineState) -> None:
        if state is EngineState.STARTING:
            self._start.start()
        else:
            self._start.stop()
        if state is EngineState.FAILED:
            self._has_failed = True
            self._choose()
        elif state is EngineState.READY and self._has_failed:
            # The engine that the user requested is ready: the old one no longer matters.
            self._has_failed = False
            self._lost_reason = ""
            self._choose()
        elif self.headline is not None and self.headline.code in (_SLOW, _NOT_RESPONDING):
            self._choose()

    def _on_sensors_silence_changed(self, _is_silent: bool) -> None:
        self._forget_dismissed(_SILENCE)
        self._choose()

    def _on_reading_taken(self, reading: Reading) -> None:
        inventory = self._sensors.inventory
        errors = {card.uuid: card for card in reading.cards if card.error}
        lost = [
            lost_headline(card, failed.error or "", failed.error_code)
            for card in (inventory.cards if inventory else ())
            if card.unreadable is None and (failed := errors.get(card.identity)) is not None
        ]
        if lost != self._lost_cards:
            self._lost_cards = lost
            self._choose()

    def _on_engine_described(self) -> None:
        self._has_engine = True
        self._choose()

    def _choose(self) -> None:
        headlines = [
            self._own,
            self._of_silent_engine(),
            self._of_engine(),
            self._of_sensors(),
            *self._lost_cards,
            self._check,
            self._of_start(),
            *self._of_findings(),
        ]
        chosen = next(
            (
                headline
                for headline in headlines
                if headline and (headline.code, headline.sentence) not in self._dismissed
            ),
            None,
        )
        if chosen != self.headline:
            self.headline = chosen
            self.headline_changed.emit(chosen)

    def _of_engine(self) -> Finding | None:
        if not self._lost_reason:
            return None
        is_gone = self._session.state is EngineState.FAILED
        reassurance = " Your results are still here." if self._has_engine else ""
        return Finding(
            code="engine_lost",
            sentence=f"{self._lost_reason.rstrip('.')}.{reassurance}",
            detail="It will not start again by itself." if is_gone else "It has been started anew.",
            action=Action.RESTART_ENGINE if is_gone else None,
            tone=Tone.FAILURE if is_gone else Tone.AMBER,
        )

    def _of_silent_engine(self) -> Finding | None:
        session = self._session
        if not session.is_silent:
            return None
        has_cuda = session.description is not None and session.description.cuda_available
        driver = "Usually the graphics driver hangs. " if has_cuda else ""
        return Finding(
            code=_NOT_RESPONDING,
            sentence="PyTorch is not responding.",
            detail=f"{driver}Your results are still here.",
            action=Action.RESTART_ENGINE,
            other_action=Action.STOP_RUN if session.state is EngineState.BUSY else None,
            tone=Tone.FAILURE,
        )

    def _of_sensors(self) -> Finding | None:
        if not self._sensors.is_silent:
            return None
        if self._sensors.has_given_up:
            return Finding(
                code=_SILENCE,
                sentence="The sensor reader ended several times. The live readings have stopped.",
                detail="The log says why (Help, Open the log folder). Everything else works.",
                action=Action.RESTART_SENSORS,
            )
        return Finding(
            code=_SILENCE,
            sentence="The sensors have stopped answering, so the live readings have stopped.",
            detail=f"{why_silent(self._sensors.asks_driver)} Everything on the CPU still works.",
        )

    def _of_start(self) -> Finding | None:
        is_starting = self._session.state is EngineState.STARTING
        if not is_starting or self._start.isActive():
            return None
        return Finding(
            code=_SLOW,
            sentence=_SLOW_START,
            detail="Loading it from a slow disk may take a minute. If it takes longer, "
            + (
                "the graphics driver may be hanging: restart the PC."
                if self._sensors.asks_driver
                else "see the log for more (Help, Open the log folder)."
            ),
        )

    def _of_findings(self) -> list[Finding]:
        chosen_here = self._session.environment.visible_devices is not None
        return [
            self.offered(finding)
            for finding in self._doctor.findings
            if finding.tone not in _QUIET
            # A card that the Switcher hides is hidden because the user wanted it.
            and not (chosen_here and finding.code == "hidden_by_environment")
        ]
