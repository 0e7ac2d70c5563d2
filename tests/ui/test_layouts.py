"""Layouts are handed over while they are empty: PySide crashes on wrappers of their items else.

`docs/pyside-layout-wrappers.md` says how; its program runs here.
"""

from __future__ import annotations

import ast
import re
import signal
import subprocess
import sys
from pathlib import Path

import PySide6
import pytest

from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parents[2]
_REPORT = _ROOT / "docs/pyside-layout-wrappers.md"
_HANDS_OVER = ("addLayout", "insertLayout", "setLayout", "addChildLayout")
_FILLS = re.compile(r"(add|insert)[A-Z]\w*")
_MAKERS = ("QBoxLayout", "QFormLayout", "QGridLayout", "QHBoxLayout", "QStackedLayout",
           "QVBoxLayout", "QGraphicsGridLayout", "QGraphicsLinearLayout")  # fmt: skip
# What a segmentation fault gives as an exit status: POSIX, a shell's, Windows.
_CRASHES = (-signal.SIGSEGV, 128 + signal.SIGSEGV, -signal.SIGABRT, 0xC0000005)


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
        (False, "column, a = QVBoxLayout(self), QHBoxLayout()\ncolumn.addLayout(a, 1)"),
        (False, "for w in some:\n a = QHBoxLayout()\n column.addLayout(a)\n a.addWidget(w)"),
        (False, "self.a = QtWidgets.QGridLayout()\nself.column.addLayout(self.a, 0, 0)"),
        (False, "pair = QBoxLayout(Direction.LeftToRight)\ncolumn.addLayout(pair)"),
        (False, "combo.addItem(title)"),
        (True, "a = QHBoxLayout()\na.addStretch(1)\ncolumn.addLayout(a)"),
        (True, "a = QHBoxLayout()\na.addStretch(1)\ncolumn.addItem(a)"),
        (True, "a = QHBoxLayout()\nfor w in some:\n a.addWidget(w)\ncolumn.insertLayout(0, a)"),
        (True, "a = QGridLayout()\nfill(a)\nself.setLayout(a)"),
        (True, "a = QGridLayout()\nfill(place=a)\nself.setLayout(a)"),
        (True, "column.addLayout(self.make_line())"),
        (True, "column.addLayout(self.line)"),
        (True, "a = make_line()\ncolumn.addLayout(a)"),
    ],
)  # fmt: skip
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


def _report_program() -> str:
    blocks = re.findall(r"```python\n(.*?)```", _REPORT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return blocks[0]


def _run_report(tmp_path: Path, order: str) -> tuple[int, list[str]]:
    program = tmp_path / "layouts.py"
    program.write_text(_report_program(), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(program), order], capture_output=True, text=True, encoding="utf-8",
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stdout.splitlines()


def test_a_layout_that_is_handed_over_empty_leaves_no_wrapper_and_no_crash(tmp_path):
    status, lines = _run_report(tmp_path, "empty")
    assert (status, lines[-1]) == (0, f"survived {PySide6.__version__}")
    assert lines[-2] == "999 0 items are still valid"


def test_whether_this_pyside_crashes_on_filled_layouts_is_recorded(tmp_path, record_property):
    status, _ = _run_report(tmp_path, "filled")
    has_crashed = status in _CRASHES
    record_property("pyside", PySide6.__version__)
    record_property("crashes_on_filled_layouts", has_crashed)
    assert has_crashed or status == 0, "it neither survived nor crashed: the program is wrong"
