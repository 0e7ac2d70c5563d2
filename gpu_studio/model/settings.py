"""What the user chose, kept between starts.

A bad value is the default; it never stops the start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QSaveFile, Signal

if TYPE_CHECKING:
    from pathlib import Path

from gpu_studio.core.tensors import DTYPES

_log = logging.getLogger(__name__)

THEMES = ("system", "light", "dark")
ENGINES = ("process", "window")
_LONGEST_TEXT = 1000
_MOST_MODES = 16


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting with its default."""

    theme: str = "system"
    engine: str = "process"
    budget_s: float = 2.0
    workload: str = "elementwise"
    sizes: str = "256, 512, 1024, 2048"
    sweep: bool = False
    sweep_range: str = "64:4096"
    modes: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32",)
    code_pane: bool = True
    may_end_processes: bool = False
    window_geometry: str = ""
    first_tab: int = 0

    def checked(self) -> Choices:
        """Return these choices with the default in place of each value that makes no sense."""
        default = Choices()
        return Choices(
            theme=self.theme if self.theme in THEMES else default.theme,
            engine=self.engine if self.engine in ENGINES else default.engine,
            budget_s=self.budget_s if 0.05 <= self.budget_s <= 600 else default.budget_s,
            workload=self.workload,
            sizes=self.sizes if len(self.sizes) <= _LONGEST_TEXT else default.sizes,
            sweep=self.sweep,
            sweep_range=(
                self.sweep_range
                if self.sweep_range.count(":") == 1 and len(self.sweep_range) <= _LONGEST_TEXT
                else default.sweep_range
            ),
            modes=self.modes if len(self.modes) <= _MOST_MODES else default.modes,
            dtypes=self.dtypes if set(self.dtypes) <= set(DTYPES) else default.dtypes,
            code_pane=self.code_pane,
            may_end_processes=self.may_end_processes,
            window_geometry=self.window_geometry,
            first_tab=self.first_tab if 0 <= self.first_tab <= 3 else default.first_tab,
        )


class Settings(QObject):
    """The choices, read once and written whole at each change.

    Signals:
        choices_changed(Choices)
    """

    choices_changed = Signal(object)

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._choices = _read(path) if path is not None else Choices()

    @property
    def choices(self) -> Choices:
        """What is chosen now."""
        return self._choices

    def change(self, **values: object) -> None:
        """Change some choices and keep them."""
        changed = msgspec.structs.replace(self._choices, **values).checked()
        if changed != self._choices:
            self._choices = changed
            self._write()
            self.choices_changed.emit(changed)

    def _write(self) -> None:
        if self._path is None:
            return
        file = QSaveFile(str(self._path))
        text = msgspec.json.format(msgspec.json.encode(self._choices))
        if not (
            file.open(QSaveFile.OpenModeFlag.WriteOnly)
            and file.write(text) == len(text)
            and file.commit()
        ):
            _log.warning("The settings could not be kept in %s", self._path)


def _read(path: Path) -> Choices:
    """Return the choices in a file, value by value: one bad value loses only itself."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return Choices()
    except (OSError, msgspec.MsgspecError, RecursionError, ValueError):
        _log.warning("The settings in %s cannot be read: defaults are used", path)
        return Choices()
    good: dict[str, object] = {}
    if isinstance(raw, dict):
        for field in msgspec.structs.fields(Choices):
            if field.name in raw:
                try:
                    good[field.name] = msgspec.convert(raw[field.name], field.type)
                except msgspec.ValidationError:
                    _log.warning("The setting %s is not usable: its default is used", field.name)
    return Choices(**good).checked()  # type: ignore[arg-type]  # converted field by field
