"""The devices that the Switcher offers, the chosen one, and the card in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import address_there, name_at
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.core.devices.facts import identity_line
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import DeviceUsed, UseDevice
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.placement_words import explain_end, explain_failure
from gpu_studio.core.switcher.whole_snippet import complete, snippet_for_device
from gpu_studio.core.units import format_bytes
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pages import SWITCHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.studio import Studio

_SEPARATOR = "  ·  "
Pending = Literal["", "use", "show_only", "show_all"]


class DeviceChoice(QObject):
    """The devices, and two ways to choose one: make it current, or the only visible card.

    Signals:
        rows_changed(): the devices or their texts changed.
        chosen_changed(): another device is chosen.
        notice_changed(): `notice` changed.

    Attributes:
        notice: the outcome of making a card current or the only visible one.
    """

    rows_changed = Signal()
    chosen_changed = Signal()
    notice_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._board = studio.board
        self.rows: tuple[DeviceRow, ...] = ()
        self._chosen = "cpu"
        self._chosen_by_hand = False
        self._using: Reply | None = None
        self._is_using = False
        self._restarting: Pending = ""
        self._listed: tuple[object, ...] = ()
        self.notice = Notice()
        studio.session.engine_described.connect(self._on_engine_described)
        studio.session.state_changed.connect(self._update)
        studio.pcs.engine_described.connect(self._on_other_described)
        studio.pcs.session_changed.connect(self._update)
        studio.pcs.reading_taken.connect(self._update)
        self._board.changed.connect(self._update)
        studio.sensors.reading_taken.connect(self._update)
        self._list_rows()

    @property
    def chosen(self) -> DeviceRow | None:
        """The chosen device; None until the PC is examined."""
        return next((row for row in self.rows if row.identity == self._chosen), None)

    def words_of(self, row: DeviceRow) -> DeviceWords:
        """Return a device in words, with its free memory now."""
        pc = self._studio.pcs.of(row.identity)
        telemetry = pc.sensors.latest(row.device) if row.device is not None else None
        by_default = pc.session.current_device is None
        return device_words(row, telemetry, is_current_by_default=by_default)

    @property
    def _session(self) -> EngineSession:
        return self._studio.pcs.session_of(self._chosen)

    @property
    def is_one_shown(self) -> bool:
        """Whether the engine of the chosen device was started with some cards hidden."""
        return self._session.environment.visible_devices is not None

    @property
    def can_use(self) -> bool:
        """Whether the chosen card can become the current one: it has a number in this engine.

        Without CUDA as well: the engine then says in its own words what is missing.
        """
        row = self.chosen
        has_number = row is not None and not row.is_cpu and row.number is not None
        if row is not None and row.obstacle is Obstacle.NO_LINE:
            return False
        has_code = row is not None and row.obstacle is not Obstacle.NO_CODE
        return has_number and has_code and self._is_there and not self._is_using

    @property
    def can_show_only(self) -> bool:
        """Whether a new engine can be limited to the chosen card."""
        uuid = self._chosen_uuid
        return (
            uuid is not None
            and self._is_quiet
            and self._session.environment.visible_devices != uuid
        )

    @property
    def can_show_all(self) -> bool:
        return self.is_one_shown and self._is_quiet

    @property
    def pending(self) -> Pending:
        """The action that the engine has yet to finish: a new one takes seconds to start."""
        if self._is_using:
            return "use"
        return "" if self._session.state is EngineState.FAILED else self._restarting

    def choose(self, identity: str) -> None:
        """Choose another device, and show the code that names it."""
        self._chosen_by_hand = True
        self._set_chosen(identity)
        row, engine = self.chosen, self._session.description
        if row is not None and row.address is not None and engine is not None:
            snippet = complete(
                snippet_for_device(address_there(row.address)),
                device_count=engine.device_count if engine.cuda_available else 0,
                visible_devices=engine.visible_devices,
            )
            self._studio.snippets.show(snippet, SWITCHER)

    def use(self) -> None:
        row = self.chosen
        if self.can_use and row is not None and row.number is not None:
            self._is_using = True
            self._set_notice("")
            self._using = self._session.submit(UseDevice(device=row.number))
            self._using.finished.connect(self._finish_use)
            self._list_rows()

    def show_only(self) -> None:
        if self.can_show_only:
            self._set_notice("Starting a new engine that sees only this card…")
            self._restart("show_only", self._chosen_uuid)

    def show_all(self) -> None:
        if self.can_show_all:
            self._set_notice("Starting a new engine that sees every card…")
            self._restart("show_all", None)

    def _restart(self, pending: Pending, visible_devices: str | None) -> None:
        self._restarting = pending
        configuration = self._session.environment.allocator_configuration
        self._session.restart(
            EngineEnvironment(
                visible_devices=visible_devices, allocator_configuration=configuration
            )
        )

    @property
    def _is_there(self) -> bool:
        return self._session.description is not None

    @property
    def _is_quiet(self) -> bool:
        """Whether a restart would end no run."""
        return self._session.state in (EngineState.READY, EngineState.FAILED)

    @property
    def _chosen_uuid(self) -> str | None:
        """The value of CUDA_VISIBLE_DEVICES for the chosen card; None if it reports none."""
        row = self.chosen
        return row.device.uuid if row is not None and row.device is not None else None

    def _finish_use(self) -> None:
        assert self._using is not None
        event, self._using, self._is_using = self._using.last, None, False
        match event:
            case DeviceUsed():
                name = without_maker(event.name)
                text = f"{event.device} {name} is now the current card."
                self._set_notice(text, Tone.GOOD)
            case RequestFailed():
                self._set_notice(explain_failure(event.failure), Tone.FAILURE)
            case EngineEnded():
                self._set_notice(explain_end(event), Tone.FAILURE)
            case _:
                pass
        self._list_rows()

    def _on_engine_described(self, description: EngineDescribed) -> None:
        is_restarted, self._restarting = bool(self._restarting), ""
        if is_restarted:
            count = description.device_count if description.cuda_available else 0
            sees = "1 card" if count == 1 else f"{count} cards"
            self._set_notice(f"The new engine sees {sees}.", Tone.GOOD if count else Tone.AMBER)
        self._listed = ()  # even if the devices are the same: the tab waited for the engine
        self._list_rows()

    def _on_other_described(self) -> None:
        description = self._session.description
        if self._restarting and description is not None:
            self._on_engine_described(description)
        else:
            self._update()

    def _set_notice(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.notice = Notice(text, tone)
        self.notice_changed.emit()

    def _update(self) -> None:
        if not self._is_using:  # the answer to come lists them
            self._list_rows()

    def _list_rows(self) -> None:
        """List the devices again, and report changes of them or of the possible actions."""
        is_there = self._studio.session.description is not None
        if self._studio.sensors.inventory is None and not is_there:
            return
        self.rows = self._board.rows
        listed = self._to_list
        if self._listed != listed:
            self._listed = listed
            self.rows_changed.emit()
        if not self._chosen_by_hand or self.chosen is None:
            self._set_chosen(self._board.current.identity)
            self._listed = self._to_list

    @property
    def _to_list(self) -> tuple[object, ...]:
        words = [self.words_of(row) for row in self.rows]
        can = self.can_use, self.can_show_only, self.can_show_all
        return (*self.rows, *words, *can, self.pending)

    def _set_chosen(self, identity: str) -> None:
        if identity != self._chosen:
            self._chosen = identity
            self.chosen_changed.emit()


class DeviceWords(msgspec.Struct, frozen=True, kw_only=True):
    """A device in words.

    Attributes:
        number: ``cpu``, ``cuda:0``, ``hidden``, or a dash if PyTorch has no number for it.
        facts: the texts after the name: free memory, "current", why it is hidden.
        about: the card's numbers, its compute capability, and whether PyTorch can use it.
        warning: why PyTorch cannot use the card, or its worst problem; empty if there is none.
    """

    number: str
    name: str
    facts: str
    about: str = ""
    warning: str = ""


def device_words(
    row: DeviceRow, telemetry: Telemetry | None, *, is_current_by_default: bool
) -> DeviceWords:
    """Return a device in words.

    Args:
        row: the device.
        telemetry: its newest reading; None before the first.
        is_current_by_default: whether no card was chosen in this engine.
    """
    name = name_at(row.pc, short_name(row.name))
    if row.is_cpu:
        free = _free(telemetry)
        facts = _joined(
            row.reason.rstrip(".") or "always available", f"{free} RAM free" if free else ""
        )
        return DeviceWords(number=row.number or row.identity, name=name, facts=facts)
    is_hidden = row.obstacle is Obstacle.HIDDEN
    current = "current by default" if is_current_by_default else "current"
    warning = _warning(row)
    return DeviceWords(
        number=_number(row),
        name=name,
        facts=_joined(
            _free_of(row, telemetry),
            current if row.is_current else "",
            "hidden by CUDA_VISIBLE_DEVICES" if is_hidden else "",
        ),
        about=_joined(*_about(row, warning)),
        warning=warning,
    )


def _number(row: DeviceRow) -> str:
    if row.obstacle is Obstacle.HIDDEN:
        return "hidden"
    is_counted = row.obstacle in (None, Obstacle.NO_CODE)
    return (row.number if is_counted else None) or "–"


def _warning(row: DeviceRow) -> str:
    if row.obstacle is not None:
        return "" if row.obstacle in (Obstacle.NO_ENGINE, Obstacle.HIDDEN) else row.reason
    return row.finding.sentence if row.finding is not None else ""


def _about(row: DeviceRow, warning: str) -> Iterator[str]:
    if row.device is None:
        return
    yield identity_line(row.device)
    if row.device.compute_capability:
        yield f"compute capability {row.device.compute_capability}"
    if row.obstacle is None and not warning:
        yield "this PyTorch can use it"


def _free_of(row: DeviceRow, telemetry: Telemetry | None) -> str:
    total_bytes = row.device.memory_total_bytes if row.device is not None else None
    total = format_bytes(total_bytes) if total_bytes else ""
    free = _free(telemetry)
    if free and total:
        return f"{free} of {total} free"
    return f"{free} free" if free else total


def _free(telemetry: Telemetry | None) -> str:
    if telemetry is None or telemetry.memory_free_bytes is None:
        return ""
    return format_bytes(telemetry.memory_free_bytes)


def _joined(*parts: str) -> str:
    return _SEPARATOR.join(part for part in parts if part)
