"""The devices of all PCs, for every tab: one row each, and one answer to "can PyTorch use it?"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import (
    CPU,
    DeviceName,
    address_at,
    address_there,
    is_cpu,
    name_at,
)
from gpu_studio.core.devices.access import (
    ABOUT_THE_CARD,
    Obstacle,
    discrete_first,
    obstacle_of,
    obstacle_words,
    uncounted_cards,
)
from gpu_studio.core.devices.adapters import card_of
from gpu_studio.core.devices.devices import COLOR_COUNT, short_name, with_cards
from gpu_studio.core.notice import Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.messages.engine_messages import Adapter, EngineDescribed
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.model.settings import Settings


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU or one card.

    Attributes:
        identity: its permanent name, by which everything in the window chooses it. That of a device
            of another PC begins with the PC's name.
        name: the full name; of a device of another PC without the PC's.
        label: a short name that no other row has: ``P40 · attic``.
        address: the device in a request, ``cpu``, ``cuda:0`` or ``attic/cuda:0``; None if PyTorch
            cannot use it now.
        obstacle: why PyTorch cannot use it; None if it can.
        reason: the obstacle as a sentence, with what to do about it where that is known.
        finding: the worst problem that this PC's findings report about it.
        number: the device's name in this engine, even if CUDA does not work; None if it has none.
        is_current: whether new "cuda" tensors go to it.
        is_modelled: whether it is a card of a chosen size that only the allocator's model has.
        device: its facts; None if the sensors do not know it.
        adapter: what its driver says of it; None of a device that PyTorch works on.
        pc: the name of its PC; empty for this one.
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
    adapter: Adapter | None = None
    pc: str = ""

    @property
    def is_cpu(self) -> bool:
        return is_cpu(self.identity)

    @property
    def is_real_card(self) -> bool:
        """Whether it is a card of PyTorch's, and not a simulated one."""
        return not (self.is_cpu or self.is_modelled or self.adapter)


class DeviceBoard(QObject):
    """The devices according to the sensors, the engine, and the findings of each PC.

    A choice of a device is its identity. Whoever sends a request asks the board for the address
    that the device has in its engine now. The devices of another PC stay while it is not connected,
    if they were known before.

    Signals:
        changed(): a device came, went or got another number, or PyTorch can use others now.

    Attributes:
        rows: all devices: those of this PC first, of each PC the CPU and then the cards; at the
            end, this PC's adapters, once they are known.
    """

    changed = Signal()

    def __init__(self, pcs: Pcs, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pcs, self._settings = pcs, settings
        self._by_color = settings.choices.cards
        self._engines: dict[str, EngineDescribed] = {}
        self.rows: tuple[DeviceRow, ...] = device_rows(None, None)
        for pc in pcs.all:
            self._listen(pc)
        pcs.adapters.changed.connect(self._update)
        pcs.added.connect(self._listen)
        pcs.removed.connect(self._forget)
        pcs.changed.connect(self._update)

    @property
    def is_complete(self) -> bool:
        """Whether both the sensors and the engine of this PC have reported."""
        return self._pcs.here.sensors.inventory is not None and "" in self._engines

    @property
    def cpu(self) -> DeviceRow:
        """The CPU of this PC."""
        return self.rows[0]

    @property
    def cpus(self) -> tuple[DeviceRow, ...]:
        return tuple(row for row in self.rows if row.is_cpu)

    @property
    def cards(self) -> tuple[DeviceRow, ...]:
        """The cards of all PCs, without the adapters."""
        return tuple(row for row in self.of_pytorch if not row.is_cpu)

    @property
    def of_pytorch(self) -> tuple[DeviceRow, ...]:
        """The devices without the adapters."""
        return tuple(row for row in self.rows if row.adapter is None)

    @property
    def adapters(self) -> tuple[DeviceRow, ...]:
        """What computes here without PyTorch, beside the CPU; none before it is known."""
        return tuple(row for row in self.rows if row.adapter is not None)

    @property
    def usable(self) -> tuple[DeviceRow, ...]:
        """The devices that PyTorch can use, in the order of `rows`."""
        return tuple(row for row in self.of_pytorch if row.obstacle is None)

    @property
    def usable_cards(self) -> tuple[DeviceRow, ...]:
        return tuple(row for row in self.usable if not row.is_cpu)

    @property
    def usable_here(self) -> tuple[DeviceRow, ...]:
        """The devices of this PC that PyTorch can use, the CPU first."""
        return tuple(row for row in self.usable if not row.pc)

    @property
    def current(self) -> DeviceRow:
        """The card that "cuda" means in this PC's engine, or the CPU if there is none."""
        here = (row for row in self.cards if row.is_current and not row.pc)
        return next(here, self.cpu)

    def row(self, identity: str) -> DeviceRow | None:
        return next((row for row in self.rows if row.identity == identity), None)

    def at(self, address: str) -> DeviceRow | None:
        """Return the device that its engine calls ``cpu`` or ``cuda:N``."""
        return row_at(address, self.rows)

    def identity_of(self, address: str) -> str:
        """Return the identity of a device; its address if unknown."""
        row = self.at(address)
        return row.identity if row is not None else address

    @property
    def colors(self) -> dict[str, int]:
        """The color of each known card, by its identity and by its number in its engine.

        The CPU of another PC has one as well, so that two CPUs do not look alike. A card without a
        UUID has the color of its number, or one that no other card has: nothing says that it is the
        same card tomorrow.
        """
        colors = {identity: color for color, identity in enumerate(self._by_color)}
        colored = self._colored
        for row in colored:
            if row.number is not None and row.adapter is None:
                usual = DeviceName.parse(row.number).index or 0
                colors[row.number] = colors.setdefault(row.identity, usual)
        for row in colored:
            if row.identity not in colors:
                used = {colors.get(one.identity) for one in colored}
                is_software = row.adapter is not None and row.adapter.is_software
                # The first color is a card's.
                free = [one for one in range(int(is_software), COLOR_COUNT) if one not in used]
                colors[row.identity] = free[0] if free else COLOR_COUNT - 1
            if row.adapter is not None:
                colors[row.adapter.address] = colors[row.identity]
        return colors

    def card_named(self, name: str) -> str:
        """Return the identity of the only card of a name; empty if there is none or several."""
        cards = [row.identity for row in self.cards if row.name == name]
        return cards[0] if len(cards) == 1 else ""

    @property
    def _colored(self) -> list[DeviceRow]:
        return [row for row in self.rows if row.pc or not row.is_cpu]

    def _note_colors(self) -> None:
        present = [
            row
            for row in self._colored
            if row.is_cpu or (row.device is not None and row.device.uuid)
        ]
        present.sort(key=lambda row: (row.pc, row.is_cpu, row.number is None, row.number or ""))
        by_color = with_cards(self._by_color, [row.identity for row in present])
        if by_color != self._by_color:
            self._by_color = by_color
            self._settings.change(cards=by_color)

    def _listen(self, pc: Pc) -> None:
        pc.session.engine_described.connect(self._on_engine_described)
        pc.session.device_used.connect(self._update)
        pc.sensors.inventory_changed.connect(self._update)
        pc.doctor.findings_changed.connect(self._update)

    def _forget(self, pc: Pc) -> None:
        self._engines.pop(pc.name, None)

    def _on_engine_described(self) -> None:
        """Judge again; while a new engine starts, the answers are those of the last one."""
        for pc in self._pcs.all:
            if pc.session.description is not None:
                self._engines[pc.name] = pc.session.description
        self._update()

    def _update(self) -> None:
        rows = tuple(row for pc in self._pcs.all for row in self._rows_of(pc))
        inventory = self._pcs.here.sensors.inventory
        cards = inventory.cards if inventory is not None else ()
        rows += adapter_rows(self._pcs.adapters.adapters, cards)
        if rows != self.rows:
            self.rows = rows
            self._note_colors()
            self.changed.emit()

    def _rows_of(self, pc: Pc) -> tuple[DeviceRow, ...]:
        if pc.name and pc.sensors.inventory is None:
            return ()  # nothing is known of it yet
        rows = device_rows(
            pc.sensors.inventory,
            self._engines.get(pc.name),
            current=pc.session.current_device,
            findings=pc.doctor.findings,
        )
        if not pc.name:
            return rows
        why_not = pc.why_not or pc.session.absence
        return tuple(_row_of_other(row, pc.name, why_not) for row in rows)


def _row_of_other(row: DeviceRow, pc: str, why_not: str) -> DeviceRow:
    """Return a row as another PC's.

    Args:
        row: as that PC has it.
        pc: the PC's name.
        why_not: why nothing can be asked of that PC; empty if something can.
    """

    def named(name: str) -> str:
        return address_at(pc, address_there(name))

    own = msgspec.structs.replace(
        row,
        pc=pc,
        identity=named(row.identity),
        label=name_at(pc, row.label),
        number=named(row.number) if row.number is not None else None,
        address=named(row.address) if row.address is not None else None,
    )
    if not why_not:
        return own
    return msgspec.structs.replace(own, address=None, obstacle=Obstacle.NO_LINE, reason=why_not)


def row_at(address: str, rows: Sequence[DeviceRow]) -> DeviceRow | None:
    """Return the device that its engine calls ``cpu`` or ``cuda:N``."""
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
) -> tuple[DeviceRow, ...]:
    """Return the CPU and then every card: those of the sensors, or else those of the engine.

    Args:
        inventory: the devices with the numbers of this engine; None before they are found.
        engine: the engine's description of itself; None before it starts.
        current: the card chosen in this engine, ``cuda:1``; None for CUDA's default, the first.
        findings: the findings about this PC, worst first.
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
        obstacle = obstacle_of(card, engine)
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


def adapter_rows(adapters: Sequence[Adapter], cards: Sequence[Device]) -> tuple[DeviceRow, ...]:
    """Return what computes without PyTorch; equal names also get their addresses.

    Args:
        adapters: as their drivers say.
        cards: of this PC.
    """
    owners = [card_of(one, adapters, cards) for one in adapters]
    names = [
        f"{short_name(one.name) if card is None else card.short_name} by {one.interface}"
        for one, card in zip(adapters, owners, strict=True)
    ]
    return tuple(
        DeviceRow(
            identity=one.identity,
            name=one.full_name,
            label=name if names.count(name) == 1 else f"{name} ({one.address})",
            address=one.address,
            number=one.address,
            adapter=one,
        )
        for one, name in zip(adapters, names, strict=True)
    )


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
            if one.tone in (Tone.FAILURE, Tone.AMBER) and one.device_uuid in about
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
