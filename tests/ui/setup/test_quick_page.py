from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QPushButton

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import Adapter, DescribeEngine, RequestFailed
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.race.race_tab import RaceTab
from tests.driving.window import click, find, sees, text, wait_until
from tests.fakes.check_answers import check_round, wrong_bit
from tests.fakes.descriptions import described
from tests.fakes.pc import cpu_only
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_builds import FakeShelf, record
from tests.fakes.scripted_engine import Engines, Pause
from tests.patience import limit
from tests.ui.fitting import misfits

CARD = Adapter(address="vulkan:0", name="Radeon RX 580", interface="Vulkan", vendor_id=0x1002)


def runs(_engine, request: RunWorkload) -> Iterator[object]:
    name = "Test CPU" if request.device == "cpu" else CARD.title
    return run_events(request, device_name=name)


@pytest.fixture
def quick() -> Engines:
    """Engines without PyTorch, with a card."""
    scripts = {DescribeEngine: [described(torch_version="", adapters=(CARD,))], RunWorkload: runs}
    return Engines(scripts)


@pytest.fixture
def window(pc_with, quick):
    """The first start of an installed program: PyTorch is not there yet."""
    window = pc_with(quick_factory=quick).window
    wait_until(lambda: sees(window, "setup.page"))
    return window


def measure(window):
    click(window, "setup.measure")
    wait_until(lambda: sees(window, "quick.again"))


def test_the_first_button_measures_and_says_who_is_faster(window):
    first, install = (find(window, f"setup.{one}", QPushButton) for one in ("measure", "begin"))
    assert (first.property("primary"), install.property("primary")) == (True, False)
    assert first.text() == "Measure my card now"
    measure(window)
    headline = text(window, "quick.headline")
    assert headline.startswith("The Radeon RX 580 by Vulkan against the CPU (matrix product")
    assert "copy" in text(window, "quick.second")
    assert "PyTorch adds" in text(window, "quick.adds")
    assert not misfits(window)
    click(window, "quick.close")
    assert sees(window, "setup.page")


def test_a_pc_without_a_card_is_measured_as_well(pc_with, quick):
    reason = "No driver here offers Vulkan. Install mesa-vulkan-drivers."
    quick.scripts[DescribeEngine] = [described(torch_version="", cuda_reason=reason)]
    window = pc_with(inventory=cpu_only(), quick_factory=quick).window
    wait_until(lambda: sees(window, "setup.page"))
    assert find(window, "setup.measure", QPushButton).text() == "Measure this PC now"
    measure(window)
    assert text(window, "quick.headline").startswith("Test CPU: ")
    assert text(window, "quick.lack") == reason


def test_a_driver_that_crashes_is_said_and_the_cpu_is_measured(window, quick):
    crash = Failure(FailureKind.ENGINE_ENDED, "A graphics driver crashed (signal 11).", fatal=True)

    def answer(engine, _request):
        if engine.environment.visible_devices is None:
            return [RequestFailed(failure=crash)]
        return [described(torch_version="")]

    quick.scripts[DescribeEngine] = answer
    measure(window)
    assert text(window, "quick.headline").startswith("Test CPU: ")
    assert "A graphics driver crashed (signal 11)." in text(window, "quick.lack")


def test_a_driver_that_hangs_is_said_and_the_cpu_is_measured(window, quick, monkeypatch):
    def answer(engine, _request):
        if engine.environment.visible_devices is None:
            return [Pause(deaf=True)]
        return [described(torch_version="")]

    quick.scripts[DescribeEngine] = answer
    limit(monkeypatch, quick_look_ms=50)
    measure(window)
    assert text(window, "quick.headline").startswith("Test CPU: ")
    assert "does not answer" in text(window, "quick.lack")


def test_a_stop_keeps_what_was_found_and_another_press_measures_again(window, quick):
    quick.scripts[RunWorkload] = lambda engine, request: [Pause(), *runs(engine, request)]
    click(window, "setup.measure")
    wait_until(lambda: text(window, "quick.headline") == "Measuring: matrix product, in turns")
    click(window, "quick.stop")
    wait_until(lambda: sees(window, "quick.again"))
    quick.scripts[RunWorkload] = runs
    click(window, "quick.again")
    wait_until(lambda: sees(window, "quick.again") and sees(window, "quick.second"))


def test_with_pytorch_the_page_is_a_menu_away_and_leads_back_to_the_tabs(pc_with, quick):
    window = pc_with(FakeShelf(record("cpu")), quick_factory=quick).window
    wait_until(lambda: sees(window, "tabs"))
    window.findChild(object, "menu.quick").trigger()
    wait_until(lambda: sees(window, "quick.again"))
    assert not sees(window, "quick.adds")
    click(window, "quick.close")
    assert sees(window, "tabs")


def test_one_click_further_the_memory_is_tested(window, quick):
    def script(_engine, request):
        return check_round(request, findings={"memory": (wrong_bit(),)})

    quick.scripts[RunCheck] = script
    measure(window)
    click(window, "quick.memory")
    check = window.findChild(CheckTab).check
    wait_until(lambda: check.record is not None)
    assert sees(window, "check.hero")
    assert [one.name for one in check.record.stages] == ["compute", "memory"]
    assert text(window, "check.errors") == "1 error"


def test_one_click_further_it_races_the_cpu(window):
    measure(window)
    click(window, "quick.race")
    race = window.findChild(RaceTab).race
    wait_until(lambda: race.is_over)
    assert sees(window, "race.sentence")
    assert [side.run.request.device for side in race.sides] == ["cpu", "vulkan:0"]
    assert race.raced.name == "grow"
