"""What every test gets, and what none may leave behind."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Every worker's PyTorch has a thread per core. Where they outnumber the cores, those that wait for
# work would turn in circles instead of sleeping, and take three times the CPU of the work itself.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# The tests start Python hundreds of times. Without bytecode, each start compiles the program.
os.environ["PYTHONDONTWRITEBYTECODE"] = ""

import contextlib
import gc
import importlib.util
import itertools
import signal
import sys
import sysconfig
import weakref
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from gpu_studio.builds.shelf import ENGINES, BuildShelf
from gpu_studio.core import limits
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.model.pc import RemotePc
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.model.worker import Worker
from gpu_studio.ui.override_guard import guard_overrides
from gpu_studio.ui.theme import Theme
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.other_pcs import OtherPcs, add_attic
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines
from tests.patience import PATIENCE_MS, UNHURRIED, limit
from tests.patient_qtbot import PatientQtBot

pytest_plugins = ["tests.tiers"]

# The same cases at every run, whatever else the machine does meanwhile; to search for others:
# pytest --hypothesis-profile=default
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.load_profile("steady")

# A suite that a shell started in the background inherits a Ctrl-C that is ignored, and so would
# every program that the tests start and break off.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An override that raises must fail its test, not crash the suite.
guard_overrides()

_ROOT = Path(__file__).resolve().parents[1]
_FULL_EVERY = 100
_tests = itertools.count(1)
# A worker holds Qt, and often a child with PyTorch.
_WORKER_BYTES = 1_500_000_000
_MOST_WORKERS = 8

# A checkout's PyTorch has a folder of its own: lead this Python there, and those that tests start.
_build = BuildShelf(Path(sys.prefix, ENGINES)).used()
if _build and importlib.util.find_spec("torch") is None:
    sys.path.append(str(Path(sys.prefix, ENGINES, _build)))
    Path(sysconfig.get_path("purelib"), "gpu_studio_tests.pth").write_text(
        f"import os, sys; sys.path.append(os.path.join(sys.prefix, 'engines', {_build!a}))\n",
        encoding="ascii",
    )


@pytest.hookimpl(optionalhook=True)  # without xdist, there is no such hook
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of ``-n auto``: three for two cores, as a third of the time is waiting.

    Windows has one: each would start Python, Qt and PyTorch again, without a measured gain.
    """
    if sys.platform == "win32":
        return 0
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(cores * 3 // 2, memory_bytes // _WORKER_BYTES, _MOST_WORKERS))


def pytest_collection(session: pytest.Session) -> None:
    """Import the tests' modules in another order in each worker.

    Every worker collects all tests. In a fresh checkout, one order for all would have each of them
    compile every module, at the same time as the others. So each starts at another one, and finds
    what the others compiled. Module errors are left to pytest's own collection.
    """
    gc.disable()  # what is imported stays; `pytest_runtest_protocol` collects
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    left_out = [_ROOT / one for one in session.config.getini("norecursedirs")]
    paths = [
        path
        for path in sorted(Path(__file__).parent.rglob("test_*.py"))
        if not any(one in path.parents for one in left_out)
    ]
    first = (
        len(paths) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    )
    for path in paths[first:] + paths[:first]:
        name = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_collection_finish() -> None:
    """Look at no module again for garbage: the modules are most objects, and they stay."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Collect garbage between tests, in this thread.

    What a test of the window leaves behind has timers: collected in the thread of a later test,
    as the automatic collection may be, they are destroyed where they do not live, and the
    interpreter crashes, now and then.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        if next(_tests) % _FULL_EVERY == 0:
            gc.collect()
            gc.freeze()  # the modules that were imported meanwhile: with PyTorch, 0.4 s each time
        else:
            gc.collect(1)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> PatientQtBot:
    """pytest-qt's own, with time for a machine that is busy."""
    return PatientQtBot(request)


@pytest.fixture(autouse=True)
def nothing_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set long time limits, because the machine may be busy; tests of a limit set their own."""
    monkeypatch.setattr(limits, "current", UNHURRIED)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """End an engine that does not hear a stop at once."""
    limit(monkeypatch, stop_ms=1)


def _is_tool_tip(widget: QWidget) -> bool:
    """Return whether this is Qt's own label of a tool tip, which it hides a moment later.

    On Windows, the moment can last until the next tests.
    """
    return widget.objectName() == "qtooltip_label"


@pytest.fixture(autouse=True)
def nothing_left_behind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test that leaves a window open or a worker running."""
    if not {"qtbot", "qapp", "studio"} & set(request.fixturenames):
        yield
        return
    request.getfixturevalue("qapp")
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication

    workers: weakref.WeakSet[Worker] = weakref.WeakSet()
    start = Worker.start

    def noted_start(worker: Worker) -> None:
        workers.add(worker)
        start(worker)

    monkeypatch.setattr(Worker, "start", noted_start)
    before = {id(widget) for widget in QApplication.topLevelWidgets()}
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    widgets = [
        widget
        for widget in QApplication.topLevelWidgets()
        if id(widget) not in before and not widget.isHidden() and not _is_tool_tip(widget)
    ]
    running = [thread for thread in workers if isValid(thread) and thread.isRunning()]
    for thread in running:  # so that the next test starts clean
        thread.requestInterruption()
        thread.wait(PATIENCE_MS)
    assert not widgets, f"windows left open: {widgets}"
    assert not running, "a worker was left running"


@pytest.fixture
def inventory() -> Inventory:
    """The devices of `studio`; a test overrides it with ``parametrize("inventory", …)``."""
    return cpu_only()


@pytest.fixture
def engines() -> Engines:
    """The scripted engines of `studio`: change ``engines.scripts`` before it starts."""
    return Engines()


@pytest.fixture
def sensor_source(inventory: Inventory) -> SteadySensors:
    return SteadySensors(inventory)


@pytest.fixture
def settings() -> Settings:
    """Settings that are kept nowhere."""
    return Settings(None)


@pytest.fixture
def other_pcs() -> OtherPcs:
    """The PCs that `studio` could reach: none is added."""
    return OtherPcs()


@pytest.fixture
def studio(
    qapp: QApplication,
    engines: Engines,
    sensor_source: SteadySensors,
    settings: Settings,
    other_pcs: OtherPcs,
) -> Iterator[Studio]:
    """The application's state with a scripted engine; nothing has started yet."""
    studio = Studio(engines, sensor_source, settings, pc_port=other_pcs)
    yield studio
    studio.close()
    # Here and now: left to the garbage collector, its timers may be destroyed in a worker's thread.
    studio.deleteLater()


@pytest.fixture
def ready_studio(qtbot: QtBot, studio: Studio) -> Studio:
    """The same with its engine described and its devices found."""
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    return studio


@pytest.fixture
def attic(qtbot: QtBot, ready_studio: Studio) -> RemotePc:
    """Another PC of it, which is connected, with a card that its engine can use."""
    pc = add_attic(ready_studio)
    qtbot.waitUntil(lambda: ready_studio.board.at("attic/cuda:0") is not None)
    qtbot.waitUntil(lambda: len(ready_studio.board.usable_cards) > 0)
    return pc


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    """The arguments of pytest-qt's application: the style of `styled_application`."""
    return ["pytest", "-style=fusion"]


@pytest.fixture
def theme(qapp: QApplication, settings: Settings) -> Theme:
    theme = Theme(settings)
    theme.apply()
    return theme


@pytest.fixture
def with_cuda(engines: Engines) -> Engines:
    """Engines with two usable cards, whose allocator holds 1 GiB of 2 GiB reserved."""
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    engines.scripts[ReadMemory] = lambda _engine, request: [
        MemoryRead(
            device=request.device, taken_at_s=0.0, allocated_bytes=1 << 30, reserved_bytes=2 << 30
        )
    ]
    return engines
