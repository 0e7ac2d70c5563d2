"""The window's composition root: the only module that names the real engine and sensors.

An import inside a function, here and below, is one that the first paint does not need. The figure
beside it is its processor time, measured on a PC with two cores.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from PySide6.QtCore import QMetaObject, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QFont, QFontMetrics, QIcon

from gpu_studio.builds.client import BuildInstallChild
from gpu_studio.core.program_form import typed
from gpu_studio.core.resources import MissingResourceError, resource_path
from gpu_studio.engine.client import ProcessEngine, QuickEngine
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from gpu_studio.engine.recorded_engine import RecordedEngine
from gpu_studio.hardware.client import SensorReader
from gpu_studio.hardware.cpu import are_cards_simulated, boot_mark
from gpu_studio.model.settings import Settings
from gpu_studio.model.start_mark import StartMark
from gpu_studio.model.studio import Studio
from gpu_studio.model.worker import Worker
from gpu_studio.process.console_end import ConsoleEnd
from gpu_studio.process.family_folder import remove_left_over
from gpu_studio.process.sleep_block import SleepBlock
from gpu_studio.process.steady_memory import give_large_back
from gpu_studio.ui.main_window import MainWindow, show_unexpected
from gpu_studio.ui.override_guard import guard_overrides
from gpu_studio.ui.theme import Theme, styled_application

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from PySide6.QtCore import QMessageLogContext

    from gpu_studio.builds.shelf import BuildShelf
    from gpu_studio.core.engine import Engine, EngineEnvironment, EngineFactory
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.line.clients import LineHello
    from gpu_studio.model.sensors import SensorSource

_CRASH_LOG = "crash.log"
_LARGEST_LOG_BYTES = 1 << 20
_WITHOUT_FONT = (
    "This PC has no font, so a window cannot show text. Install a font (on Debian and Ubuntu, type "
    "“sudo apt-get install -y fonts-dejavu-core”), then start GPU Studio again. The terminal "
    "commands, such as “{command}”, work without a font."
)
_WHEELS = "GPU_STUDIO_WHEELS"  # for an installation without a person: in a school, in a test
_TIDY_EVERY_MS, _TURN_EVERY_MS, _COLLECT_EVERY_MS = 3_600_000, 500, 500

APP_ID = "gpu-studio"

_log = logging.getLogger("gpu_studio")
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def build_window(
    *,
    engine_factory: EngineFactory | None = None,
    sensor_source: SensorSource | None = None,
    settings: Settings | None = None,
    log_path: Path | None = None,
    data_folder: Path | None = None,
    tabs_after_paint: bool = False,
    bad_end: str | None = None,
    builds: BuildShelf | None = None,
    wheels: Path | None = None,
    sleep_blocker: SleepBlock | None = None,
    quick_factory: EngineFactory | None = None,
) -> MainWindow:
    """Return the whole window, not yet shown. It starts nothing before its first paint.

    Args:
        engine_factory: makes every engine, also the memory lab's; child processes by default.
        sensor_source: the stream of telemetry; the sensor reader's child by default.
        settings: the user's choices; those in the user's configuration folder by default.
        log_path: the log file for children and the Help menu.
        data_folder: the folder for results; None keeps none.
        tabs_after_paint: make the hidden tabs after the first paint.
        bad_end: the end of the log of a start that crashed.
        builds: the builds that the window installs for itself; None if PyTorch is a package of
            this Python.
        wheels: a folder of wheels that the builds are installed from without a question.
        sleep_blocker: keeps the PC awake during long work; None lets it sleep.
        quick_factory: makes the engine without PyTorch; a child process by default.
    """
    guard_overrides()

    def quick(environment: EngineEnvironment) -> Engine:
        uses_adapters = environment.visible_devices is None
        return QuickEngine(log_path=log_path, uses_adapters=uses_adapters)

    used_settings = settings or Settings(_settings_path())

    def packages() -> Path | None:
        return builds.used_folder() if builds is not None else None

    engines = engine_factory or partial(ProcessEngine, log_path=log_path, packages=packages)
    studio = Studio(
        engines,
        sensor_source or SensorReader(log_path=log_path),
        used_settings,
        modelled_factory=ModelledEngine,
        quick_factory=quick_factory or quick,
        data_folder=data_folder,
        recorded_factory=lambda recording, speed: RecordedEngine(recording, speed=speed),
        cards_are_simulated=are_cards_simulated(),
        boot=boot_mark(),
        build_store=builds,
        build_installer=BuildInstallChild(builds.root, log_path) if builds is not None else None,
        wheels=wheels,
        sleep_blocker=sleep_blocker,
        pc_port=SshPcs(),
    )
    theme = Theme(used_settings)
    theme.apply()
    window = MainWindow(studio, theme, log_path, tabs_after_paint=tabs_after_paint, bad_end=bad_end)
    used_settings.setParent(window)
    window.setWindowIcon(_icon())
    return window


class SshPcs:
    """Reaches other PCs by the system's own ``ssh``; see `model.pc.PcPort`."""

    def hello(self, pc: OtherPc) -> LineHello:
        """Return a question for a PC's greeting."""
        from gpu_studio.line.clients import LineHello  # with the first other PC

        return LineHello(pc)

    def engine(self, pc: OtherPc, environment: EngineEnvironment) -> Engine:
        """Return an engine that runs there."""
        from gpu_studio.line.clients import LineEngine

        return LineEngine(pc, environment)

    def sensors(self, pc: OtherPc) -> SensorReader:
        """Return the stream of its telemetry."""
        from gpu_studio.line.clients import LineSensors

        return LineSensors(pc)


def _own_builds() -> BuildShelf | None:
    from gpu_studio.builds.shelf import own_shelf  # 14 ms

    return own_shelf(_data_folder)


def has_letters(font: QFont) -> bool:
    """Return whether a font has letters: without any font, Qt draws empty boxes."""
    return QFontMetrics(font).inFont("A")


def main() -> int:
    """Open the window and return the program's exit status."""
    log_path = _start_log()
    mark = StartMark(log_path.parent) if log_path is not None else None
    bad_end = _read_bad_end(log_path) if log_path is not None and mark and mark.set() else None
    _name_for_taskbar()
    application = styled_application(sys.argv)
    application.setApplicationName("GPU Studio")
    application.setDesktopFileName(os.environ.get("FLATPAK_ID", APP_ID))
    if mark is not None:
        # Logging off ends this process; that is not a crash.
        application.commitDataRequest.connect(mark.clear)
    if not has_letters(application.font()):
        return _end_without_font(mark)
    settings = Settings(_settings_path())
    window = build_window(
        settings=settings,
        log_path=log_path,
        data_folder=_data_folder(),
        tabs_after_paint=True,
        bad_end=bad_end,
        builds=_own_builds(),
        wheels=_folder_of_wheels(),
        sleep_blocker=SleepBlock("Measuring or installing"),
    )
    window.painted.connect(give_large_back)
    collect_in_its_thread(window)
    sys.excepthook = _report_unexpected
    _close_on_signals(window)
    application.commitDataRequest.connect(window.note_system_end)
    queued = Qt.ConnectionType.QueuedConnection  # Windows tells it in a thread of its own
    console = ConsoleEnd(partial(QMetaObject.invokeMethod, window, "end_with_system", queued))
    _repeat(window, remove_killed_windows_folders, _TIDY_EVERY_MS)
    window.show()
    status = application.exec()
    _log.info("The window was closed")
    if mark is not None:
        mark.clear()
    console.note_end()
    workers = [*window.findChildren(Worker), *application.findChildren(Worker)]
    if any(worker.isRunning() for worker in workers):
        # A PyTorch call in this process can only end with the process: Qt and Python would both
        # abort because of the thread that is still in the call.
        logging.shutdown()
        os._exit(status)
    return status


def _close_on_signals(window: MainWindow) -> None:
    """Let Ctrl-C in the terminal close the window as its own button does.

    SIGHUP comes where a terminal is closed; Windows has Ctrl-Break in its place. SIGTERM is how a
    system that shuts down ends its programs.
    """
    for name, close in (
        ("SIGINT", window.close),
        ("SIGBREAK", window.close),
        ("SIGTERM", window.end_with_system),
        ("SIGHUP", window.end_with_system),
    ):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, lambda *_, close=close: close())
    # Python looks at signals only between its own instructions, so it gets a turn now and then.
    _repeat(window, _do_nothing, _TURN_EVERY_MS)


def _repeat(window: MainWindow, work: Callable[[], None], every_ms: int) -> None:
    timer = QTimer(window)
    timer.timeout.connect(work)
    timer.start(every_ms)


def collect_in_its_thread(window: MainWindow) -> None:
    """Collect garbage in the window's thread only, from now on.

    Python collects in any thread that allocates, so a worker's might destroy QObjects of the window
    with timers, which may only be destroyed in their own thread: the program would crash. What is
    made with the window stays, and is left out: to scan it each time would block the window.
    """
    gc.disable()
    window.painted.connect(gc.freeze)
    window.completed.connect(gc.freeze)
    _repeat(window, _collect, _COLLECT_EVERY_MS)


def _collect() -> None:
    due = [most < count for count, most in zip(gc.get_count(), gc.get_threshold(), strict=True)]
    if any(due):
        gc.collect(max(generation for generation, is_due in enumerate(due) if is_due))


def remove_killed_windows_folders() -> None:
    """Remove what windows that were killed have left, in a thread: it may be gigabytes."""
    threading.Thread(target=remove_left_over, daemon=True).start()


def _end_without_font(mark: StartMark | None) -> int:
    """Say why there is no window; this is not a crash, so the next start does not report it."""
    sys.stderr.write(_WITHOUT_FONT.format(command=typed("gpu-studio devices")) + "\n")
    if mark is not None:
        mark.clear()
    return 1


def _do_nothing() -> None:
    """Do nothing, in Python."""


def _settings_path() -> Path:
    return platformdirs.user_config_path("gpu-studio", appauthor=False) / "settings.json"


def _data_folder() -> Path:
    """Return the folder for results, which the terminal shares."""
    return platformdirs.user_data_path("gpu-studio", appauthor=False)


def _folder_of_wheels() -> Path | None:
    folder = os.environ.get(_WHEELS, "")
    return Path(folder) if folder else None


def _start_log() -> Path | None:
    """Write the log, Qt's messages and crash traces to a file; return its path."""
    try:
        folder = platformdirs.user_log_path("gpu-studio", appauthor=False, ensure_exists=True)
        path = folder / "gpu-studio.log"
        _keep_small(path)
        for private in (path, folder / _CRASH_LOG):
            # The logs name files and cards: other users of this PC must not read them.
            private.touch(mode=0o600)
            private.chmod(0o600)
        handler = logging.FileHandler(path, encoding="utf-8")
        crash = open(folder / _CRASH_LOG, "a", encoding="utf-8")  # noqa: SIM115
    except OSError:
        # Without a folder for the log, the program still works; there is no window yet to say so.
        return None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # on a full disk, every line would print a trace
    faulthandler.enable(file=crash)
    qInstallMessageHandler(_log_qt)
    return path


def _read_bad_end(path: Path) -> str:
    """Return the end of the log and of the crash traces, before this start writes to them."""
    from gpu_studio.core.shared_texts import log_end  # 5 ms, after a bad end

    return "\n".join([log_end(path), log_end(path.with_name(_CRASH_LOG))]).strip()


def _keep_small(path: Path) -> None:
    """Rename a log that has grown large; the engine and the sensor reader write to it as well.

    This runs only at the start: while children have the log open, some systems cannot rename it.
    The logging package's own rotation would also import sockets before the first paint.
    """
    if path.exists() and path.stat().st_size > _LARGEST_LOG_BYTES:
        with contextlib.suppress(PermissionError):  # Windows, while another window has it open
            path.replace(path.with_suffix(".old.log"))


def _log_qt(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    logging.getLogger("qt").log(_QT_LEVELS.get(kind, logging.WARNING), message)
    if kind is QtMsgType.QtFatalMsg and sys.stderr is not None:
        # Qt aborts the process after this: print the reason to the terminal.
        sys.stderr.write(f"{message}\n")


def _report_unexpected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    _log.critical("Unexpected", exc_info=(kind, error, trace))
    show_unexpected("Something unexpected happened in the program. It keeps running.")


def _icon() -> QIcon:
    try:
        return QIcon(str(resource_path("app/gpu-studio.png")))
    except MissingResourceError as error:
        _log.warning("%s", error)
        return QIcon()


def _name_for_taskbar() -> None:
    """Make the Windows taskbar show this program's identity instead of Python's."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.shell32.SetCurrentProcessExplicitAppUserModelID(APP_ID)
