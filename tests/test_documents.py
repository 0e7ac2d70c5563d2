"""Every code example of the five documents has its place, and the table of them is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from gpu_studio.core.messages.message import Request
from gpu_studio.core.protocol import messages_of
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.switcher.models import MODELS
from gpu_studio.engine.workloads.registry import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
_TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_PART = _TEXT[_TEXT.index("## The documents' examples") :].split("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in _PART.splitlines()
    if line.startswith("|") and not line.startswith("|---")
][1:]
KNOWN = {
    "workload": {workload.description.name for workload in WORKLOADS},
    "pitfall": {pitfall.description.name for pitfall in PITFALLS},
    "model": {model.description.name for model in MODELS},
    "request": {request.__name__ for request in messages_of(Request)},
    "command": {"devices"},
}
PAGES = {
    "Devices", "Benchmark", "Memory", "Switcher, Choose", "Switcher, Place", "Switcher, Pitfalls",
    "Switcher, Feeding", "Switcher, AMP and reproducibility", "Switcher, Several cards", "Check",
}  # fmt: skip


def test_all_five_documents_are_there_by_title_and_author():
    titles = [row[0] for row in ROWS if row[0]]
    assert len(titles) == 5
    assert all(title.endswith(")") for title in titles)  # its author, or that none is named


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][:40])
def test_a_row_names_what_is_there(row: list[str]):
    _, example, page, done_by, test = row
    assert example
    assert page in PAGES
    kind, name = re.fullmatch(r"(\w+) `(\w+)`", done_by).groups()
    assert name in KNOWN[kind]
    path, _, function = test.strip("`").partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    tests = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert (function or "test_") in (tests if function else {"test_"})
    assert any(one.startswith("test_") for one in tests)


def test_each_model_and_each_pitfall_of_the_chapter_has_its_row():
    named = {row[3] for row in ROWS}
    assert {f"model `{name}`" for name in KNOWN["model"]} <= named
    assert {f"pitfall `{pitfall.description.name}`" for pitfall in PITFALLS[:5]} <= named
