"""The state of the Switcher's Pitfalls page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, PitfallFinished, RunPitfall
from gpu_studio.core.switcher.pitfall_words import compare_parts, has_paid
from gpu_studio.core.switcher.placement_words import explain_end, explain_failure

if TYPE_CHECKING:
    from gpu_studio.core.messages.pitfall_messages import PitfallDescription, PitfallOutcome
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.studio import Studio


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of one pitfall so far, and the effect of the fix on its numbers.

    ``untested`` is a sentence if nobody has run this program on such a card.
    """

    device: str = ""
    broken: PitfallOutcome | None = None
    fixed: PitfallOutcome | None = None
    broken_snippet: str = ""
    fixed_snippet: str = ""
    comparison: str = ""
    untested: str = ""
    has_paid: bool = True
    failure: str = ""


class PitfallsModel(QObject):
    """The pitfalls that the engine knows, and the outcomes of the tried ones.

    Signals:
        pitfalls_changed(): an engine described its pitfalls.
        tried_changed(str): a pitfall has a new outcome, by its name.
        running_changed(): a pitfall began or ended.

    Attributes:
        running: the running pitfall; None if none runs.
    """

    pitfalls_changed = Signal()
    tried_changed = Signal(str)
    running_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._board, self._pcs = studio.session, studio.board, studio.pcs
        self._tried: dict[str, Tried] = {}
        self.running: RunPitfall | None = None
        self._reply: Reply | None = None
        self._session.engine_described.connect(self._on_engine_described)
        self._board.changed.connect(self.pitfalls_changed)

    @property
    def what_is_missing(self) -> str:
        return self._session.what_is_missing

    @property
    def pitfalls(self) -> tuple[PitfallDescription, ...]:
        description = self._session.description
        return description.pitfalls if description else ()

    @property
    def devices(self) -> tuple[DeviceRow, ...]:
        """The devices to try them on: the usable cards, or this PC's CPU if it has none."""
        cards = self._board.usable_cards
        has_own = any(not card.pc for card in cards)
        return cards if has_own else (self._board.cpu, *cards)

    @property
    def can_run(self) -> bool:
        return bool(self.pitfalls) and self.running is None

    def tried(self, name: str) -> Tried:
        return self._tried.get(name, Tried())

    def run(self, name: str, part: str, identity: str) -> None:
        address = self._board.address_of(identity)
        if self.can_run and address is not None:
            self.running = RunPitfall(name=name, part=part, device=address)
            self._change(name, failure="")
            self.running_changed.emit()
            self._reply = self._pcs.session_of(address).submit(self.running)
            self._reply.finished.connect(self._finish)

    def stop(self) -> None:
        if self._reply is not None:
            self._reply.stop()

    def _finish(self) -> None:
        assert self.running is not None
        assert self._reply is not None
        name, event = self.running.name, self._reply.last
        match event:
            case PitfallFinished():
                self._add_outcomes(event)
            case PitfallFailed() | RequestFailed():
                self._change(name, failure=explain_failure(event.failure))
            case EngineEnded():
                self._change(name, failure=explain_end(event))
            case _:
                pass
        self.running = self._reply = None
        self.running_changed.emit()

    def _add_outcomes(self, event: PitfallFinished) -> None:
        before = self.tried(event.name)
        same = before.device in ("", event.device)
        broken = event.broken or (before.broken if same else None)
        fixed = event.fixed or (before.fixed if same else None)
        about = next(one for one in self.pitfalls if one.name == event.name)
        self._change(
            event.name,
            device=event.device,
            broken=broken,
            fixed=fixed,
            broken_snippet=event.broken_snippet,
            fixed_snippet=event.fixed_snippet,
            comparison=compare_parts(about, broken, fixed),
            untested=event.untested,
            has_paid=has_paid(broken, fixed),
        )

    def _change(self, name: str, **changes: object) -> None:
        self._tried[name] = msgspec.structs.replace(self.tried(name), **changes)
        self.tried_changed.emit(name)

    def _on_engine_described(self) -> None:
        self.pitfalls_changed.emit()
        self.running_changed.emit()
