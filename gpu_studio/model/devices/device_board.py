"""The devices of this PC, for every tab: one row each, with one answer to "can PyTorch use it?"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import CPU, DeviceName
from gpu_studio.core.devices.access import (
    ABOUT_THE_CARD,
    Obstacle,
    discrete_first,
    obstacle_of,
    obstacle_words,
    uncounted_cards,
)
from gpu_studio.core.devices.card_colors import COLOR_COUNT, with_cards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.devices.torch_facts import PcProbed
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.model.doctor import Doctor
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors
    from gpu_studio.model.settings import Settings


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU or one card.

    Attributes:
        identity: its permanent name, by which everything in the window chooses it.
        name: the full name.
        label: a short name that no other row has.
        address: the device in a request, ``cpu`` or ``cuda:0``; None if PyTorch cannot use it.
        obstacle: why PyTorch cannot use it; None if it can.
        reason: the obstacle as a sentence, with what to do about it where that is known.
        finding: the worst problem that this PC's findings report about it.
        number: the device's name in this engine, even if CUDA does not work; None if it has none.
        is_current: whether new "cuda" tensors go to it.
        is_modelled: whether it is a card of a chosen size that only the allocator's model has.
        device: its facts; None if the sensors do not know it.
    """

    identity: str
    name: str
    label: str
    address: str | None = None
    obstacle: Obstacle | None = None
    reason: str = ""
    finding: Finding | None = None
    number: str | None = None
    is_current: bool = False
    is_modelled: bool = False
    device: Device | None = None

    @property
    def is_cpu(self) -> bool:
        return self.identity == CPU

    @property
    def is_real_card(self) -> bool:
        """Whether it is a card of this PC."""
        return not self.is_cpu and not self.is_modelled


class DeviceBoard(QObject):
    """The devices according to the sensors, the engine, and the findings about them.

    A choice of a device is its identity. Whoever sends a request asks the board for the address
    that the device has in the engine now.

    Signals:
        changed(): a device came, went or got another number, or PyTorch can use others now.
    """

    changed = Signal()

    def __init__(
        self,
        session: EngineSession,
        sensors: Sensors,
        doctor: Doctor,
        settings: Settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._sensors, self._doctor = session, sensors, doctor
        self._settings, self._by_color = settings, settings.choices.cards
        self._engine: EngineDescribed | None = None
        self.rows: tuple[DeviceRow, ...] = device_rows(None, None)
        session.engine_described.connect(self._on_engine_described)
        session.device_used.connect(self._update)
        sensors.inventory_changed.connect(self._update)
        doctor.findings_changed.connect(self._update)

    @property
    def is_complete(self) -> bool:
        """Whether both the sensors and the engine have reported."""
        return self._sensors.inventory is not None and self._engine is not None

    @property
    def cpu(self) -> DeviceRow:
        return self.rows[0]

    @property
    def cards(self) -> tuple[DeviceRow, ...]:
        """The cards of this PC."""
        return self.rows[1:]

    @property
    def usable(self) -> tuple[DeviceRow, ...]:
        """The devices that PyTorch can use, the CPU first."""
        return tuple(row for row in self.rows if row.obstacle is None)

    @property
    def usable_cards(self) -> tuple[DeviceRow, ...]:
        return self.usable[1:]

    @property
    def current(self) -> DeviceRow:
        """The card that "cuda" means in this engine, or the CPU if there is none."""
        return next((row for row in self.cards if row.is_current), self.cpu)

    def row(self, identity: str) -> DeviceRow | None:
        return next((row for row in self.rows if row.identity == identity), None)

    def address_of(self, identity: str) -> str | None:
        """Return the device in a request to this engine; None if the engine cannot use it."""
        row = self.row(identity)
        return row.address if row is not None else None

    def at(self, address: str) -> DeviceRow | None:
        """Return the device that this engine calls ``cpu`` or ``cuda:N``."""
        return row_at(address, self.rows)

    def identity_of(self, address: str) -> str:
        """Return the identity of a device of this engine; its address if unknown."""
        row = self.at(address)
        return row.identity if row is not None else address

    @property
    def colors(self) -> dict[str, int]:
        """The color of each known card, by its identity and by its number in this engine.

        A card without a UUID has the color of its number, or one that no other card has: nothing
        says that it is the same card tomorrow.
        """
        colors = {identity: color for color, identity in enumerate(self._by_color)}
        for row in self.cards:
            if row.number is not None:
                usual = DeviceName.parse(row.number).index or 0
                colors[row.number] = colors.setdefault(row.identity, usual)
        for row in self.cards:
            if row.identity not in colors:
                used = {colors.get(one.identity) for one in self.cards}
                free = [color for color in range(COLOR_COUNT) if color not in used]
                colors[row.identity] = free[0] if free else COLOR_COUNT - 1
        return colors

    def card_named(self, name: str) -> str:
        """Return the identity of the only card of a name; empty if there is none or several."""
        cards = [row.identity for row in self.cards if row.name == name]
        return cards[0] if len(cards) == 1 else ""

    def _note_colors(self) -> None:
        present = [row for row in self.cards if row.device is not None and row.device.uuid]
        present.sort(key=lambda row: (row.number is None, row.number or ""))
        by_color = with_cards(self._by_color, [row.identity for row in present])
        if by_color != self._by_color:
            self._by_color = by_color
            self._settings.change(cards=by_color)

    def _on_engine_described(self, description: EngineDescribed) -> None:
        """Judge again; while a new engine starts, the answers are those of the last one."""
        self._engine = description
        self._update()

    def _update(self) -> None:
        rows = device_rows(
            self._sensors.inventory,
            self._engine,
            current=self._session.current_device,
            findings=self._doctor.findings,
            probe=self._doctor.probed,
        )
        if rows != self.rows:
            self.rows = rows
            self._note_colors()
            self.changed.emit()


def row_at(address: str, rows: Sequence[DeviceRow]) -> DeviceRow | None:
    """Return the device that the engine of these rows calls ``cpu`` or ``cuda:N``."""
    return next((row for row in rows if row.number == address), None)


def label_of(address: str, rows: Sequence[DeviceRow]) -> str:
    """Return the label of a device; its address if unknown."""
    row = row_at(address, rows)
    return row.label if row is not None else address


def device_rows(
    inventory: Inventory | None,
    engine: EngineDescribed | None,
    *,
    current: str | None = None,
    findings: Sequence[Finding] = (),
    probe: PcProbed | None = None,
) -> tuple[DeviceRow, ...]:
    """Return the CPU and then every card: those of the sensors, or else those of the engine.

    Args:
        inventory: the devices with the numbers of this engine; None before they are found.
        engine: the engine's description of itself; None before it starts.
        current: the card chosen in this engine, ``cuda:1``; None for CUDA's default, the first.
        findings: the findings about this PC, worst first.
        probe: the results of a real kernel on each card, if the cards were tested.
    """
    cpu = inventory.cpu if inventory is not None else None
    rows = [
        DeviceRow(
            identity=CPU,
            name=cpu.name if cpu else "CPU",
            label="CPU",
            address=CPU,
            number=CPU,
            device=cpu,
        )
    ]
    if current is None and engine is not None:
        current = engine.first_address
    known = inventory.cards if inventory is not None else ()
    cards = discrete_first((*known, *uncounted_cards(known, engine)))
    for card in cards:
        obstacle = obstacle_of(card, engine, probe)
        finding = _worst_about(card, obstacle, findings) if engine is not None else None
        is_counted = obstacle in (None, Obstacle.NO_CODE)
        rows.append(
            DeviceRow(
                identity=card.identity if card in known else _identity(card),
                name=card.name or "Card",
                label=_label(card, cards),
                address=card.address if obstacle is None else None,
                obstacle=obstacle,
                reason=_reason(obstacle, card, engine, finding) if obstacle is not None else "",
                finding=finding,
                number=card.address,
                is_current=is_counted and card.address == current,
                device=card if card in known else None,
            )
        )
    return tuple(rows)


def _identity(card: Device) -> str:
    """Return the name of a card that only the engine knows: its number if it reports no other."""
    return card.uuid or card.pci_bus_id or card.address or ""


def _label(card: Device, cards: Sequence[Device]) -> str:
    """Return the card's short name; cards of the same name also get their addresses."""
    if not card.name:
        return card.address or card.identity
    if sum(other.name == card.name for other in cards) > 1:
        return f"{card.short_name} ({card.address or card.pci_bus_id or card.identity})"
    return card.short_name


def _worst_about(
    card: Device, obstacle: Obstacle | None, findings: Sequence[Finding]
) -> Finding | None:
    """Return the worst problem of a card; of the whole PC if that may be why it is not usable."""
    if any(one.code == "ok" and one.device_uuid == card.identity for one in findings):
        return None
    is_own = obstacle is None or obstacle in ABOUT_THE_CARD
    about = (card.identity,) if is_own else (card.identity, None)
    return next(
        (
            one
            for one in findings
            if one.severity in ("failure", "warning") and one.device_uuid in about
        ),
        None,
    )


def _reason(
    obstacle: Obstacle, card: Device, engine: EngineDescribed | None, finding: Finding | None
) -> str:
    """Return an obstacle as a sentence; a finding also says what to do about it."""
    own_words = (Obstacle.NO_ENGINE, Obstacle.HIDDEN, Obstacle.ASLEEP, *ABOUT_THE_CARD)
    if finding is None or obstacle in own_words:
        return obstacle_words(obstacle, card, engine)
    return finding.sentence
