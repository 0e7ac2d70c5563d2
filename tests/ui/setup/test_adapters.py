"""Devices by Vulkan in the window's tabs, with PyTorch and without."""

from collections.abc import Iterator

import msgspec
import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import Adapter, DescribeEngine, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.race.race_tab import RaceTab
from tests.driving.window import click, find, open_tab, sees, text, wait_until, write
from tests.fakes.check_answers import check_round
from tests.fakes.descriptions import described, elementwise
from tests.fakes.pc import cpu_only
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_builds import FakeShelf, record
from tests.fakes.scripted_engine import Engines

SOFTWARE = Adapter(address="vulkan:0", name="llvmpipe", interface="Vulkan", is_software=True)
BY_OPENGL = msgspec.structs.replace(SOFTWARE, address="opengl:0", interface="OpenGL")
NAMES = {one.address: one.title for one in (SOFTWARE, BY_OPENGL)} | {"cpu": "Test CPU"}
WITHOUT_TORCH = described(
    torch_version="", cuda_reason=None, workloads=(elementwise(),), adapters=(SOFTWARE, BY_OPENGL)
)


def runs(_engine, request: RunWorkload) -> Iterator[object]:
    return run_events(request, device_name=NAMES[request.device])


@pytest.fixture
def quick() -> Engines:
    """Engines without PyTorch, whose drivers are Mesa's two software ones."""
    scripts = {
        DescribeEngine: [WITHOUT_TORCH], RunWorkload: runs,
        RunCheck: lambda _engine, request: check_round(request),
    }  # fmt: skip
    return Engines(scripts)


@pytest.fixture
def window(pc_with, quick):
    """With PyTorch for the CPU, on a PC without a card."""
    pc = pc_with(FakeShelf(record("cpu")), inventory=cpu_only(), quick_factory=quick)
    wait_until(lambda: pc.studio.session.is_free)
    open_tab(pc.window, "Benchmark")
    return pc.window


def ask(window, page="benchmark"):
    click(window, f"{page}.adapters")
    wait_until(lambda: not sees(window, f"{page}.adapters.note") or not _is_asking(window, page))


def _is_asking(window, page):
    return text(window, f"{page}.adapters.note").startswith("Asking")


def tick(window, address) -> QCheckBox:
    return find(window, f"benchmark.devices.{address}", QCheckBox)


def run(window):
    write(window, "benchmark.sizes", "64")
    click(window, "benchmark.run")
    benchmark = window.findChild(BenchmarkTab).benchmark
    wait_until(lambda: not benchmark.state.is_busy)
    return benchmark


def test_an_adapter_is_one_more_device_for_those_who_choose_it(window, quick, engines):
    assert quick.made == []
    ask(window)
    boxes = [tick(window, address) for address in ("cpu", "vulkan:0", "opengl:0")]
    assert [box.isChecked() for box in boxes] == [True, True, False]
    assert [one.text() for one in boxes[1:]] == ["llvmpipe by Vulkan", "llvmpipe by OpenGL"]
    assert "This processor, by Vulkan (llvmpipe)" in boxes[1].toolTip()
    benchmark = run(window)
    measured = [one for one in quick.requests if isinstance(one, RunWorkload)]
    assert [one.device for one in measured] == ["cpu", "vulkan:0"]
    assert not any(isinstance(one, RunWorkload) for one in engines.requests)
    assert [one.result.turns for one in benchmark.runs] == ["turns", "turns"]
    assert text(window, "benchmark.hero.headline").startswith("CPU ")
    wait_until(lambda: quick.latest.is_closed)  # it would keep a card awake


def test_what_only_pytorch_measures_is_refused_with_a_reason(window):
    naive = find(window, "benchmark.mode.naive", QCheckBox)
    assert naive.isEnabled()
    ask(window)
    assert not naive.isEnabled()
    assert "only with PyTorch" in naive.toolTip()
    tick(window, "vulkan:0").click()
    assert naive.isEnabled()


def test_no_part_calls_software_a_gpu(window):
    ask(window)
    run(window)
    for page in ("Race", "Check"):
        open_tab(window, page)
    window.findChild(RaceTab).race.choose_adapters()
    window.findChild(CheckTab).check.choose_adapters()
    for page in ("Benchmark", "Race", "Check"):
        open_tab(window, page)
        shown = " ".join(one.text() for one in window.findChildren(QLabel) if one.isVisible())
        assert "GPU" not in shown
        assert "your card" not in shown


@pytest.mark.parametrize(
    "reason",
    [
        "The part of GPU Studio that measures without PyTorch (wgpu) is missing: no wheel",
        "This PC has no Vulkan loader (libvulkan1). Install mesa-vulkan-drivers.",
    ],
)
@pytest.mark.parametrize("page", ["Benchmark", "Race", "Check"])
def test_what_is_missing_is_a_sentence_on_each_page(window, quick, page, reason):
    quick.scripts[DescribeEngine] = [described(torch_version="", cuda_reason=reason)]
    open_tab(window, page)
    ask(window, page.lower())
    assert text(window, f"{page.lower()}.adapters.note") == reason
    assert sees(window, f"{page.lower()}.adapters")  # once it is installed


def test_a_driver_that_crashes_is_a_sentence_and_the_rest_works(window, quick):
    crash = Failure(FailureKind.ENGINE_ENDED, "A graphics driver crashed (signal 11).", fatal=True)

    def answer(engine, _request):
        is_alone = engine.environment.visible_devices is not None
        without = described(torch_version="")
        return [without] if is_alone else [RequestFailed(failure=crash)]

    quick.scripts[DescribeEngine] = answer
    ask(window)
    assert text(window, "benchmark.adapters.note") == "A graphics driver crashed (signal 11)."
    assert run(window).runs[0].result is not None


def test_a_lost_device_is_a_sentence_and_the_next_run_has_a_new_engine(window, quick):
    lost = Failure(FailureKind.ENGINE_ENDED, "The driver took llvmpipe away.", fatal=True)
    quick.scripts[RunWorkload] = lambda _engine, request: [
        RunFailed(run_id=request.run_id, failure=lost)
    ]
    ask(window)
    run(window)
    assert "The driver took llvmpipe away." in text(window, "benchmark.hero.work")
    quick.scripts[RunWorkload] = runs
    assert run(window).results


def test_a_race_against_an_adapter_is_by_one_engine_and_one_picture(window, quick):
    open_tab(window, "Race")
    ask(window, "race")
    race = window.findChild(RaceTab).race
    assert race.picture.name == "grow"
    assert find(window, "race.contestants.right", QComboBox).currentText() == "llvmpipe by Vulkan"
    click(window, "race.run")
    wait_until(lambda: race.is_over)
    raced = [one for one in quick.requests if isinstance(one, RunWorkload)]
    assert [one.device for one in raced] == ["cpu", "vulkan:0"]


def test_without_pytorch_the_tabs_measure_as_well(pc_with, quick):
    window = pc_with(inventory=cpu_only(), quick_factory=quick).window
    click(window, "setup.close")
    open_tab(window, "Benchmark")
    assert "not installed" in text(window, "benchmark.progress.text")
    ask(window)
    benchmark = run(window)
    assert [one.request.device for one in benchmark.runs] == ["cpu", "vulkan:0"]
    assert benchmark.results


def test_a_contestant_of_pytorchs_takes_the_adapter_out_of_the_race(window):
    open_tab(window, "Race")
    ask(window, "race")
    race = window.findChild(RaceTab).race
    race.choose(left=msgspec.structs.replace(race.chosen[0].choice, dtype="float16"))
    assert all(one.contestant.device == "cpu" for one in race.chosen)
    race.choose_adapters()
    assert [one.contestant.device for one in race.chosen] == ["cpu", "vulkan:0"]
