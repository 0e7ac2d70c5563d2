"""An override of Qt's methods may raise: PySide crashes on what C code raises else.

`docs/development/pyside-raising-overrides.md` says how.
"""

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
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


def _subclasses(kind: type) -> set[type]:
    below = set(type.__subclasses__(kind))
    return below.union(*(_subclasses(one) for one in below))


_HANDS_OVER = ("addLayout", "insertLayout", "setLayout", "addChildLayout")
_FILLS = re.compile(r"(add|insert)[A-Z]\w*")
_MAKERS = ("QBoxLayout", "QFormLayout", "QGridLayout", "QHBoxLayout", "QStackedLayout",
           "QVBoxLayout", "QGraphicsGridLayout", "QGraphicsLinearLayout")  # fmt: skip


def filled_layouts(source: str) -> list[int]:
    """Return the lines on which a layout is handed over that may have items.

    Empty is only a layout that the same function made, without a parent, and has neither filled nor
    passed on before.
    """
    if not any(method in source for method in (*_HANDS_OVER, "addItem", "insertItem")):
        return []
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [
        call.lineno
        for function in functions
        for call in _calls(function)
        if _hands_over(call, function) and not _is_empty(call, function)
    ]


def _calls(function: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _hands_over(call: ast.Call, function: ast.FunctionDef) -> bool:
    if _method(call) not in ("addItem", "insertItem"):
        return _method(call) in _HANDS_OVER
    return bool(call.args and _made_on(ast.unparse(call.args[0]), call, function))


def _made_on(layout: str, handed: ast.Call, function: ast.FunctionDef) -> list[int]:
    """Return the lines before a hand-over on which its layout is made."""
    return [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and node.lineno < handed.lineno
        and any(layout == name and _makes(value) for name, value in _assigned(node))
    ]


def _is_empty(handed: ast.Call, function: ast.FunctionDef) -> bool:
    layout = ast.unparse(handed.args[0])
    created = _made_on(layout, handed, function)
    if not created:
        return False
    return not any(
        _touches(call, layout)
        for call in _calls(function)
        if max(created) < call.lineno < handed.lineno
    )


def _assigned(node: ast.Assign) -> list[tuple[str, ast.expr]]:
    pairs: list[tuple[str, ast.expr]] = []
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs += [
                (ast.unparse(one), value)
                for one, value in zip(target.elts, node.value.elts, strict=True)
            ]
        else:
            pairs.append((ast.unparse(target), node.value))
    return pairs


def _makes(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = ast.unparse(value.func).rpartition(".")[2]
    is_direction = name == "QBoxLayout" and len(value.args) == 1
    return name in _MAKERS and (not value.args or is_direction)


def _touches(call: ast.Call, layout: str) -> bool:
    fills = (
        isinstance(call.func, ast.Attribute)
        and ast.unparse(call.func.value) == layout
        and _FILLS.fullmatch(call.func.attr) is not None
    )
    passed = [*call.args, *(keyword.value for keyword in call.keywords)]
    return fills or any(ast.unparse(one) == layout for one in passed)


@pytest.mark.parametrize(
    ("is_filled", "body"),
    [
        (False, "a = QHBoxLayout()\na.setSpacing(8)\ncolumn.addLayout(a)\na.addWidget(w)"),
        (True, "a = QHBoxLayout()\na.addStretch(1)\ncolumn.addLayout(a)"),
        (True, "column.addLayout(self.make_line())"),
    ],
)
def test_a_filled_layout_is_found(is_filled, body):
    source = "def build(self):\n" + "\n".join("  " + line for line in body.splitlines())
    assert bool(filled_layouts(source)) is is_filled


def test_every_layout_is_handed_over_while_it_is_empty():
    found = [
        f"{path.relative_to(_ROOT)}:{line}"
        for path in sorted((_ROOT / "gpu_studio").rglob("*.py"))
        for line in filled_layouts(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"fill these layouts after they were handed over: {found}"
