"""Advice to type something goes through `core.program_form`, which knows this program's form.

“gpu-studio bench” is wrong in a checkout, and an installed program has no pip.
"""

import ast
import re

import pytest

from tests.test_import_boundaries import PACKAGE

# “~/gpu-studio” is a folder.
COMMAND = re.compile(
    r"(?<!~/)\bgpu-studio (?:[a-z]|--)|\bpython3? -[mc]\b|\bpip install\b|bootstrap\.py"
)
# Where the commands are before they get their form.
SOURCES = {
    "cli/manual.py": "a shell completes the command of the installed program",
    "core/builds/words.py": "terminal_action's commands",
    "core/program_form.py": "gives each its form",
    "core/other_pc.py": "commands to type on another PC, whose program is an installed one",
    "core/wheels.py": "WheelChoice's commands; one is for another PC",
    "core/devices/card_findings.py": "commands of findings: `find` gives them their form",
    "core/devices/torch_findings.py": "commands of findings: `find` gives them their form",
}
GIVES_FORM = {"typed"}
FORMED_LATER = {"command", "prog"}  # a finding's, by `find`; argparse's name of a child process


def stray_advice(source: str) -> list[str]:
    """Return the commands in a file's texts that get no form; docstrings are for programmers."""
    tree = ast.parse(source)
    formed: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            formed.add(node.value)
        elif isinstance(node, ast.Call) and _name(node.func) in GIVES_FORM:
            formed.update(one for argument in node.args for one in ast.walk(argument))
        elif isinstance(node, ast.keyword) and node.arg in FORMED_LATER:
            formed.add(node.value)
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node not in formed and COMMAND.search(node.value)
    ]


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def test_every_command_that_the_user_reads_has_the_form_of_this_program() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in SOURCES and (stray := stray_advice(path.read_text(encoding="utf-8"))):
            found[name] = stray
    assert not found
    assert all((PACKAGE / name).is_file() for name in SOURCES)


@pytest.mark.parametrize(
    "source",
    [
        'note("Type “gpu-studio doctor”.")',
        'step = f"python -m pip install {requirement}"',
        'sentence = "In a checkout, packaging/bootstrap.py installs it."',
        'other("gpu-studio --help")',
    ],
)
def test_a_planted_advice_is_found(source: str) -> None:
    assert stray_advice(source)


def test_what_gets_its_form_is_not_stray() -> None:
    assert not stray_advice('"""``gpu-studio doctor``"""\nnote(typed("gpu-studio doctor"))')
