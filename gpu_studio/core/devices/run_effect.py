"""The effect of a run on its card, from the sensors: ``P8 → P0, +14 °C``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.devices.sensor_history import pstate_change
from gpu_studio.core.devices.sensor_kinds import sensors_of
from gpu_studio.core.telemetry import ClockReason, held_back_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpu_studio.core.devices.sensor_history import SensorTrack

# The sentence names the highest value of these, and for temperature and memory also the rise.
_SHOWN_HIGHEST = {"power": "power", "clock": "SM clock"}
_OF_CPU = {"utilization": "CPU", "memory": "RAM", "temperature": "temperature"}
_OF_CARD = {"utilization": "GPU", "memory": "VRAM", "temperature": "temperature"}
_SHOWN_CHANGES = ("temperature", "memory")
# A load that rounds to zero: these readings come from the idle device before or after the run.
_IDLE_PERCENT = 0.5


def effect_sentence(title: str, began_s: float, ended_s: float, track: SensorTrack) -> str:
    """Return the sensors' view of a run, or a sentence that says why there is none.

    Args:
        title: what ran.
        began_s: when it began, by the sensors' clock.
        ended_s: when it ended.
        track: the readings of its device.
    """
    values_of = track.between(began_s, ended_s)
    during = {key: values[values_of["time"] >= began_s] for key, values in values_of.items()}
    if not len(during["time"]):
        return f"{title}: too short for a sensor reading."
    parts = [_most_awake(values_of["pstate"])]
    busy = _known(during["utilization"])
    saw_it = not len(busy) or float(busy.max()) >= _IDLE_PERCENT
    names = _SHOWN_HIGHEST | (_OF_CPU if track.device.is_cpu else _OF_CARD)
    for kind in sensors_of(track.device):
        values, inside = _known(values_of[kind.key]), _known(during[kind.key])
        if not len(inside):
            continue
        rise = float(inside.max() - values[0])
        has_risen = bool(kind.change_from) and rise >= (kind.change_from or 0.0)
        if kind.key in names and (has_risen if kind.key in _SHOWN_CHANGES else saw_it):
            parts.append(f"{names[kind.key]} {kind.words(float(inside.max()))}")
    parts.append(_brakes(during["reasons"]))
    seen = ", ".join(part for part in parts if part)
    nothing = "the sensors showed no change" if saw_it else "no sensor reading shows any load"
    return f"{title}: {seen or nothing}."


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    known: NDArray[np.float64] = values[~np.isnan(values)]
    return known


def _most_awake(pstates: NDArray[np.float64]) -> str:
    """Return the change to the lowest, which is the fastest, P-state of the run."""
    known = _known(pstates)
    return pstate_change(np.array([known[0], known.min()])) if len(known) else ""


def _brakes(reasons: NDArray[np.float64]) -> str:
    seen = ClockReason(0)
    for value in _known(reasons):
        seen |= ClockReason(int(value))
    words = held_back_words(seen)
    return f"held back: {words}" if words else ""
