"""A notice: a sentence with its tone, what belongs to it, and what can be done about it."""

from __future__ import annotations

from enum import Enum

import msgspec


class Tone(Enum):
    """How good or bad something is; the value is the name of its look in the style sheet."""

    PLAIN = ""
    QUIET = "quiet"  # not known yet, or still running
    GOOD = "good"
    AMBER = "amber"
    FAILURE = "failure"


class Action(Enum):
    """What a notice's button does."""

    RESTART_ENGINE = "restart_engine"
    STOP_RUN = "stop_run"
    RESTART_SENSORS = "restart_sensors"
    WAKE_CARDS = "wake_cards"
    RUN_BENCHMARK = "run_benchmark"
    SHOW_LOG = "show_log"
    SHOW_CHECK = "show_check"
    SET_UP = "set_up"
    SHOW_SET_UP = "show_set_up"
    INSTALL = "install"
    RUN_AGAIN = "run_again"
    CONNECT = "connect"
    CONNECT_AGAIN = "connect_again"


_LABELS = {
    Action.RESTART_ENGINE: "Start PyTorch anew",
    Action.STOP_RUN: "Stop run",
    Action.RESTART_SENSORS: "Restart the sensors",
    Action.WAKE_CARDS: "Wake card",
    Action.RUN_BENCHMARK: "",  # the Devices tab has a button of its own for it
    Action.SHOW_LOG: "Show what happened",
    Action.SHOW_CHECK: "Show check",
    Action.SET_UP: "Set up PyTorch",
    Action.SHOW_SET_UP: "Show the installation",
    Action.INSTALL: "Install PyTorch {build}",
    Action.RUN_AGAIN: "Run again",
    Action.CONNECT: "Connect",
    Action.CONNECT_AGAIN: "Connect again",
}


def action_label(action: Action | None, build: str = "") -> str:
    """Return the label of an action's button; empty for no action.

    Args:
        action: what the button does.
        build: the build that an installation installs.
    """
    return _LABELS[action].format(build=build) if action is not None else ""


class Notice(msgspec.Struct, frozen=True):
    """A sentence to show, from the most important part to the least.

    Attributes:
        sentence: what is so; empty if there is nothing to say.
        tone: how good or bad it is.
        detail: its evidence or explanation, in one or more lines.
        next_step: what you can do about it.
        action: what its button does; None for no button.
    """

    sentence: str = ""
    tone: Tone = Tone.PLAIN
    detail: str = ""
    next_step: str = ""
    action: Action | None = None

    @property
    def words(self) -> str:
        """What is so, and what you can do about it."""
        return f"{self.sentence} {self.next_step}".rstrip()
