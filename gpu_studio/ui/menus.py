"""The window's menus: settings, a new engine, and the log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAction, QActionGroup, QDesktopServices, QKeySequence
from PySide6.QtWidgets import QMessageBox

from gpu_studio.model.settings import THEMES

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtWidgets import QMainWindow, QMenu

    from gpu_studio.model.studio import Studio


def fill_menus(window: QMainWindow, studio: Studio, code: QAction, log_path: Path | None) -> None:
    """Fill a window's menu bar.

    Args:
        window: the window of the menu bar.
        studio: has the settings and the engine.
        code: shows and hides the Code pane.
        log_path: the log; None if there is none.
    """
    bar = window.menuBar()
    bar.addMenu("&File").addAction("&Quit", QKeySequence.StandardKey.Quit, window.close)
    view = bar.addMenu("&View")
    code.setText("&Code pane")
    code.setShortcut(QKeySequence("F9"))
    view.addAction(code)
    view.addSeparator()
    _add_themes(view, studio)
    view.addSeparator()
    _add_ending(view, studio)
    engine = bar.addMenu("&Engine")
    engine.setToolTipsVisible(True)
    engine.addAction("Start a &new engine", studio.session.restart)
    _add_engine_choice(engine, studio)
    about = bar.addMenu("&Help")
    log = about.addAction("Open the &log folder", partial(_open_folder, log_path))
    log.setEnabled(log_path is not None)
    diagnostics = about.addAction("Copy &diagnostics…", studio.headlines.log_wanted.emit)
    diagnostics.setObjectName("menu.diagnostics")
    about.addAction("&About GPU Studio", partial(_show_about, window, log_path))


def _add_themes(menu: QMenu, studio: Studio) -> None:
    themes = QActionGroup(menu)
    for choice in THEMES:
        action = QAction(f"{choice.capitalize()} colors", menu, checkable=True)
        action.setData(choice)
        action.setChecked(choice == studio.settings.choices.theme)
        themes.addAction(action)
        menu.addAction(action)

    def choose(action: QAction) -> None:
        studio.settings.change(theme=action.data())

    themes.triggered.connect(choose)


def _add_ending(menu: QMenu, studio: Studio) -> None:
    def allow(is_allowed: bool) -> None:
        studio.settings.change(may_end_processes=is_allowed)

    ending = QAction("Allow &ending processes on the Devices tab", menu, checkable=True)
    ending.setObjectName("menu.may_end_processes")
    ending.setChecked(studio.settings.choices.may_end_processes)
    ending.toggled.connect(allow)
    menu.addAction(ending)


def _add_engine_choice(menu: QMenu, studio: Studio) -> None:
    def choose(in_window: bool) -> None:
        studio.settings.change(engine="window" if in_window else "process")
        studio.session.restart()

    local = QAction("Run workloads inside this &window's process", menu, checkable=True)
    local.setToolTip("Each result will be marked: the window disturbs the timing.")
    local.setChecked(studio.settings.choices.engine == "window")
    local.toggled.connect(choose)
    menu.addAction(local)


def _open_folder(log_path: Path | None) -> None:
    if log_path is not None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(log_path.parent)))


def _show_about(window: QMainWindow, log_path: Path | None) -> None:
    box = QMessageBox(window)
    box.setWindowTitle("About GPU Studio")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(
        "GPU Studio shows what your graphics card is, whether PyTorch can use it, how fast it is "
        "compared with your CPU, and where its memory goes."
    )
    box.setInformativeText(f"Log: {log_path or 'none, its folder is not writable'}")
    box.exec()
