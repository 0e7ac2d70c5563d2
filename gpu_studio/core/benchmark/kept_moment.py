"""When a run was kept: what sorts runs of several time zones, and what people read."""

from __future__ import annotations

import math
from datetime import datetime, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment_order(kept_at: str) -> tuple[float, str]:
    """Return what sorts times of any time zone: seconds since 1970 in UTC, then the text.

    A time without a zone counts as UTC; a text that is no time comes before all that are.
    """
    moment = _moment(kept_at)
    return (-math.inf if moment is None else (moment - _EPOCH).total_seconds()), kept_at


def shown_moment(kept_at: str) -> str:
    """Return a time by this PC's clock, to the minute; a text that is no time as it stands."""
    moment = _moment(kept_at)
    if moment is not None:
        try:
            return moment.astimezone().isoformat(" ")[:16]
        except (OverflowError, OSError, ValueError):
            pass  # at the ends of the calendar there is no local time
    return kept_at[:16].replace("T", " ")


def _moment(kept_at: str) -> datetime | None:
    try:
        # Python 3.10 does not read the Z that stands for UTC.
        moment = datetime.fromisoformat(
            kept_at.removesuffix("Z") + "+00:00" * kept_at.endswith("Z")
        )
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
