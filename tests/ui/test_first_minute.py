import pytest
from PySide6.QtWidgets import QPushButton, QTabBar, QTabWidget

from gpu_studio.core.benchmark.plan import planned_s
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.studio import Studio
from gpu_studio.ui.race.race_tab import RaceTab
from tests.driving.race import gray, wait_over
from tests.driving.window import (
    click,
    column,
    find,
    numbers,
    sees,
    text,
    wait_ready,
    wait_until,
)
from tests.fakes.descriptions import described, described_for, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, two_cards
from tests.fakes.race_answers import race_run


@pytest.fixture
def open_window(make_window, engines):
    def opened(inventory, description):
        engines.scripts[DescribeEngine] = [description]
        window = make_window(inventory)
        window.show()
        wait_ready(window.findChild(Studio))
        wait_until(find(window, "devices.compare").isEnabled)  # a page follows what it tells
        return window

    return opened


def requests_of(engines) -> list[RunWorkload]:
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


@pytest.mark.parametrize(
    ("inventory", "cards"), [(gt_1030(), 1), (two_cards(), 2)], ids=["one card", "two cards"]
)
def test_one_click_compares_the_cpu_and_the_cards_and_shows_the_result(
    open_window, engines, qtbot, inventory, cards
):
    window = open_window(inventory, described_with_cuda(device_count=cards))
    assert "GPU" in find(window, "devices.compare", QPushButton).text()
    sentence = numbers(text(window, "devices.compare.note"))
    click(window, "devices.compare")
    tabs = find(window, "tabs", QTabWidget)
    assert tabs.tabText(tabs.currentIndex()) == "Benchmark"
    qtbot.waitUntil(lambda: len(requests_of(engines)) == 3 * (1 + cards))
    qtbot.waitUntil(find(window, "benchmark.run", QPushButton).isEnabled)
    asked = requests_of(engines)
    assert {one.workload for one in asked} == {"matmul"}
    assert {one.device for one in asked} == {"cpu", "cuda:0", "cuda:1"}.intersection(
        {"cpu", *(f"cuda:{number}" for number in range(cards))}
    )
    assert len({one.size for one in asked}) == 3
    assert sentence == [f"{planned_s(asked):.0f}"]
    assert sum(one.budget_s for one in asked if one.device == "cpu") < 10
    assert len(column(window, "benchmark.results", "Faster")) == 3


@pytest.mark.parametrize(
    ("inventory", "devices"),
    [(cpu_only(), ["cpu", "cpu"]), (gt_1030(), ["cpu", "cuda:0"])],
    ids=["no card", "a card"],
)
def test_one_click_races_and_ends_with_a_sentence_and_two_pictures(
    open_window, engines, tmp_path, inventory, devices
):
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    window = open_window(inventory, described_for(inventory))
    has_cards = bool(inventory.cards)
    assert ("GPU" in find(window, "devices.race", QPushButton).toolTip()) is has_cards
    click(window, "devices.race")
    tab = window.findChild(RaceTab)
    wait_over(tab)
    tabs = find(window, "tabs", QTabWidget)
    assert tabs.tabText(tabs.currentIndex()) == "Race"
    assert [one.device for one in requests_of(engines)] == devices
    assert "faster" in text(window, "race.sentence")
    assert gray(tab, "left") > 0
    assert gray(tab, "right") > 0


def test_a_pc_without_a_card_is_offered_what_runs_in_the_window(open_window):
    window = open_window(cpu_only(), described())
    assert sees(window, "devices.compare")
    assert not sees(window, "devices.verdict.command")
    assert not sees(window, "banner.command")
    tabs = find(window, "tabs", QTabWidget)
    for name, tab, page in (
        ("devices.simulated", "Memory", "Now"),
        ("devices.pitfalls", "Switcher", "Lessons"),
    ):
        tabs.setCurrentIndex(0)
        click(window, name)
        assert tabs.tabText(tabs.currentIndex()) == tab
        pages = find(window, f"{tab.lower()}.pages", QTabBar)
        assert pages.tabText(pages.currentIndex()) == page
