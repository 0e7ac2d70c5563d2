"""Every page of the window, and a PC of scripts on which each of them has a result."""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QTabBar,
    QTabWidget,
    QWidget,
)

from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory, RunMemoryExperiment
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.pitfall_messages import Figure, RunPitfall
from gpu_studio.core.messages.placement_messages import (
    PlaceModel,
    UseDevice,
)
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.pages import BENCHMARK
from gpu_studio.model.studio import Studio
from gpu_studio.ui.devices.pythons_page import PythonsPage
from gpu_studio.ui.memory.fit_page import FitPage
from gpu_studio.ui.scroll_page import idle_work
from gpu_studio.ui.tabs import TABS, Tab
from tests.core.pythons.made_pythons import make_venv, put_torch
from tests.driving.memory import fill_card
from tests.driving.window import find, sees, wait_until
from tests.fakes.check_answers import check_round
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.histories import TrainingHistory
from tests.fakes.memory_answers import memory_read, oom_finished, segments_read
from tests.fakes.race_answers import race_run
from tests.fakes.switching_answers import pitfall_finished, place_model, time_it, use_device

_TURNS = 10


class Page(NamedTuple):
    """A page of the window, and how a person comes to it."""

    title: str
    tab: str
    bar: str = ""
    number: int = 0


def _pages_of(tab: Tab) -> Iterator[Page]:
    for number, title in enumerate(tab.parts.values()):
        yield Page(title, tab.title, f"{tab.page.tab}.pages", number)
    if tab.page == BENCHMARK:
        for view in ("time", "sizes"):
            yield Page(view, tab.title, f"benchmark.view.{view}")
    if not tab.parts:
        yield Page(tab.title, tab.title)


PAGES = tuple(page for tab in TABS for page in _pages_of(tab))


def page_called(title: str) -> Page:
    return next(page for page in PAGES if page.title == title)


def scripts_of_all_pages() -> dict[type, Any]:
    """Return the answers of an engine with two cards, with the real engine's own words."""
    from gpu_studio.engine.devices.description import describe_engine

    result = describe_engine()
    # The frames are read while the engine already answers the next request.
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = {"workloads": result.workloads, "models": result.models, "pitfalls": result.pitfalls}
    return {
        DescribeEngine: [described_with_cuda(device_count=2, **words)],
        UseDevice: use_device,
        RunPitfall: _fall,
        RunWorkload: partial(_time_it, folder),
        PlaceModel: place_model,
        ReadMemory: _read,
        RunCheck: lambda _engine, request: check_round(request),
        RunMemoryExperiment: lambda _engine, _request: [
            memory_read(mark="start"),
            memory_read(allocated=1024, reserved=1024, mark="oom"),
            oom_finished(),
        ],
    }


def _time_it(folder: Path, engine: Any, request: RunWorkload) -> Iterator[Any]:
    if request.race is not None:
        yield from race_run(request)
        return
    yield from time_it(engine, request)


def _read(_engine: Any, request: ReadMemory) -> list[Event]:
    read = memory_read(request.device, allocated=100, reserved=120)
    return [read, segments_read(read)] if request.device != "cpu" else [read]


def _fall(_engine: Any, request: RunPitfall) -> list[Event]:
    """Answer with a figure that the fix makes smaller."""
    finished = pitfall_finished(request)
    call_s = {"broken": 0.0042, "fixed": 0.0013}[request.part]
    figure = Figure(name="call_s", title="A call", value=call_s, unit="s", aim="less")
    outcome = finished.broken or finished.fixed
    assert outcome is not None
    timed = msgspec.structs.replace(outcome, figures=(figure,))
    return [msgspec.structs.replace(finished, **{request.part: timed})]


def go(window: QWidget, page: Page) -> None:
    tabs = find(window, "tabs", QTabWidget)
    titles = [tabs.tabText(index).replace("&", "") for index in range(tabs.count())]
    tabs.setCurrentIndex(titles.index(page.tab))
    if page.tab == "Benchmark":
        find(window, "benchmark.pages", QTabBar).setCurrentIndex(0)
        settle()
    if page.bar.endswith(".pages"):
        find(window, page.bar, QTabBar).setCurrentIndex(page.number)
    elif page.bar:
        button = find(window, page.bar, QPushButton)
        if button.isEnabled():
            button.click()
    settle()


def settle() -> None:
    """Let the layouts and what waits for a turn of the event loop come to rest."""
    turns = 0
    while turns < _TURNS or not idle_work().is_done:
        QApplication.processEvents()
        turns += 1


def press(window: QWidget, name: str) -> None:
    """Press a button, and wait until the engine is free again."""
    studio = window.findChild(Studio)
    wait_until(find(window, name, QPushButton).isEnabled)
    find(window, name, QPushButton).click()
    wait_until(lambda: studio.session.is_free)
    settle()


def open_history(window: QWidget) -> None:
    """Open an invented history, and wait until all is known about it."""
    go(window, page_called("Will it fit?"))
    page = window.findChild(FitPage)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.pickle")
        training = TrainingHistory()
        training.run(3)
        training.write(path)
        page.model.open_file(path)
        wait_until(lambda: page.model.history is not None)
    wait_until(lambda: page.model.answer.sentence)
    settle()


def use(window: QWidget, page: Page) -> None:
    """Bring a page its results, if it has any."""
    work_of(page)(window)
    go(window, page)


def work_of(page: Page) -> Callable[[QWidget], None]:
    """Return what brings a page its results; the pages of one tab may have it from one work."""
    return _USES.get(page.title, _nothing)


def _nothing(_window: QWidget) -> None:
    """Leave a page that has no results as it is."""


def use_everything(window: QWidget) -> None:
    for page in PAGES:
        use(window, page)


def _look_for_pytorch(window: QWidget) -> None:
    """Look in a folder with Pythons of each kind that the page shows in another way."""
    go(window, page_called("PyTorch on this PC"))
    page = window.findChild(PythonsPage)
    with tempfile.TemporaryDirectory() as folder:
        for way, version, vision in (
            ("ComfyUI/venv", "2.5.1+cpu", "0.20.1+cpu"), ("whisper/.venv", "2.7.1+cu126", ""),
            ("FramePack/venv", "2.7.1+cu126", "0.20.1+cu124"), ("trainer/venv", "2.20.0+cu129", ""),
        ):  # fmt: skip
            put_torch(make_venv(Path(folder, way)), version, vision=vision)
        page.model.look(Path(folder))
        wait_until(lambda: page.model.verdicts)
    settle()


def _benchmark(window: QWidget) -> None:
    go(window, page_called("Run"))
    find(window, "benchmark.sizes", QLineEdit).setText("64, 2048")
    _run(window, "benchmark.run")


def _race(window: QWidget) -> None:
    go(window, page_called("Race"))
    _run(window, "race.run")


def _move(window: QWidget) -> None:
    go(window, page_called("Switch"))
    press(window, "switcher.move")


def _plan_start(window: QWidget) -> None:
    go(window, page_called("Start a program"))
    find(window, "start.command", QComboBox).setCurrentText("ollama serve")
    copy = find(window, "start.copy", QPushButton)
    copy.click()
    copy.menu().actions()[-1].trigger()
    copy.menu().close()
    wait_until(lambda: sees(window, "start.variables"))


def _learn(window: QWidget) -> None:
    go(window, page_called("Lessons"))
    press(window, "switcher.lab.break")
    press(window, "switcher.lab.fix")


def _fill(window: QWidget) -> None:
    go(window, page_called("Now"))
    fill_card(window)
    wait_until(find(window, "memory.oom.run", QPushButton).isEnabled)  # in an engine of its own


def _ask_what_fits(window: QWidget) -> None:
    open_history(window)
    find(window, "memory.fit.way.file", QRadioButton).click()


def _read_an_error(window: QWidget) -> None:
    go(window, page_called("Read an error"))
    press(window, "memory.error.example")


def _check(window: QWidget) -> None:
    go(window, page_called("Check"))
    _run(window, "check.run")


def _run(window: QWidget, name: str) -> None:
    press(window, name)
    wait_until(find(window, name, QPushButton).isEnabled)  # the engine may have to start again


_USES = {
    "PyTorch on this PC": _look_for_pytorch, "Race": _race,
    "Run": _benchmark, "time": _benchmark, "sizes": _benchmark, "History": _benchmark,
    "Switch": _move, "Start a program": _plan_start, "Lessons": _learn,
    "Now": _fill, "Segment map": _fill, "Will it fit?": _ask_what_fits,
    "Read an error": _read_an_error,
    "Check": _check,
}  # fmt: skip
