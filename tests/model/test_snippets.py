"""Each page keeps the code of its own last action."""

from __future__ import annotations

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import PitfallFinished, RunPitfall
from gpu_studio.model.snippets import SWITCHER, Snippets
from tests.fakes.descriptions import described


@pytest.fixture
def snippets():
    made = Snippets()
    yield made
    made.deleteLater()


def test_a_page_has_its_own_code(snippets):
    snippets.turn_to("Devices")
    snippets.show("# devices", "Devices")
    snippets.show("# runs", "Benchmark")
    assert snippets.snippet == "# devices"
    snippets.turn_to("Benchmark")
    assert snippets.snippet == "# runs"
    snippets.turn_to("Memory")
    assert snippets.snippet == ""


def test_a_tab_with_pages_shows_the_code_of_the_one_in_front(snippets, qtbot):
    snippets.turn_to_part(SWITCHER, "Choose")
    snippets.turn_to(SWITCHER)
    snippets.show("# chosen", SWITCHER)
    snippets.show("# placed", SWITCHER, "Place")
    assert snippets.snippet == "# chosen"
    with qtbot.waitSignal(snippets.snippet_changed) as told:
        snippets.turn_to_part(SWITCHER, "Place")
    assert told.args == ["# placed"] == [snippets.snippet]


def test_the_engines_own_code_is_that_of_the_devices(studio, engines, qtbot):
    engines.scripts[DescribeEngine] = [described(snippet="# what is here")]
    studio.snippets.turn_to("Devices")
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert studio.snippets.snippet == "# what is here"


def test_an_action_without_code_keeps_the_code_of_its_page(ready_studio, engines, qtbot):
    studio = ready_studio
    studio.snippets.turn_to_part(SWITCHER, "Pitfalls")
    studio.snippets.turn_to(SWITCHER)
    request = RunPitfall(name="mixed_devices", device="cpu", part="broken")
    for code, wanted in (("# broken", "# broken"), ("", "# broken")):
        engines.scripts[RunPitfall] = [
            PitfallFinished(name="mixed_devices", device="cpu", snippet=code)
        ]
        studio.session.submit(request)
        qtbot.waitUntil(lambda: studio.session.is_free)
        assert studio.snippets.snippet == wanted
    studio.snippets.turn_to_part(SWITCHER, "Choose")
    assert studio.snippets.snippet == ""
