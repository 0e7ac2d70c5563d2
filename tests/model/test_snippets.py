import pytest

from gpu_studio.model.pages import (
    BENCHMARK,
    DEVICES,
    LESSONS,
    MEMORY,
    SWITCH,
    SWITCHER,
)
from gpu_studio.model.snippets import Snippets


@pytest.fixture
def snippets():
    created = Snippets()
    yield created
    created.deleteLater()


def test_a_page_has_its_own_code(snippets):
    snippets.turn_to(DEVICES)
    snippets.show("# devices", DEVICES)
    snippets.show("# runs", BENCHMARK)
    assert snippets.snippet == "# devices"
    snippets.turn_to(BENCHMARK)
    assert snippets.snippet == "# runs"
    snippets.turn_to(MEMORY)
    assert snippets.snippet == ""


def test_a_tab_with_pages_shows_the_code_of_the_one_in_front(snippets, qtbot):
    snippets.turn_to(SWITCH)
    snippets.turn_to(SWITCHER)
    snippets.show("# chosen", SWITCHER)
    snippets.show("# placed", LESSONS)
    assert snippets.snippet == "# chosen"
    with qtbot.waitSignal(snippets.snippet_changed) as result:
        snippets.turn_to(LESSONS)
    assert result.args == ["# placed"] == [snippets.snippet]
