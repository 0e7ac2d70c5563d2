"""An override of Qt's methods may raise: PySide crashes on what C code raises else.

`docs/development/pyside-raising-overrides.md` says how.
"""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget
from shiboken6 import Shiboken

import gpu_studio
from gpu_studio.ui.override_guard import hidden_methods, is_guarded, is_virtual
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parents[2]
_OLD = sys.version_info < (3, 12)

# Each override raises at its turn, and Python waits for Qt meanwhile; a mixed-in class, one of
# before the guard, one of after it.
_RAISING = """
import sys
from PySide6.QtCore import QAbstractListModel, QEvent, QModelIndex, QObject, QSize
from PySide6.QtWidgets import QApplication, QWidget
import shiboken6
from gpu_studio.ui.override_guard import guard_overrides

turn = ""

def fail(name):
    if name != turn:
        return
    if sys.argv[1] == "divided":
        1 / 0
    if sys.argv[1] == "exhausted":
        next(iter(()))
    gone = QObject()
    shiboken6.delete(gone)
    gone.objectName()

class Painting:
    def paintEvent(self, event):
        fail("paintEvent")

class Before(Painting, QWidget):
    def resizeEvent(self, event):
        fail("resizeEvent")
    def eventFilter(self, watched, event):
        fail("eventFilter")
        return False

class Rows(QAbstractListModel):
    def rowCount(self, parent=QModelIndex()):
        fail("rowCount")
        return 1

guard_overrides()

class After(Before):
    def sizeHint(self):
        fail("sizeHint")
        return QSize(9, 9)

application = QApplication(["raising", "-platform", "offscreen"])
widget, rows, told = After(), Rows(), []
widget.installEventFilter(widget)
widget.show()
for turn, do in {
    "paintEvent": widget.grab,
    "resizeEvent": lambda: widget.resize(77, 33),
    "eventFilter": lambda: QApplication.sendEvent(widget, QEvent(QEvent.Type.User)),
    "rowCount": lambda: rows.hasIndex(0, 0),
    "sizeHint": widget.adjustSize,
}.items():
    try:
        do()
    except Exception as error:
        told.append(f"{turn} {type(error).__name__}")
turn = ""
print(told)
"""
_OVERRIDES = ("paintEvent", "resizeEvent", "eventFilter", "rowCount", "sizeHint")


def _run(program: Path, argument: str) -> tuple[int, list[str]]:
    ended = subprocess.run(
        [sys.executable, str(program), argument], cwd=_ROOT, capture_output=True, text=True,
        encoding="utf-8", timeout=PATIENCE_S, check=False, env=_environment(),
    )  # fmt: skip
    return ended.returncode, ended.stdout.splitlines()


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(_ROOT), "QT_QPA_PLATFORM": "offscreen"}


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        ("exhausted", "StopIteration"),
        ("deleted", "RuntimeError"),
    ],
)
def test_what_c_code_raises_in_an_override_reaches_the_caller(tmp_path, failure, error):
    program = tmp_path / "raising.py"
    program.write_text(_RAISING, encoding="utf-8")
    listed = [f"{name} {error}" for name in _OVERRIDES]
    assert _run(program, failure) == (0, [str(listed)])


def test_every_override_of_the_program_is_one_that_the_guard_knows():
    for module in pkgutil.walk_packages(gpu_studio.__path__, "gpu_studio."):
        if module.name.startswith(("gpu_studio.ui.", "gpu_studio.model.")):
            importlib.import_module(module.name)
    methods = [
        (home, name, method)
        for kind in _subclasses(Shiboken.Object)
        for home, name, method in hidden_methods(kind)
        if home.__module__.startswith("gpu_studio.")
    ]
    assert len({name for _, name, _ in methods}) > 20
    unknown = sorted({f"{home.__qualname__}.{name}" for home, name, _ in methods
                      if not is_virtual(name)})  # fmt: skip
    assert not unknown, f"add their names to the guard's: {unknown}"
    if _OLD:
        assert all(is_guarded(method) for _, _, method in methods)


@pytest.mark.parametrize(
    "hand_over",
    [
        lambda layout: QVBoxLayout().addLayout(layout, 1),
        lambda layout: QHBoxLayout().insertLayout(0, layout),
        lambda layout: QVBoxLayout().addItem(layout),
        lambda layout: QGridLayout().addLayout(layout, 0, 0),
        lambda layout: QWidget().setLayout(layout),
    ],
)
def test_no_test_hands_over_a_filled_layout(qapp, hand_over):
    layout = QVBoxLayout()
    hand_over(layout)
    layout = QVBoxLayout()
    layout.addStretch()
    with pytest.raises(AssertionError, match="after it was handed over"):
        hand_over(layout)


def _subclasses(kind: type) -> set[type]:
    below = set(type.__subclasses__(kind))
    return below.union(*(_subclasses(one) for one in below))
