import ast
import re
from pathlib import Path

import pytest

from gpu_studio.core.check.stages import PLANTED_FAULTS, UNSENSED_LOAD_S, stage_words
from gpu_studio.core.messages.check_messages import STAGE_NAMES, StageName
from gpu_studio.core.messages.message import Request
from gpu_studio.core.protocol import messages_of
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.switcher.placement import MODELS
from gpu_studio.engine.workloads.registry import WORKLOADS
from gpu_studio.ui.tabs import TABS
from tests.test_import_boundaries import ARROWS

ROOT = Path(__file__).resolve().parent.parent
_TEXT = (ROOT / "docs/development/documents.md").read_text(encoding="utf-8")
_PART = _TEXT[_TEXT.index("## The table of examples") :].split("\n## ")[0]
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
    *(tab.title for tab in TABS),
    *(f"{tab.title}, {title}" for tab in TABS for title in tab.parts.values()),
}


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


# Reports for PySide's tracker: they go there as they stand.
_REPORTS = {"pyside-layout-wrappers.md", "pyside-raising-overrides.md"}
FOR_USERS = sorted((ROOT / "docs").glob("*.md"))
FOR_DEVELOPERS = sorted((ROOT / "docs/development").glob("*.md"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(one for one in (*FOR_USERS, *FOR_DEVELOPERS) if one.name not in _REPORTS),
]


def anchor(heading: str) -> str:
    """Return a heading's link, as a Markdown viewer makes it."""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("path", DOCUMENTS[1:], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_begins_with_its_contents(path: Path):
    lead, *parts = re.split(r"^## (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headings = parts[::2]
    assert re.findall(r"^- \[(.*)\]\((#.*)\)$", lead, re.MULTILINE) == [
        (heading, anchor(heading)) for heading in headings
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_document_names_is_there(path: Path):
    text = path.read_text(encoding="utf-8")
    for link, part in re.findall(r"\]\(([^#)]*)(#[^)]*)?\)", text):
        if "://" not in link:
            assert (path.parent / link).exists(), link
            assert not part or part in anchors(path.parent / link if link else path), part
    files = [
        f"/{file.relative_to(ROOT).as_posix()}"
        for folder in ("gpu_studio", "packaging", "tests")
        for file in (ROOT / folder).rglob("*.py")
    ]
    for name in re.findall(r"`([\w/.-]+\.py)", text):
        assert any(file.endswith(f"/{name}") for file in files), name
    for module in re.findall(r"python3? -m ((?:gpu_studio|tests)[\w.]*)", text):
        assert any(
            file in (f"/{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py"))
            for file in files
        ), module


def test_the_picture_of_the_house_has_its_arrows():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE)
    folders = {
        path.name for path in (ROOT / "gpu_studio").iterdir() if (path / "__init__.py").exists()
    }
    assert {room for room, _ in rows} == folders
    for room, imports in rows:
        assert set(re.findall(r"`(\w+)`", imports)) == ARROWS[room], room


@pytest.mark.parametrize(
    ("first", "documents"), [("README.md", FOR_USERS), ("CONTRIBUTING.md", FOR_DEVELOPERS)]
)
def test_every_document_is_linked_from_the_first_one_of_its_readers(
    first: str, documents: list[Path]
):
    text = (ROOT / first).read_text(encoding="utf-8")
    for path in documents:
        assert f"({path.relative_to(ROOT).as_posix()})" in text, path.name


@pytest.mark.parametrize("path", FOR_USERS, ids=lambda path: path.name)
def test_a_users_document_names_no_test_and_no_bench(path: Path):
    assert not re.findall(r"tests/[\w/]*|tests\.\w+", path.read_text(encoding="utf-8"))


_CHECK_TEXT = (ROOT / "docs/check.md").read_text(encoding="utf-8")
_CHECK_PART = _CHECK_TEXT[_CHECK_TEXT.index("## The stages of a check") :].split("\n## ")[0]
STAGES = {
    cells[0].strip("`"): cells
    for cells in (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in _CHECK_PART.splitlines()
        if line.startswith("| `")
    )
}


def test_there_is_a_row_for_each_stage_in_order() -> None:
    assert tuple(STAGES) == STAGE_NAMES


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_row_has_the_stages_share_and_its_planted_faults(name: StageName) -> None:
    _, share, catches, misses, plants = STAGES[name]
    assert share.startswith(f"{round(100 * stage_words(name, 'cuda:0').share)} %")
    assert catches
    assert misses
    found = [fault.kind for fault in PLANTED_FAULTS if name in fault.found_by]
    assert re.findall(r"`(\w+)`", plants) == found


def test_the_longest_load_is_reported() -> None:
    assert f"{UNSENSED_LOAD_S:.0f} s without a temperature" in STAGES["load"][1]
