"""A stand-in for NVAPI's functions by number, with scripted answers: no library, no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.hardware.nvidia import nvapi

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

INCOMPATIBLE, NOT_SUPPORTED = -9, -104
ABSENT = 255  # no primary channel of a type


class FakeCard:
    """One card: ``channels`` are degrees by channel, ``primary`` the channel of each type."""

    def __init__(
        self,
        bus: int,
        channels: dict[int, float],
        primary: tuple[int, ...] = (0, 1, ABSENT, 7, ABSENT),
        **statuses: int,
    ) -> None:
        self.bus, self.channels, self.primary = bus, channels, primary
        self.statuses = statuses
        self.stamps: dict[str, int] = {}


class FakeNvapi:
    """Its `query` is `nvapi_QueryInterface`; ``missing`` are the numbers that it does not know."""

    def __init__(
        self, *cards: FakeCard, missing: tuple[int, ...] = (), initialize: int = 0
    ) -> None:
        self.cards, self.missing, self.initialize = cards, missing, initialize
        self.hangs_until: threading.Event | None = None
        self.asked: list[str] = []
        self._functions: dict[int, Callable[..., int]] = {
            nvapi.INITIALIZE: lambda: self.initialize,
            nvapi.UNLOAD: self._unload,
            nvapi.ENUM_PHYSICAL_GPUS: self._enumerate,
            nvapi.GET_BUS_ID: self._bus,
            nvapi.CHANNEL_INFO: self._info,
            nvapi.CHANNEL_STATUS: self._status,
        }

    def query(self, number: int) -> Callable[..., int] | None:
        return None if number in self.missing else self._functions[number]

    def session(self) -> nvapi.Nvapi:
        return nvapi.Nvapi(self.query)

    def _unload(self) -> int:
        self.asked.append("unload")
        return 0

    def _enumerate(self, handles: Any, count: Any) -> int:
        for place in range(len(self.cards)):
            handles[place] = 0x1000 + place
        count._obj.value = len(self.cards)
        return 0

    def _bus(self, handle: Any, bus: Any) -> int:
        bus._obj.value = self._card(handle).bus
        return 0

    def _info(self, handle: Any, answer: Any) -> int:
        self.asked.append("info")
        card, info = self._card(handle), answer._obj
        assert info.version == 2736 | 2 << 16
        info.version = card.stamps.get("info", info.version)
        info.mask = sum(1 << channel for channel in card.channels)
        info.primary[:] = card.primary
        return card.statuses.get("info", 0)

    def _status(self, handle: Any, answer: Any) -> int:
        self.asked.append("status")
        if self.hangs_until is not None:
            self.hangs_until.wait()
        card, status = self._card(handle), answer._obj
        assert status.version == 168 | 2 << 16
        assert status.mask == sum(1 << channel for channel in card.channels)
        status.version = card.stamps.get("status", status.version)
        for channel, degrees in card.channels.items():
            status.values[channel] = round(degrees * 256)
        return card.statuses.get("status", 0)

    def _card(self, handle: Any) -> FakeCard:
        return self.cards[handle.value - 0x1000]
