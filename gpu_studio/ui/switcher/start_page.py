"""The page that starts the user's own program on a card."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.ui.page import Beside, Box, Flow, Page, Stack
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Heading, More, Press, Rows, Words
from gpu_studio.ui.saving import ask_open_path, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.switcher.program_start import Shortcut
    from gpu_studio.model.switcher.start_model import StartModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_PROGRAMS = "Programs and shortcuts (*.exe *.bat *.cmd *.lnk *.com);;All files (*)"
_ANY = "All files (*)"
_HINT = "ollama serve"
_SHELLS = ("cmd", "PowerShell", "sh")
_ABOUT = "It gets variables that show it this device and no other. Nothing else on this PC changes."
_DRAWS = "For a program that draws, such as a game, Windows has a setting of its own."
_SETTING = "ms-settings:display-advancedgraphics"


class StartPage(Page):
    """The program and the card at the left; whether it uses it, and what was set, at the right."""

    model: StartModel

    def __init__(self, model: StartModel, theme: Theme, parent: QWidget | None = None) -> None:
        self._saved = Notice()
        super().__init__("start", model, theme, parent)
        self.setObjectName("switcher.start")
        model.line_made.connect(self._copy)
        model.shortcut_made.connect(self._save)

    def parts(self) -> Sequence[Part]:
        m, is_windows = self.model, sys.platform == "win32"
        return (
            Beside(
                Box(
                    Heading("Your program"),
                    Pick(of="command", title="Program and its arguments", name="command",
                         items=lambda: m.commands, editable=True, hint=_HINT, least_letters=24),
                    Flow(
                        Press("Choose program…", self._choose, name="choose", icon="file"),
                        Pick(of="card", title="Card", name="card", items=lambda: m.cards,
                             least_letters=16),
                        Press("Start", m.start, name="start", primary=True, key="run",
                              enabled=lambda: m.can_start),
                    ),
                    Words(_ABOUT, "muted", name="about"),
                    Words(_DRAWS, "muted", name="draws", shown=lambda: is_windows),
                    Press("Graphics settings…", self._open_setting, name="setting",
                          shown=lambda: is_windows),
                ),
                Stack(
                    Box(
                        Words(lambda: m.started, "title", name="started"),
                        Words(lambda: m.notice, name="notice"),
                        name="result", tone=lambda: m.notice.tone,
                        shown=lambda: m.started or m.notice.sentence,
                    ),
                    Box(
                        Heading("What is set for it"),
                        Flow(
                            More("Copy as a line", self._lines, name="copy"),
                            Press("Save shortcut…", m.make_shortcut, name="shortcut",
                                  enabled=lambda: m.can_start),
                            Words(lambda: self._saved, "muted", wraps=False, name="saved"),
                        ),
                        Rows("Variables of the program", ("Variable", "Value"), lambda: m.rows,
                             wide=1, name="variables", shown=lambda: m.rows),
                    ),
                ),
                side_letters=44,
            ),
        )  # fmt: skip

    def _lines(self) -> list[tuple[str, Callable[[], object] | None] | None]:
        """Return what the menu offers: the line for each shell."""
        model = self.model

        def item(shell: str) -> tuple[str, Callable[[], object] | None]:
            return f"For {shell}", (lambda: model.copy_line(shell)) if model.can_start else None

        return [item(shell) for shell in _SHELLS]

    def _choose(self) -> None:
        kinds = _PROGRAMS if sys.platform == "win32" else _ANY
        path = ask_open_path(self, "Choose a program", kinds)
        if path:
            self.model.choose_program(path)

    def _copy(self, line: str) -> None:
        QGuiApplication.clipboard().setText(line)
        self._saved = Notice("The line is copied.")
        self.update_parts()

    def _save(self, made: Shortcut) -> None:
        desktop = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DesktopLocation)
        suggested = str(Path(desktop) / made.name)
        path, _ = QFileDialog.getSaveFileName(self, "Save a shortcut", suggested, made.kind)
        if not path:
            return
        notice = write_file(path, made.contents)
        self._saved = notice if notice.tone is Tone.FAILURE else Notice("Saved.")
        with suppress(OSError):  # Linux starts only what may be run
            Path(path).chmod(0o755)
        self.update_parts()

    def _open_setting(self) -> None:
        QDesktopServices.openUrl(QUrl(_SETTING))
