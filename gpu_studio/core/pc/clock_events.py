"""Why a card's clocks are what they are, in words: NVML's clock-event reasons."""

from __future__ import annotations

# nvmlClocksEventReasons of nvml.h; more than one may hold.
_REASONS = {
    0x001: "idle", 0x002: "set by an application", 0x004: "at the power limit",
    0x008: "hardware brake", 0x010: "in step with other cards", 0x020: "hot (driver's brake)",
    0x040: "hot (hardware's brake)", 0x080: "power brake", 0x100: "set by the display",
}  # fmt: skip
# Those that make a card slower than it could be; the power limit is one, if a normal one.
_HELD_BACK = 0x004 | 0x008 | 0x020 | 0x040 | 0x080


def clock_event_words(reasons: int | None) -> str | None:
    """Return why the clocks are what they are, in words; None where the card does not say."""
    if reasons is None:
        return None
    return _words(reasons) or "not held back"


def held_back_words(reasons: int) -> str:
    """Return what holds a card back, in words; empty where nothing does."""
    return _words(reasons & _HELD_BACK)


def _words(reasons: int) -> str:
    return ", ".join(word for bit, word in _REASONS.items() if reasons & bit)
