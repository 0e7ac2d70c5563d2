"""Layouts are handed over while they are empty: PySide crashes on wrappers of their items else.

`docs/development/pyside-layout-wrappers.md` says how.
"""

import ast
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
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
