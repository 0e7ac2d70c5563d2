"""Where new files are suggested: a dated name in the folder where people look for such files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from gpu_studio.ui.saving import ask_open_path, ask_save_path

PLACES = QStandardPaths.StandardLocation


@pytest.mark.parametrize(
    ("name", "place"), [("race.png", PLACES.PicturesLocation), ("a.csv", PLACES.DocumentsLocation)]
)
def test_a_new_file_is_suggested_under_a_dated_name(qtbot, monkeypatch, name, place):
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *args: asked.append(args) or ("/a/chosen", "")
    )
    parent = QWidget()
    qtbot.addWidget(parent)
    ending = Path(name).suffix
    assert ask_save_path(parent, "Save", name, "kind") == f"/a/chosen{ending}"
    suggested = Path(asked[0][2])
    assert suggested.parent == Path(QStandardPaths.writableLocation(place))
    stem = Path(name).stem
    assert re.fullmatch(rf"{stem}-\d{{4}}-\d\d-\d\d-\d{{6}}\{ending}", suggested.name)


def test_a_file_is_looked_for_in_the_folder_of_its_kind(qtbot, monkeypatch):
    asked = []
    monkeypatch.setattr(
        QFileDialog, "getOpenFileName", lambda *args: asked.append(args) or ("", "")
    )
    parent = QWidget()
    qtbot.addWidget(parent)
    assert ask_open_path(parent, "Open", "Pictures (*.png *.jpg);;All files (*)") == ""
    ask_open_path(parent, "Open", "Recordings (*.jsonl)")
    places = [
        QStandardPaths.writableLocation(place)
        for place in (PLACES.PicturesLocation, PLACES.DocumentsLocation)
    ]
    assert [args[2] for args in asked] == places
