"""The Switch page: the devices, the one in use, and what was moved to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import address_there
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import without_maker
from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    UseDevice,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.switcher.placement_words import (
    explain_end,
    explain_failure,
    explain_move,
)
from gpu_studio.core.switcher.whole_snippet import complete, snippet_for_device
from gpu_studio.core.tensors import DTYPES
from gpu_studio.core.units import counted, format_count
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.page_model import PageModel
from gpu_studio.model.pages import START, SWITCH
from gpu_studio.model.switcher.device_words import device_words
from gpu_studio.model.text_rows import Cell

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.placement_messages import ModelDescription
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.studio import Studio
    from gpu_studio.model.switcher.device_words import DeviceWords

TYPES = (("as it is", ""), *((dtype, dtype) for dtype in DTYPES))
_ALL_CARDS = "\x00all"
_EACH_TENSOR = "each tensor appears here, with its device before and after."
_GONE = "PyTorch has started anew, so the model is gone."
_KINDS = {"parameter": " (learned in training)", "buffer": " (kept, but not learned)"}
_TONES = {True: Tone.PLAIN, False: Tone.FAILURE, None: Tone.AMBER}  # by what the proof says


class SwitchChoices(msgspec.Struct, frozen=True):
    """The model that is moved, by its name, and its type; an empty ``dtype`` keeps the type."""

    thing: str = ""
    dtype: str = ""


class SwitchModel(PageModel):
    """Switches to a device: new tensors go there, and the chosen model moves there.

    Attributes:
        moved: every tensor of the last move, in the engine's order.
        said: what the last switch did.
        proof: what the last move took, with its proof, or why it failed; plain if it went well.
    """

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(SwitchChoices(), parent)
        self._studio, self._board = studio, studio.board
        self.moved: list[PlaceRow] = []
        self.said = self.proof = Notice()
        self._used = self._restarting = ""  # identities
        self._using: DeviceRow | None = None
        self._reply: Reply | None = None
        self._moved_thing: str | None = None
        self._came_from = self._is_at = ""
        here, pcs = studio.session, studio.pcs
        here.engine_described.connect(self._on_engine_described)
        pcs.engine_described.connect(self._on_restarted)
        self.follow(here.state_changed, pcs.session_changed, pcs.changed, self._board.changed)
        self.follow(studio.sensors.reading_taken, pcs.reading_taken)

    # ── devices ──────────────────────────────────────────────────────────────────────────────

    @property
    def rows(self) -> tuple[DeviceRow, ...]:
        """The devices, of each PC the cards first; none until the PC is examined."""
        is_known = self._studio.session.description or self._studio.sensors.inventory
        rows = self._board.of_pytorch if is_known else ()
        return tuple(sorted(rows, key=lambda row: (row.pc, row.is_cpu)))

    @property
    def used(self) -> DeviceRow | None:
        """The device in use: at first PyTorch's current one; None if PyTorch cannot use that."""
        rows = {row.identity: row for row in self.rows}
        current = rows.get(self._board.current.identity)
        return rows.get(self._used) or (current if current and current.address else None)

    @property
    def devices(self) -> list[DeviceWords]:
        """Each device in words."""
        return [self._words_of(row) for row in self.rows]

    @property
    def why(self) -> str:
        """What the page waits for, why there is one device, or what to do first; empty else."""
        description = self._session.description
        if self._session.state is EngineState.FAILED:
            return "PyTorch has stopped. Start it anew from the PyTorch menu."
        if description is None:
            return self._session.what_is_missing
        if self.moved or self.proof.sentence:
            return ""
        if self.used is None:
            return "Press “Use this card” or “Use this CPU” where PyTorch can use it."
        alone = f"The CPU is the only device here. {description.cuda_reason or ''}".rstrip()
        hint = f"Press “{self.move_label}”: {_EACH_TENSOR}"
        return hint if len(self.rows) > 1 else f"{alone} {hint}"

    @property
    def has_several_cards(self) -> bool:
        return sum(row.is_real_card for row in self.rows) > 1

    @property
    def show_all_label(self) -> str:
        """The label of the button that shows PyTorch all cards; empty if it sees them."""
        if self._pending == _ALL_CARDS:
            return "Starting PyTorch…"
        return "Show PyTorch all cards" if self._is_one_shown else ""

    @property
    def can_show_all(self) -> bool:
        return self._is_one_shown and self._is_quiet(self._session)

    @property
    def start_label(self) -> str:
        """The label of the link to start a program on the device in use; empty without one."""
        row = self.used
        if row is None or row.pc:
            return ""
        return f"Start a program on this {'CPU' if row.is_cpu else 'card'}…"

    def go_to_start(self) -> None:
        """Open the page that starts a program there."""
        row = self.used
        self._studio.go_to(START, device=row.identity if row is not None else "")

    @property
    def code(self) -> str:
        """The lines that use the device in your own script; empty without one."""
        row, engine = self.used, self._session.description
        if row is None or row.address is None or engine is None:
            return ""
        code = complete(
            snippet_for_device(address_there(row.address)),
            device_count=engine.device_count if engine.cuda_available else 0,
            visible_devices=engine.visible_devices,
        )
        uuid = row.device.uuid if row.device is not None else None
        if uuid and engine.visible_devices is None:
            code += f"# Only this card: start Python with CUDA_VISIBLE_DEVICES={uuid}\n"
        return code

    def use(self, identity: str) -> None:
        """Let new tensors go to a device, and move the model there."""
        row = next((row for row in self.rows if row.identity == identity), None)
        if row is None or not self._can_use(row):
            return
        self.said = self.proof = Notice()
        self.moved.clear()
        if row.is_cpu:
            self._enter(row, "Models and tensors go to the CPU now.")
            return
        self._using = row
        self._submit(self._session_of(row), UseDevice(device=row.number or ""))

    def show_only(self, identity: str) -> None:
        """Start PyTorch anew so that it sees only one card."""
        row = next((row for row in self.rows if row.identity == identity), None)
        if row is not None and row.device is not None and self._can_show_only(row):
            self._used = identity
            self._restart(identity, row.device.uuid)

    def show_all(self) -> None:
        """Start PyTorch anew so that it sees every card."""
        if self.can_show_all:
            self._restart(_ALL_CARDS, None)

    @property
    def _session(self) -> EngineSession:
        row = self.used
        return self._session_of(row) if row is not None else self._studio.session

    def _session_of(self, row: DeviceRow) -> EngineSession:
        return self._studio.pcs.session_of(row.identity)

    @property
    def _is_one_shown(self) -> bool:
        return self._session.environment.visible_devices is not None

    @property
    def _pending(self) -> str:
        return "" if self._session.state is EngineState.FAILED else self._restarting

    @staticmethod
    def _is_quiet(session: EngineSession) -> bool:
        """Whether a restart would end no run."""
        return session.state in (EngineState.READY, EngineState.FAILED)

    def _can_use(self, row: DeviceRow) -> bool:
        is_there = self._session_of(row).description is not None
        return is_there and row.address is not None and self._reply is None

    def _can_show_only(self, row: DeviceRow) -> bool:
        return self._offers_only(row) and self._is_quiet(self._session_of(row))

    def _words_of(self, row: DeviceRow) -> DeviceWords:
        pc = self._studio.pcs.of(row.identity)
        telemetry = pc.sensors.latest(row.device) if row.device is not None else None
        is_used = self.used is not None and row.identity == self.used.identity
        offers = row.address is not None or row.obstacle is Obstacle.NO_ENGINE  # it keeps its place
        use = f"Use this {'CPU' if row.is_cpu else 'card'}" if offers and not is_used else ""
        only = "Only this card" if self._offers_only(row) else ""
        return msgspec.structs.replace(
            device_words(row, telemetry),
            is_used=is_used,
            use="Switching…" if self._using == row else use,
            can_use=self._can_use(row),
            only="Starting PyTorch…" if self._pending == row.identity else only,
            can_show_only=self._can_show_only(row),
        )

    def _offers_only(self, row: DeviceRow) -> bool:
        shown = self._session_of(row).environment.visible_devices
        uuid = row.device.uuid if row.device is not None else None
        is_seen = row.obstacle in (None, Obstacle.HIDDEN, Obstacle.NO_ENGINE)
        return self.has_several_cards and row.is_real_card and is_seen and uuid not in (None, shown)

    def _enter(self, row: DeviceRow, sentence: str) -> None:
        self._used = row.identity
        self.said = Notice(sentence, Tone.GOOD)
        self._studio.snippets.show(self.code, SWITCH)
        self._is_at = ""  # so that it moves there, and not back
        self._move()
        self.changed.emit()

    def _restart(self, pending: str, visible_devices: str | None) -> None:
        self._restarting = pending
        self.said = Notice("PyTorch starts anew. This takes some seconds…")
        configuration = self._session.environment.allocator_configuration
        self._session.restart(
            EngineEnvironment(
                visible_devices=visible_devices, allocator_configuration=configuration
            )
        )
        self.changed.emit()

    def _on_engine_described(self) -> None:
        if self._is_at and self.moved:
            self.said, self.proof = Notice(), Notice(_GONE, Tone.AMBER)
        self._is_at = ""
        self._on_restarted()

    def _on_restarted(self) -> None:
        description = self._session.description
        if self._restarting and description is not None:
            self._restarting = ""
            count = description.device_count if description.cuda_available else 0
            tone = Tone.GOOD if count else Tone.AMBER
            self.said = Notice(f"PyTorch sees {counted(count, 'card')} now.", tone)
        self.changed.emit()

    # ── what is moved ────────────────────────────────────────────────────────────────────────

    @property
    def models(self) -> tuple[ModelDescription, ...]:
        description = self._session.description
        return description.models if description else ()

    @property
    def things(self) -> list[tuple[str, str]]:
        """What can be moved: a title and its key for each."""
        return [(model.title, model.name) for model in self.models]

    @property
    def thing(self) -> str:
        """The key of what is moved; empty if there is nothing."""
        keys = [key for _, key in self.things]
        return self.choices.thing if self.choices.thing in keys else next(iter(keys), "")

    @property
    def about(self) -> str:
        """The sentence about it."""
        return next((one.sentence for one in self.models if one.name == self.thing), "")

    @property
    def placed(self) -> list[tuple[Cell, ...]]:
        """The tensors that were moved, for a table: with their device before and after."""
        return [_cells(row) for row in self.moved]

    @property
    def is_moving(self) -> bool:
        return self._reply is not None and self._using is None

    @property
    def move_label(self) -> str:
        """The label of the button: where it moves to, or that it goes back."""
        if self.is_moving:
            return "Moving…"
        target = self._target
        if not target:
            return "Move"
        return f"Move {'back ' if target != self._there else ''}to {target}"

    @property
    def can_move(self) -> bool:
        return bool(self._target) and self.can_choose

    @property
    def can_choose(self) -> bool:
        """Whether another thing can be chosen."""
        return bool(self.models) and self._reply is None

    @property
    def tone(self) -> Tone:
        """How good or bad the outcome is."""
        return self.said.tone if self.proof.tone is Tone.PLAIN else self.proof.tone

    def move(self) -> None:
        """Move the thing to the device in use, or back if it came from another one."""
        self.said = Notice()
        self._move()

    def _move(self) -> None:
        target, dtype = self._target, self.choices.dtype
        if not self.can_move:
            return
        request = PlaceModel(model=self.thing, device=target, dtype=dtype)
        self._moved_thing, self._came_from, self._is_at = self.thing, "", ""
        self.moved.clear()
        self.proof = Notice("Moving…")
        self._submit(self._session, request)

    def _submit(self, session: EngineSession, request: UseDevice | PlaceModel) -> None:
        self._reply = session.submit(request)
        self._reply.event_received.connect(self._on_event_received)
        self._reply.finished.connect(self._on_finished)
        self.changed.emit()

    def on_chosen(self) -> None:
        """Clear what belongs to another thing."""
        if self._reply is None and self.thing != self._moved_thing:
            self.moved.clear()
            self.proof, self._is_at = Notice(), ""

    @property
    def _there(self) -> str:
        row = self.used
        return (row.address if row is not None else None) or ""

    @property
    def _target(self) -> str:
        """Where it moves to: to the device in use, or back; empty if there is no such device."""
        is_there = self._is_at == self._there and self.thing == self._moved_thing
        came_from = self._came_from if is_there else ""
        is_known = came_from in [row.address for row in self.rows]
        return came_from if came_from != self._is_at and is_known else self._there

    def _on_event_received(self, event: Event) -> None:
        if isinstance(event, PlaceRow):
            self._came_from = event.device_before
            self.moved.append(event)

    def _on_finished(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        used, self._using = self._using, None
        match event:
            case DeviceUsed() if used is not None:
                kind, name = event.device.partition(":")[0], without_maker(event.name)
                self._enter(used, f"New “{kind}” tensors go to {event.device} {name} now.")
            case PlaceFinished():
                words = explain_move(event, self._link_of(event.device))
                self._note_move(event.device, words, _TONES[event.same_output])
            case _ if used is not None:
                self.said = _why_not(event)
            case _:
                self.proof = _why_not(event)
        self.changed.emit()

    def _note_move(self, device: str, words: str, tone: Tone) -> None:
        self._is_at = device
        self.proof = Notice(words, tone)
        if not self.said.sentence:
            title = {key: title for title, key in self.things}.get(self._moved_thing or "")
            self.said = Notice(
                f"{title} is on {device} now.", Tone.GOOD if tone is Tone.PLAIN else tone
            )

    def _link_of(self, address: str) -> Link | None:
        row = self._board.at(address)
        return widest_link(row.device) if row is not None and row.device is not None else None


def _why_not(event: Event | None) -> Notice:
    """Return why there is no answer."""
    match event:
        case RequestFailed():
            return Notice(explain_failure(event.failure), Tone.FAILURE)
        case EngineEnded():
            return Notice(explain_end(event), Tone.FAILURE)
        case _:
            return Notice()


def _cells(row: PlaceRow) -> tuple[Cell, ...]:
    """Return the row of a tensor: each cell with what it is, two with the device that they name."""
    tip = f"{row.name}: {row.kind}{_KINDS.get(row.kind, '')}, {row.dtype}"
    shape = " × ".join(map(str, row.shape)) or "scalar"
    before, after = row.device_before, row.device_after
    texts = (row.name, shape, row.dtype, format_count(row.bytes))
    devices = (Cell(one, one, tip) for one in (before, after))
    return (*(Cell(text, value=tip) for text in texts), *devices)
