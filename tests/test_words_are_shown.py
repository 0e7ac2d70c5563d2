"""Words are shown, never read: no decision comes from a sentence or from a button's label.

What other programs write (PyTorch's errors, a file's cells) may be read; our own sentences and
labels may not: what they say is in enums and values beside them.
"""

import ast
from collections.abc import Collection

import pytest

from tests.test_import_boundaries import PACKAGE

ROOMS = ("cli", "core", "model", "ui")
# Attributes and variables that hold our own words.
WORDS = frozenset(
    {
        "sentence", "label", "action_label", "detail", "next_step", "explanation", "caption",
        "words", "message", "ceiling",
    }
)  # fmt: skip
READERS = frozenset(
    {
        "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition",
        "replace", "find", "index", "count",
    }
)  # fmt: skip
# What stands in the place of a missing value.
PLACEHOLDER = "n/a"


def text_constants(source: str) -> set[str]:
    """Return the names of a file's constants that are sentences, or the placeholder."""
    return _text_constants_of(ast.parse(source))


def _text_constants_of(tree: ast.Module) -> set[str]:
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and _is_text(node.value):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def reads_of_words(source: str, constants: Collection[str] = ()) -> list[str]:
    """Return the expressions of a file that compare our words, or search in them.

    Args:
        source: of the file.
        constants: the names of other files' constants that are sentences; its own are found.
    """
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    names = {*imported.intersection(constants), *_text_constants_of(tree)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and _compares_words(node, names):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            reads = node.func.attr in READERS or (node.func.attr == "split" and node.args)
            if reads and _is_words(node.func.value):
                found.append(ast.unparse(node.func))
            elif reads and any(_is_searched(argument, names) for argument in node.args[:1]):
                found.append(ast.unparse(node))
    return found


def _compares_words(node: ast.Compare, names: Collection[str]) -> bool:
    operands = [node.left]
    for one in node.comparators:
        operands += one.elts if isinstance(one, (ast.Tuple, ast.List, ast.Set)) else [one]
    if not all(isinstance(one, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for one in node.ops):
        return False
    # An empty text is no sentence: it says that there is none.
    if any(isinstance(one, ast.Constant) and one.value == "" for one in operands):
        return False
    return any(_is_our_text(one, names) for one in operands)


def _is_searched(node: ast.expr, names: Collection[str]) -> bool:
    """Whether it is our text; a few words without a full stop are searched in other programs'."""
    is_part = isinstance(node, ast.Constant) and not str(node.value).endswith((".", PLACEHOLDER))
    return not is_part and _is_our_text(node, names)


def _is_our_text(node: ast.expr, names: Collection[str]) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return _is_words(node) or _is_text(node) or name in names


def _is_words(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("text", "itemText", "tabText")
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return _is_words(node.elt)
    return name in WORDS


def _is_text(node: ast.expr) -> bool:
    """Whether it is the placeholder, or a text of several words that begins with a capital."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    words = node.value.strip()
    return words == PLACEHOLDER or (words[:1].isupper() and " " in words)


@pytest.mark.parametrize(
    "source",
    [
        'if headline.sentence == "PyTorch is not responding.": stop()',
        "if action == headline.action_label: act()",
        'if "engine" in notice.sentence: hide()',
        'if button.text() == "Stop": stop()',
        'words = verdict.sentence.replace(work, "")',
        'if reason.startswith(words): skip()',
        'if title == "Set up PyTorch": begin()',
        'WAS_UPDATED = "Restart the PC."\nif WAS_UPDATED in reasons: restart()',
        'words = failure.message.removesuffix(" PyTorch has to restart.")',
        'words = message.removesuffix(" PyTorch has to restart.")',
        'NOT_AVAILABLE = "n/a"\nis_known = not value.startswith(NOT_AVAILABLE)',
        'if value == "n/a": explain()',
        'ASLEEP = "It is asleep."\nif card.unreadable in (None, ASLEEP): count()',
        'return next(limit for limit in limits if result.ceiling.startswith(limit.name))',
        'sentence = option.sentence.replace(value, value_words(value))',
        'place = list(choices).index(entry.label)',
        'if [combo.itemText(n) for n in places] != list(choices): fill()',
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


def test_a_sentence_of_another_file_is_found_by_its_name() -> None:
    assert text_constants('UPDATED = "Restart the PC."\nKIND = "updated"') == {"UPDATED"}
    source = "from facts import UPDATED\nif UPDATED in reasons or UPDATED == reason: restart()"
    assert len(reads_of_words(source, {"UPDATED"})) == 2


def test_no_decision_comes_from_words() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    constants = set().union(*map(text_constants, files.values()))
    found = {
        (path.relative_to(PACKAGE).as_posix(), read)
        for path, source in files.items()
        if path.relative_to(PACKAGE).parts[0] in ROOMS
        for read in reads_of_words(source, constants)
    }
    assert found == set()
