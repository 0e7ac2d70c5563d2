"""Choosing a device and moving a model there, as the Switcher tab knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.placement_words import explain_end, explain_failure, explain_move
from gpu_studio.core.protocol import (
    DeviceUsed,
    EngineEnded,
    Event,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    Request,
    RequestFailed,
    UseDevice,
)
from gpu_studio.model.card_rows import CardRow, card_rows, card_warnings, counted_rows
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.placement_table import PlacementTable

if TYPE_CHECKING:
    from gpu_studio.core.protocol import EngineDescribed, ModelDescription
    from gpu_studio.model.studio import Studio

Tone = Literal["", "good", "amber", "failure"]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence about what was done, and whether it is good news."""

    text: str = ""
    tone: Tone = ""


class PlacementModel(QObject):
    """Devices to choose from, the card in use, and where a model's tensors are.

    `table` has every parameter and buffer of the model that was moved last.

    Signals:
        rows_changed(): the devices or what is said of them changed.
        chosen_changed(): another device is chosen.
        choice_said(): there is something to say of using or showing a card.
        move_changed(): a move began, ended, or was forgotten.
    """

    rows_changed = Signal()
    chosen_changed = Signal()
    choice_said = Signal()
    move_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._session = studio.session
        self.table = PlacementTable(self)
        self._rows: list[CardRow] = []
        self._warnings: dict[str, str] = {}
        self._chosen = "cpu"
        self._chosen_by_hand = False
        self._using: UseDevice | None = None
        self._move: PlaceModel | None = None
        self._moved: PlaceModel | None = None
        self._said_of_choice = Said()
        self._said_of_move = Said()
        self._session.event_received.connect(self._receive)
        self._session.engine_described.connect(self._take_engine)
        self._session.state_changed.connect(self._list_rows)
        studio.sensors.inventory_changed.connect(self._judge)
        studio.sensors.reading_taken.connect(self._list_rows)
        self._judge()

    # ── choosing ─────────────────────────────────────────────────────────────────────────────

    @property
    def rows(self) -> list[CardRow]:
        """The CPU first, then every card; empty until the PC was looked at."""
        return self._rows

    @property
    def chosen(self) -> CardRow | None:
        """The device that is chosen; None until the PC was looked at."""
        return next((row for row in self._rows if row.identity == self._chosen), None)

    @property
    def said_of_choice(self) -> Said:
        """What came of using or showing a card."""
        return self._said_of_choice

    @property
    def is_one_shown(self) -> bool:
        """Whether this program's engine was started with some cards hidden."""
        return self._session.environment.visible_devices is not None

    @property
    def can_use(self) -> bool:
        """Whether the chosen card can be made the current one: it has a number in this engine."""
        row = self.chosen
        has_number = row is not None and row.cuda_index is not None
        return has_number and self._is_there and self._using is None

    @property
    def can_show_only(self) -> bool:
        """Whether a fresh engine can be made to see the chosen card alone."""
        row = self.chosen
        if row is None or row.uuid is None or not self._is_quiet:
            return False
        return self._session.environment.visible_devices != row.uuid

    @property
    def can_show_all(self) -> bool:
        """Whether there is a way back to all cards."""
        return self.is_one_shown and self._is_quiet

    def choose(self, identity: str) -> None:
        """Choose another device."""
        self._chosen_by_hand = True
        self._set_chosen(identity)

    def use(self) -> None:
        """Make the chosen card the current one (``torch.cuda.set_device``)."""
        row = self.chosen
        if self.can_use and row is not None and row.cuda_index is not None:
            self._using = UseDevice(cuda_index=row.cuda_index)
            self._say_of_choice("")
            self._session.submit(self._using)

    def show_only(self) -> None:
        """Start a fresh engine that sees only the chosen card."""
        row = self.chosen
        if self.can_show_only and row is not None:
            self._say_of_choice("A fresh engine is starting that sees this card alone.")
            self._restart(row.uuid)

    def show_all(self) -> None:
        """Start a fresh engine that sees every card."""
        if self.can_show_all:
            self._say_of_choice("A fresh engine is starting that sees every card.")
            self._restart(None)

    def _restart(self, visible_devices: str | None) -> None:
        kept = self._session.environment.allocator_configuration
        self._session.restart(
            EngineEnvironment(visible_devices=visible_devices, allocator_configuration=kept)
        )

    @property
    def _is_there(self) -> bool:
        return self._session.description is not None

    @property
    def _is_quiet(self) -> bool:
        """Whether a restart would end nobody's run."""
        return self._session.state in (EngineState.READY, EngineState.FAILED)

    # ── moving ───────────────────────────────────────────────────────────────────────────────

    @property
    def models(self) -> tuple[ModelDescription, ...]:
        """The built-in models that the engine can move; empty until it is there."""
        description = self._session.description
        return description.models if description else ()

    @property
    def is_moving(self) -> bool:
        """Whether the engine has not answered yet."""
        return self._move is not None

    @property
    def can_move(self) -> bool:
        """Whether a model can be moved to the chosen device now."""
        row = self.chosen
        has_address = row is not None and row.address is not None
        return has_address and bool(self.models) and not self.is_moving

    @property
    def said_of_move(self) -> Said:
        """What the last move proved, or why it could not be done."""
        return self._said_of_move

    def move(self, model: str) -> None:
        """Move a built-in model to the chosen device."""
        row = self.chosen
        if self.can_move and row is not None and row.address is not None:
            self._move = PlaceModel(model=model, device=row.address)
            self.table.clear()
            self._say_of_move("The model is on its way.")
            self._session.submit(self._move)

    def forget_move(self) -> None:
        """Show nothing of the last move: another model is looked at."""
        if self._move is None:
            self._moved = None
            self.table.clear()
            self._say_of_move("")

    # ── what comes ───────────────────────────────────────────────────────────────────────────

    def _receive(self, request: Request, event: Event) -> None:
        if isinstance(event, DeviceUsed):
            self._list_rows()
        if request is self._using:
            self._answer_use(event)
        elif request is self._move:
            self._answer_move(event)

    def _answer_use(self, event: Event) -> None:
        self._using = None
        match event:
            case DeviceUsed():
                name = event.name.removeprefix("NVIDIA ")
                text = f"cuda:{event.cuda_index} {name} is now the current card."
                self._say_of_choice(text, "good")
            case RequestFailed():
                self._say_of_choice(explain_failure(event.failure), "failure")
            case EngineEnded():
                self._say_of_choice(explain_end(event), "failure")
            case _:
                pass
        self.rows_changed.emit()

    def _answer_move(self, event: Event) -> None:
        match event:
            case PlaceRow():
                self.table.append(event)
                return
            case PlaceFinished():
                tone: Tone = "good" if event.same_output else "amber"
                if event.same_output is False:
                    tone = "failure"
                self._moved, self._move = self._move, None
                self._say_of_move(explain_move(event), tone)
            case RequestFailed():
                self._move = None
                self._say_of_move(explain_failure(event.failure), "failure")
            case EngineEnded():
                self._move = None
                self._say_of_move(explain_end(event), "failure")
            case _:
                pass

    def _take_engine(self, description: EngineDescribed) -> None:
        self._using = None
        if self._said_of_choice.text and not self._said_of_choice.tone:
            count = description.device_count if description.cuda_available else 0
            sees = "1 card" if count == 1 else f"{count} cards"
            self._say_of_choice(f"The fresh engine sees {sees}.", "good" if count else "amber")
        if self._moved is not None:
            self._moved = None
            text = f"{self._said_of_move.text}  ·  that engine has ended, and the model with it"
            self._say_of_move(text)
        self._judge()
        self.move_changed.emit()

    def _say_of_choice(self, text: str, tone: Tone = "") -> None:
        self._said_of_choice = Said(text=text, tone=tone)
        self.choice_said.emit()

    def _say_of_move(self, text: str, tone: Tone = "") -> None:
        self._said_of_move = Said(text=text, tone=tone)
        self.move_changed.emit()

    def _judge(self) -> None:
        """Find out anew why a card cannot be used, and list the devices."""
        inventory = self._studio.sensors.inventory
        if inventory is not None:
            self._warnings = card_warnings(inventory, self._session.description)
        self._list_rows()

    def _list_rows(self) -> None:
        inventory, session = self._studio.sensors.inventory, self._session
        if inventory is not None:
            self._rows = card_rows(
                inventory,
                session.description,
                session.current_device,
                self._studio.sensors.latest,
                self._warnings,
            )
        elif session.description is not None:
            self._rows = counted_rows(session.description, session.current_device)
        else:
            return
        self.rows_changed.emit()
        if not self._chosen_by_hand or self.chosen is None:
            current = next((row.identity for row in self._rows if row.is_current), "cpu")
            self._set_chosen(current)

    def _set_chosen(self, identity: str) -> None:
        if identity != self._chosen:
            self._chosen = identity
            self.chosen_changed.emit()
