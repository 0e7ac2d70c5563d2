"""A line of the setup's progress while it changes the PyTorch of a running GPU Studio."""

from __future__ import annotations

from typing import Literal

import msgspec


class SetUpProgress(msgspec.Struct, frozen=True):
    """One thing that the setup says.

    ``fraction`` is the done share of all steps, 0 to 1, or None if this line does not tell it.
    "done" and "failed" come last.
    """

    kind: Literal["step", "note", "detail", "failed", "done"]
    text: str = ""
    fraction: float | None = None
