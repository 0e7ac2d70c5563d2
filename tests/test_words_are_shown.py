"""Words are shown, never read: no decision comes from a sentence or from a button's label.

What other programs write (PyTorch's errors, a file's cells) may be read; our own sentences and
labels may not: what they say is in enums and values beside them.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.test_import_boundaries import PACKAGE

ROOMS = ("cli", "core", "model", "ui")
# Attributes and variables that hold our own words.
WORDS = frozenset(
    {
        "sentence", "label", "action_label", "detail", "next_step", "explanation", "caption",
        "words",
    }
)  # fmt: skip
READERS = frozenset(
    {
        "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition",
        "replace", "find", "index", "count",
    }
)  # fmt: skip
# What shapes a text for its place, or asks whether another one is shown: it decides nothing else.
SHAPING = {
    ("core/benchmark/comparison.py", "label not in wrong"),  # the key of a result
    ("core/benchmark/run.py", "label in name"),  # the name would say it twice
    ("core/devices/finding.py", "sentence.split"),
    ("model/memory/memory_history.py", "last.label == mark.label"),  # drawn as one
    ("ui/banner.py", "headline.sentence != self.sentence"),  # folds the details again
    ("ui/benchmark/benchmark_choices.py", "note != row.label"),
    ("ui/benchmark/benchmark_choices.py", "row.label.replace"),  # & is a mnemonic of Qt
    ("ui/plots/live_plot.py", "curve.label.replace"),  # & and < are HTML
    ("ui/race/race_contestants.py", "list(choices).index(entry.label)"),  # the key of an entry
    ("ui/switcher/comparison_card.py", "sentence.replace"),  # identifiers into words
}
# The file of a result has no value beside these words.
READING = {("core/benchmark/ceilings.py", "ceiling.startswith(words)")}
ALLOWED = SHAPING | READING


def reads_of_words(source: str) -> list[str]:
    """Return the expressions of a file that compare our words, or search in them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and _compares_words(node):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            reads = node.func.attr in READERS or (node.func.attr == "split" and node.args)
            if reads and _is_words(node.func.value):
                found.append(ast.unparse(node.func))
            elif reads and any(_is_words(argument) for argument in node.args[:1]):
                found.append(ast.unparse(node))
    return found


def _compares_words(node: ast.Compare) -> bool:
    operands = [node.left, *node.comparators]
    if not all(isinstance(one, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for one in node.ops):
        return False
    # An empty text is no sentence: it says that there is none.
    if any(isinstance(one, ast.Constant) and not one.value for one in operands):
        return False
    return any(map(_is_words, operands)) or any(map(_is_sentence, operands))


def _is_words(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("text", "itemText", "tabText")
    return name in WORDS


def _is_sentence(node: ast.expr) -> bool:
    """Whether it is a text of several words that begins with a capital, as ours do."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return node.value[:1].isupper() and " " in node.value.strip()


@pytest.mark.parametrize(
    "source",
    [
        'if headline.sentence == "The engine is not responding.": stop()',
        "if action == headline.action_label: act()",
        'if "engine" in notice.sentence: hide()',
        'if button.text() == "Stop": stop()',
        'words = verdict.sentence.replace(work, "")',
        'if reason.startswith(words): skip()',
        'if title == "Set up the engine": begin()',
    ],
)  # fmt: skip
def test_a_decision_from_words_is_found(source: str) -> None:
    assert reads_of_words(source)


@pytest.mark.parametrize(
    "source",
    [
        'if notice.sentence != "": show()',
        "if notice.action is Action.STOP_RUN: stop()",
        'if error.startswith("CUDA error"): explain()',
        "label.setText(notice.sentence)",
    ],
)
def test_what_only_shows_words_is_no_decision(source: str) -> None:
    assert not reads_of_words(source)


@pytest.mark.parametrize("room", ROOMS)
def test_no_decision_comes_from_words(room: str) -> None:
    found = {
        (path.relative_to(PACKAGE).as_posix(), read)
        for path in sorted(Path(PACKAGE / room).rglob("*.py"))
        for read in reads_of_words(path.read_text(encoding="utf-8"))
    }
    assert found - ALLOWED == set()


def test_what_is_allowed_is_still_there() -> None:
    for file, read in ALLOWED:
        assert read in reads_of_words((PACKAGE / file).read_text(encoding="utf-8")), (file, read)
