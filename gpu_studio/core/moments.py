"""Times in ISO 8601, as records keep them: now, in order, and as this PC shows them."""

from __future__ import annotations

import math
from datetime import datetime, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def local_now() -> str:
    """Return the time by this PC's clock in ISO 8601, to the second, with its zone."""
    return datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")


def moment_order(kept_at: str) -> tuple[float, str]:
    """Return the sort key of a time in any time zone: seconds since 1970 in UTC, then the text.

    A time without a zone counts as UTC; a text that is not a time comes before all times.
    """
    moment = _moment(kept_at)
    return (-math.inf if moment is None else (moment - _EPOCH).total_seconds()), kept_at


def shown_moment(kept_at: str) -> str:
    """Return a time by this PC's clock, to the minute; a text that is not a time unchanged."""
    moment = _moment(kept_at)
    if moment is not None:
        try:
            return moment.astimezone().isoformat(" ")[:16]
        except (OverflowError, OSError, ValueError):
            pass  # no local time at the ends of the calendar
    return kept_at[:16].replace("T", " ")


def written_moment(kept_at: str, *, with_zone: bool = False) -> str:
    """Return a time as the clock of its own PC showed it: ``November 22, 2026, 14:40``.

    A text that is not a time is returned unchanged. With its zone, it ends with ``(UTC+01:00)``.
    """
    moment = _parsed(kept_at)
    if moment is None:
        return kept_at[:16].replace("T", " ")
    zone = f" (UTC{moment.isoformat()[-6:]})" if with_zone and moment.tzinfo else ""
    return f"{_MONTHS[moment.month - 1]} {moment.day}, {moment.year}, {moment:%H:%M}{zone}"


def _moment(kept_at: str) -> datetime | None:
    moment = _parsed(kept_at)
    if moment is None:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _parsed(kept_at: str) -> datetime | None:
    try:
        # Python 3.10 does not read the Z for UTC.
        return datetime.fromisoformat(kept_at.removesuffix("Z") + "+00:00" * kept_at.endswith("Z"))
    except ValueError:
        return None
