"""The user's settings, kept between starts.

A bad value becomes the default, and an unusable file is set aside; neither stops the start.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime, timezone
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from msgspec import Meta
from PySide6.QtCore import QFile, QObject, QSaveFile, Signal

if TYPE_CHECKING:
    from pathlib import Path

from gpu_studio.core.devices.devices import MOST_CARDS
from gpu_studio.core.other_pc import LONGEST_NAME, OtherPc
from gpu_studio.core.switcher.program_start import KeptStart  # noqa: TC001 - msgspec reads it
from gpu_studio.core.tensors import DTYPES
from gpu_studio.core.texts import plain_values
from gpu_studio.core.user_file import UnusableFileError, read_own_file

_log = logging.getLogger(__name__)

THEMES = ("system", "light", "dark")
TEXT_SIZES = (80, 90, 100, 110, 125, 150, 175, 200)
"""The sizes of all text that can be chosen, in per cent of the usual one."""
LONGEST_TEXT = 1000
_LARGEST_BYTES = 1 << 20
_MOST_MODES = _MOST_PCS = 16
_MOST_LESSONS = 100
_MOST_STARTS = 8


def _one_of(words: tuple[str, ...]) -> Meta:
    return Meta(pattern=rf"\A({'|'.join(words)})\Z")


_LessonName = Annotated[str, Meta(max_length=60)]
_CardName = Annotated[str, Meta(max_length=200)]


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting with its default, and the range outside which it takes the default."""

    theme: Annotated[str, _one_of(THEMES)] = "system"
    text_size: Annotated[int, Meta(ge=TEXT_SIZES[0], le=TEXT_SIZES[-1])] = 100
    budget_s: Annotated[float, Meta(ge=0.05, le=600)] = 2.0
    workload: str = "elementwise"
    sizes: Annotated[str, Meta(max_length=LONGEST_TEXT)] = "256, 512, 1024, 2048"
    modes: Annotated[tuple[str, ...], Meta(max_length=_MOST_MODES)] = ()
    dtypes: tuple[Annotated[str, _one_of(DTYPES)], ...] = ("float32",)
    code_drawer: bool = False
    may_end_processes: bool = False
    lessons: Annotated[tuple[_LessonName, ...], Meta(max_length=_MOST_LESSONS)] = ()
    """The lessons that were done on this PC, by name."""
    starts: Annotated[tuple[KeptStart, ...], Meta(max_length=_MOST_STARTS)] = ()
    """The user's programs that were started on a card, the newest first."""
    window_geometry: str = ""
    tab: Annotated[str, Meta(max_length=LONGEST_TEXT)] = ""
    unsaved: Annotated[str, Meta(max_length=LONGEST_TEXT)] = ""
    """The files that were not saved when the window closed, until it says so."""
    cards: Annotated[tuple[_CardName, ...], Meta(max_length=MOST_CARDS)] = ()
    """The cards that this PC has or had, by their colors; see `core.devices.devices.with_cards`."""
    pcs: Annotated[tuple[OtherPc, ...], Meta(max_length=_MOST_PCS)] = ()
    """The other PCs that the user added."""
    disconnected_pcs: Annotated[
        tuple[Annotated[str, Meta(max_length=LONGEST_NAME)], ...], Meta(max_length=_MOST_PCS)
    ] = ()
    """The names of those among them that are not connected when the window starts."""


class Settings(QObject):
    """The choices, read once; a change writes only the changed values.

    So two windows do not undo each other's choices. An unusable file is renamed, and `trouble` says
    so; otherwise it is empty.

    Signals:
        choices_changed(Choices)
        trouble_reported(str): the choices cannot be saved; emitted once until they can.
    """

    choices_changed = Signal(object)
    trouble_reported = Signal(str)

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self.trouble = ""
        self._was_reported = False
        self.choices = Choices()
        """The current choices."""
        if path is not None:
            try:
                self.choices = _choices_of(_read(path))
            except UnusableFileError as error:
                self.trouble = _set_aside_broken(path, str(error))
                _log.warning("%s", self.trouble)

    def change(self, **values: object) -> None:
        """Change some choices and save them."""
        old = self.choices
        new = _choices_of(msgspec.structs.asdict(msgspec.structs.replace(old, **values)))
        if new != old:
            self.choices = new
            self._keep({name: getattr(new, name) for name in values})
            self.choices_changed.emit(new)

    def start_afresh(self) -> bool:
        """Reset to the defaults and set the file aside; return whether that worked."""
        if self._path is not None and os.path.lexists(self._path):
            try:
                _set_aside(self._path, "before")
            except OSError as error:
                self._report(error.strerror or str(error))
                return False
        self.choices = Choices()
        self.choices_changed.emit(self.choices)
        return True

    def _keep(self, changed: dict[str, object]) -> None:
        if self._path is None:
            return
        try:
            stored = _read(self._path)
        except UnusableFileError as error:  # damaged since the start
            _log.warning("%s", _set_aside_broken(self._path, str(error)))
            stored = msgspec.to_builtins(self.choices)
        reason = _write(self._path, stored | msgspec.to_builtins(changed))
        if reason:
            self._report(reason)
        else:
            self._was_reported = False

    def _report(self, reason: str) -> None:
        _log.warning("The settings could not be kept in %s: %s", self._path, reason)
        if not self._was_reported:
            self._was_reported = True
            self.trouble_reported.emit(f"Your settings cannot be saved in {self._path}: {reason}.")


def _read(path: Path) -> dict[str, Any]:
    """Return the contents of a settings file; empty if there is no file.

    Raises:
        UnusableFileError: it is not a settings file.
    """
    if not os.path.lexists(path):
        return {}
    try:
        stored = msgspec.json.decode(read_own_file(path, _LARGEST_BYTES))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise UnusableFileError("it is damaged") from error
    if not isinstance(stored, dict):
        raise UnusableFileError("it contains something else")
    return cast("dict[str, Any]", plain_values(stored))


@cache  # msgspec evaluates all annotations each time
def _fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Choices)


def _choices_of(stored: dict[str, Any]) -> Choices:
    """Return the choices, value by value: a bad value becomes the default of itself only."""
    good: dict[str, object] = {}
    for field in _fields():
        if field.name in stored:
            try:
                good[field.name] = msgspec.convert(stored[field.name], field.type)
            except msgspec.ValidationError:
                _log.warning("The setting %s is not usable: its default is used", field.name)
    return Choices(**good)  # type: ignore[arg-type]  # converted field by field


def _write(path: Path, stored: dict[str, Any]) -> str:
    """Write a settings file that only its user can read; return the error, or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    file = QSaveFile(str(path))
    text = msgspec.json.format(msgspec.json.encode(stored))
    if not file.open(QSaveFile.OpenModeFlag.WriteOnly):
        return file.errorString()
    file.setPermissions(QFile.Permission.ReadOwner | QFile.Permission.WriteOwner)
    return "" if file.write(text) == len(text) and file.commit() else file.errorString()


def _set_aside_broken(path: Path, reason: str) -> str:
    """Rename an unusable file; return the sentence about it."""
    try:
        aside = _set_aside(path, "broken")
    except OSError as error:
        return (
            f"Your settings cannot be used: {reason}. The defaults are in use. The file stays in "
            f"its place ({error.strerror or error}): {path}"
        )
    return (
        f"Your settings could not be used: {reason}. The defaults are in use. The file is now "
        f"named {aside.name}."
    )


def _set_aside(path: Path, why: str) -> Path:
    now = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    aside = path.with_name(f"{path.stem}.{why}-{now}{path.suffix}")
    os.replace(path, aside)
    return aside
