"""The record of one installed build of PyTorch, a small JSON file beside its folder.

It is written last, so a folder without a record was interrupted.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from gpu_studio.core.wheel_table import CPU_TAG

# AMD's chips with a build of their own: those of wheels.json.
_AMD_CHIPS = (
    "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031",
    "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102",
    "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201",
)  # fmt: skip
FAMILIES = (CPU_TAG, "xpu", *(f"rocm-{chip}" for chip in _AMD_CHIPS), "cu126", "cu130")
"""The builds that this program installs: from the one that runs on every PC to the one to prefer
where several run on a card."""
LARGEST_FILE_BYTES = 1 << 20
"""Of a record, a plan, a mark of a download, and what the user asked for: each has some KB."""
_FORMAT = 1


class BuildRecord(NamedTuple):
    """An installed build.

    Attributes:
        family: One of `FAMILIES`.
        torch_version: "2.13.0+cu126".
        python: The Python that it was made for, "3.11".
        state: "ready", or "broken": its test failed, or not all of it could be removed.
        size_bytes: The size of its folder after the installation.
        runs_on_card: Whether a kernel ran on a graphics card in the test.
        note: What the test said, or why it is broken; "" if nothing.
        made_by: The path of that Python, without its environment; "" in older records.
    """

    family: str
    torch_version: str
    python: str
    state: str = "ready"
    size_bytes: int = 0
    runs_on_card: bool = False
    note: str = ""
    made_by: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether an engine may use the build."""
        return self.state == "ready"

    def text(self) -> str:
        """Return the file's content."""
        return json.dumps({"format": _FORMAT, **self._asdict()}, indent=2) + "\n"

    def outdated(self, torch_version: str, python: str) -> str:
        """Return why this program cannot use the build; "" if it can.

        Args:
            torch_version: The version that this program installs, "2.13.0"; "" if unknown.
            python: The Python of this program, "3.11".
        """
        if self.python != python:
            return f"It was made for Python {self.python} and must be installed again for {python}."
        if torch_version and self.torch_version.partition("+")[0] != torch_version:
            has = self.torch_version.partition("+")[0]
            return f"It has PyTorch {has}; this program was tested with {torch_version}."
        return ""

    def broken(self, note: str, size_bytes: int) -> BuildRecord:
        """Return the record of what is left of the build, which no engine uses."""
        return self._replace(state="broken", note=note, size_bytes=size_bytes)


class Wanted(NamedTuple):
    """What the user asked for.

    Attributes:
        builds: The builds to have, in the order of their installation.
        used: The build to use, "" for the best.
        is_paused: Whether the user paused the installation.
        declined: The PyTorch whose update the user does not want now, "2.13.0".
    """

    builds: tuple[str, ...] = ()
    used: str = ""
    is_paused: bool = False
    declined: str = ""


def parsed_json(text: str) -> Any:
    """Read JSON that anyone may have written.

    Raises:
        ValueError: It is none, or too deep, or has a number that is not finite.
    """
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a number that is used here")
    return value


def record_from(text: str) -> BuildRecord | None:
    """Read a record; None if it is none, or one of a newer program."""
    try:
        content: Any = parsed_json(text)
        if content["format"] != _FORMAT or content["family"] not in FAMILIES:
            return None
        return BuildRecord(
            family=content["family"],
            torch_version=str(content["torch_version"]),
            python=str(content["python"]),
            state=str(content["state"]),
            size_bytes=int(content["size_bytes"]),
            runs_on_card=bool(content["runs_on_card"]),
            note=str(content["note"]),
            made_by=str(content.get("made_by", "")),
        )
    except (ValueError, KeyError, TypeError):
        return None


def best_of(records: tuple[BuildRecord, ...], wanted: str, torch_version: str, python: str) -> str:
    """Return the family for the engine: the wanted one, or one that runs on a card, or the CPU's.

    A build of an older program is used as long as this Python can load it. Returns "" if there is
    none.
    """
    usable = [one for one in records if one.is_ready and one.python == python]
    current = [one for one in usable if not one.outdated(torch_version, python)]
    for among in (current, usable):
        families = [one.family for one in among]
        if wanted in families:
            return wanted
        on_card = [one.family for one in among if one.runs_on_card]
        if on_card:
            return max(on_card, key=FAMILIES.index)
        if families:
            return CPU_TAG if CPU_TAG in families else families[0]
    return ""
