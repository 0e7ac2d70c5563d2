"""What a page shows: one model with frozen choices, and properties in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import SignalInstance


WORK = frozenset({"compute", "computing"})
"""The parts of a bar that are the work itself."""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar of a group; without a value it has not run.

    Attributes:
        name: the name at the left.
        value: its length, in the unit of the group; None shows an empty track.
        text: the value with its unit, at the right.
        role: its color, by default that of ``device``.
        device: the address.
        parts: what the value is the sum of, by name; empty if the bar is whole.
        is_hatched: whether it needs another mark besides color.
        interval: where the value may lie, in the unit of the group.
        verdict: what the value means, behind it; bold if it ``counts``.
        counts: whether the verdict is a difference that counts.
        tip: the text that appears under the mouse; by default the name and the value.
    """

    name: str
    value: float | None = None
    text: str = ""
    role: str = ""
    device: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    is_hatched: bool = False
    interval: tuple[float, float] | None = None
    verdict: str = ""
    counts: bool = False
    tip: str = ""


class PageModel(QObject):
    """The base of a page's model.

    A subclass has properties for everything that the page shows. Their words come from the last
    answer, never from the present choices.

    Args:
        choices: what the controls of the page show at first: a frozen struct.
        parent: owns it.

    Signals:
        changed(): something that the page shows may differ.

    Attributes:
        choices: what is chosen.
        is_seen: whether the page is visible: what costs time is asked only then.
    """

    changed = Signal()

    def __init__(
        self, choices: msgspec.Struct | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.choices: Any = choices
        self.is_seen = False
        self._followed: list[tuple[SignalInstance, Callable[..., object]]] = []

    def choose(self, **choices: object) -> None:
        """Change some of the choices; the same ones again change nothing."""
        new = self.suited(msgspec.structs.replace(self.choices, **choices))
        if new != self.choices:
            self.choices = new
            self.on_chosen()
            self.changed.emit()

    def suited(self, choices: Any) -> Any:
        """Return choices in which those that do not suit the others are the usual ones."""
        return choices

    def on_chosen(self) -> None:
        """Ask anew, or remember the choices: they just changed."""

    def on_seen(self) -> None:
        """Ask what was left out while the page was hidden."""

    def see(self, *, is_seen: bool) -> None:
        """Note whether the page is visible."""
        if is_seen != self.is_seen:
            for signal, slot in self._followed:
                (signal.connect if is_seen else signal.disconnect)(slot)
        self.is_seen = is_seen
        if is_seen:
            self.on_seen()

    def follow_seen(self, slot: Callable[..., object], *signals: SignalInstance) -> None:
        """Call a slot with each of these, while the page is visible."""
        self._followed += ((signal, slot) for signal in signals)

    def follow(self, *signals: SignalInstance) -> None:
        """Say `changed` with each of these."""
        for signal in signals:
            signal.connect(self._on_followed)

    def _on_followed(self) -> None:
        self.changed.emit()
