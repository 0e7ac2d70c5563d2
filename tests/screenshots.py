"""Take pictures of the window, offscreen unless a platform is given.

``python -m tests.screenshots DIR [--size 1280x800] [--theme dark]`` takes the README's: the real
window with the real engine and sensors of this PC. Every number was measured while it was taken.

``python -m tests.screenshots DIR --every-page [--font "DejaVu Sans"] [--only Memory]`` shows how
the window looks: every page while the engine starts, before its first result, while its work runs,
with a result, with a finding above it, after wrong results and after an error, each race while
the first and the second contestant run, and a check in each of its states; light and dark, in five
sizes, in each font that is named; and a contact sheet of each page. The engine and the sensors are
scripts: every number is invented, and no such picture is for the README.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QPoint, QSize, Qt, QTimer
from PySide6.QtGui import QFont, QFontDatabase, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QLabel,
    QMainWindow,
    QPushButton,
    QTabBar,
    QTableView,
    QWidget,
)

from gpu_studio.app import build_window
from gpu_studio.core.check import check_run
from gpu_studio.core.check.check_folder import CutOffCheck
from gpu_studio.core.check.check_record import Interruption
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.record_page import page_of
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    PitfallFailed,
    PlaceModel,
    RequestFailed,
    RunCheck,
    RunFailed,
    RunMemoryExperiment,
    RunPitfall,
    RunWorkload,
)
from gpu_studio.model.check import check_engine
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui import theme as window_theme
from gpu_studio.ui.check_tab import CheckTab
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.race_tab import RaceTab
from tests.driving.pages import (
    PAGES,
    go,
    page_called,
    press,
    scripts_of_all_pages,
    settle,
    use_everything,
)
from tests.driving.window import (
    choose,
    choose_data,
    click,
    drawn,
    find,
    open_tab,
    wait_ready,
    wait_until,
    write,
)
from tests.fakes import scripted_engine
from tests.fakes.check_answers import check_round, hot_card, wrong_bit
from tests.fakes.check_records import STARTED_AT, check_record
from tests.fakes.pc import SteadySensors, reading, two_cards
from tests.fakes.race_answers import race_run
from tests.fakes.race_pictures import drawn_pictures
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Engines, Pause, Script, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.model.race.race import Race

LONGEST_WAIT_S = 120.0
# Logical pixels, and device pixels for each of them: 1920 × 1080 at scale 2, 1.5 and 1, and others.
SIZES = ((960, 540, 2), (1280, 720, 1.5), (1920, 1080, 1), (1024, 640, 1), (1280, 800, 1))
THEMES = ("light", "dark")
TABS = tuple(dict.fromkeys(page.tab for page in PAGES))
_THUMBNAIL, _GAP = 640, 12
_FEWEST_SAMPLES = 10  # with fewer, the live plot looks empty


class Photographer:
    """Drives one window as a person would and keeps pictures of it."""

    def __init__(self, window: QMainWindow, folder: Path, suffix: str) -> None:
        self._window, self._folder, self._suffix = window, folder, suffix
        self._studio = window.findChild(Studio)

    def take_all(self) -> None:
        wait_ready(self._studio, LONGEST_WAIT_S)
        self.wait(lambda: self._studio.sensors.newest is not None)
        self.race()
        self.benchmark()
        self.show("Switcher")
        choose(self._window, "switcher.model", "Small conv")
        find(self._window, "switcher.pages", QTabBar).setCurrentIndex(1)
        self.press("switcher.move")
        self.wait(lambda: self._studio.session.is_free)
        self.take("switcher")
        find(self._window, "switcher.pages", QTabBar).setCurrentIndex(2)
        for button in ("switcher.lab.break", "switcher.lab.fix"):
            self.press(button)
            self.wait(lambda: self._studio.session.is_free)
        self.rest(300)
        self.take("switcher-pitfalls")
        self.memory()
        self.check()
        self.show("Devices")
        self.rest(3000)
        self.take("devices")

    def memory(self) -> None:
        """Break a card, or the modeled one if there is none, and look at all the pages."""
        self.show("Memory")
        pages = find(self._window, "memory.pages", QTabBar)
        pages.setCurrentIndex(2)
        self.rest(1500)
        self.take("memory-lab")
        choose_data(self._window, "memory.oom.preset", "fragmentation")
        run, compare = (
            find(self._window, f"memory.oom.{n}", QPushButton) for n in ("run", "compare")
        )
        self.press("memory.oom.run")
        self.wait(run.isEnabled)
        self.press("memory.oom.segments")
        self.take("memory-segments")
        pages.setCurrentIndex(2)
        self.wait(compare.isEnabled)
        self.press("memory.oom.compare")
        self.wait(run.isEnabled)
        self.rest(600)
        self.take("memory")
        pages.setCurrentIndex(0)
        self.rest(1000)
        self.take("memory-curves")
        pages.setCurrentIndex(3)
        self.press("memory.error.example")
        self.take("memory-error")
        pages.setCurrentIndex(4)
        self.wait(lambda: find(self._window, "memory.fit.sentence", QLabel).text())
        self.rest(300)
        self.take("memory-fit")

    def race(self) -> None:
        """Race each picture: before, in the middle of the second contestant, and at the end."""
        self.show("Race")
        race = self._window.findChild(RaceTab).race
        for picture in ("learn", "paint", "grow"):
            self.press(f"race.picture.{picture}")
            self.take(f"race-{picture}-start")
            self.press("race.run")
            self.wait(lambda: len(race.sides[1].track) > 5 or race.verdict)
            self.take(f"race-{picture}-middle")
            self.wait(lambda: race.verdict is not None)
            self.rest(300)
            self.take(f"race-{picture}")
        self.wait(lambda: self._studio.session.is_free)

    def check(self) -> None:
        """Check for a minute: once some memory is tested, and at the end."""
        self.show("Check")
        choose_data(self._window, "check.minutes", 1)
        QTest.keyClick(find(self._window, "check.minutes"), Qt.Key.Key_Return)
        check = self._window.findChild(CheckTab).check
        self.press("check.run")
        self.wait(lambda: check.record or (check.run.coverage and check.run.coverage.tested_bytes))
        self.rest(400)
        self.take("check")
        self.wait(find(self._window, "check.run", QPushButton).isEnabled)
        self.rest(300)
        self.take("check-result")

    def benchmark(self) -> None:
        self.show("Benchmark")
        write(self._window, "benchmark.sizes", "64, 128, 256, 512, 1024, 2048")
        for box in find(self._window, "benchmark.devices", QWidget).findChildren(QCheckBox):
            box.setChecked(box.isEnabled())
        run = find(self._window, "benchmark.run", QPushButton)
        self.press("benchmark.run")
        results = find(self._window, "benchmark.results", QTableView).model()
        self.wait(lambda: results.rowCount() > 1 and self.most_samples_drawn() >= _FEWEST_SAMPLES)
        self.take("benchmark-live")
        self.wait(lambda: run.isEnabled() and self._studio.session.is_free)
        self.press("benchmark.clear")
        find(self._window, "benchmark.mode.naive", QCheckBox).setChecked(True)
        self.press("benchmark.run")
        self.wait(lambda: run.isEnabled() and self._studio.session.is_free)
        self.press("benchmark.view.explanation")
        self.take("benchmark-explained")
        self.press("benchmark.view.history")
        self.take("benchmark-history")
        self.press("benchmark.view.sizes")
        self.take("benchmark")

    def most_samples_drawn(self) -> int:
        """Return how many samples the longest curve of the live plot shows."""
        keys = find(self._window, "benchmark.plot", LivePlot).curve_keys
        return max((len(drawn(self._window, "benchmark.plot", key)[0]) for key in keys), default=0)

    def show(self, title: str) -> None:
        open_tab(self._window, title)
        self.rest(600)

    def press(self, name: str) -> None:
        click(self._window, name)
        self.rest(400)

    def take(self, name: str) -> None:
        path = self._folder / f"{name}{self._suffix}.png"
        self._window.grab().save(str(path))
        sys.stderr.write(f"{path}\n")

    def wait(self, is_done: Callable[[], object]) -> None:
        wait_until(is_done, LONGEST_WAIT_S)

    def rest(self, milliseconds: int) -> None:
        """Let the window live for a while, so that there is something to see."""
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()


class EveryPage:
    """Takes all pages of one window over scripts, in one font; ``tabs`` are those to be taken."""

    def __init__(self, folder: Path, font: str, tabs: Collection[str]) -> None:
        self._folder, self._font = folder, font.replace(" ", "-").lower()
        self._pages = [page for page in PAGES if page.tab in tabs]
        self._taken: dict[str, list[Path]] = {}
        self._readings = 0
        self._settings = Settings(None)
        self._engines = Engines()
        self._engines.scripts |= scripts_of_all_pages()
        self._sensors = SteadySensors(two_cards())

    def take_all(self) -> None:
        """Take each state in turn; one state follows from the one before."""
        described = self._engines.scripts[DescribeEngine]
        self._engines.scripts[DescribeEngine] = [Pause(), *described]
        self._window = build_window(
            engine_factory=self._engines, sensor_source=self._sensors, settings=self._settings
        )
        self._studio = self._window.findChild(Studio)
        self._window.show()
        try:
            wait_until(lambda: self._engines.made and self._engines.latest.paused.is_set())
            self._take_state("1-starting")
            self._engines.scripts[DescribeEngine] = described  # an experiment's engine starts too
            self._engines.latest.go()
            wait_ready(self._studio, LONGEST_WAIT_S)
            self._read_sensors()
            wait_until(lambda: self._studio.sensors.newest is not None)
            self._take_state("2-empty")
            self._take_running()
            if any(page.tab == "Race" for page in self._pages):
                self._take_races()
            if any(page.tab == "Check" for page in self._pages):
                self._take_checks()
            use_everything(self._window)
            self._take_state("4-result")
            self._studio.headlines.tell("Something was found.", "This is what you can do about it.")
            self._take_state("5-finding")
            self._studio.headlines.dismiss()
            self._take_failed()
        finally:
            self._window.close()
        for page, paths in self._taken.items():
            self._make_sheet(page, paths)

    def _take_running(self) -> None:
        """Take the pages of each tab while its work runs, and Devices beside the benchmark."""
        for kind, page, button, tabs in (
            (RunWorkload, "LIVE", "benchmark.run", ("Devices", "Benchmark")),
            (RunPitfall, "Pitfalls", "switcher.lab.break", ("Switcher",)),
            (RunMemoryExperiment, "Break it", "memory.oom.run", ("Memory",)),
        ):
            whole = self._engines.scripts[kind]
            self._engines.scripts[kind] = held(whole)
            go(self._window, page_called(page))
            click(self._window, button)
            wait_until(lambda: any(engine.paused.is_set() for engine in self._engines.made))
            self._take_state("3-running", tabs)
            self._engines.scripts[kind] = whole
            self._go_on()
            go(self._window, page_called(page))
            wait_until(find(self._window, button, QPushButton).isEnabled)
        go(self._window, page_called("LIVE"))
        click(self._window, "benchmark.clear")

    def _go_on(self) -> None:
        """End the pause of each engine; experiments have engines of their own."""
        wait_until(lambda: any(engine.paused.is_set() for engine in self._engines.made))
        for engine in self._engines.made:
            if engine.paused.is_set():
                engine.go()

    def _take_races(self) -> None:
        """Take each race: before, while either contestant runs, at its end, and failed."""
        usual = self._engines.scripts[RunWorkload]
        with tempfile.TemporaryDirectory() as folder:
            racing = Racing(Path(folder))
            self._engines.scripts[RunWorkload] = racing
            go(self._window, page_called("Race"))
            race = self._window.findChild(RaceTab).race
            for picture in ("learn", "paint", "grow"):
                drawn_pictures(picture)  # now: the window waits for an engine only so long
                click(self._window, f"race.picture.{picture}")
                self._take_state(f"2-{picture}-start", ("Race",))
                racing.fails = False
                self._run_race(race, f"3-{picture}")
                self._take_state(f"4-{picture}-result", ("Race",))
                racing.fails = True
                self._run_race(race)
                self._take_state(f"7-{picture}-failed", ("Race",))
            click(self._window, "race.picture.learn")
        self._engines.scripts[RunWorkload] = usual

    def _run_race(self, race: Race, state: str = "") -> None:
        """Run a race that pauses twice; take it there under the name of a state, if it has one."""
        go(self._window, page_called("Race"))
        click(self._window, "race.run")
        for number, turn in enumerate(("first", "second")):
            frames = Racing.pauses[number] + 1
            wait_until(lambda n=number, count=frames: len(race.sides[n].track) == count)
            if state:
                self._take_state(f"{state}-{turn}", ("Race",))
            self._go_on()
        wait_until(lambda: race.verdict is not None and not race.state.is_busy)

    def _take_checks(self) -> None:
        """Take a check in its middle, stopping, and at each of its ends."""
        usual = self._engines.scripts[RunCheck]
        findings = {"load": (hot_card(),)}
        errors = {"compute": (wrong_bit("compute"),), "memory": (wrong_bit(),)}
        self._check_held("3-running", findings=findings)
        self._take_state("4-inconclusive", ("Check",))
        self._check_held("3-running-errors", findings=errors)
        self._take_state("4-failed", ("Check",))
        self._check_held("3-stopping", stops=True, stop_in="memory")
        self._take_state("4-partial", ("Check",))
        click(self._window, "check.expert")
        self._check_held("3-planted", findings=errors)
        self._take_state("4-planted", ("Check",))
        click(self._window, "check.expert")
        self._engines.scripts[RunCheck] = lost_card
        self._check()
        self._take_state("7-lost", ("Check",))
        self._open_record(check_record(errors, device="cpu"))
        self._take_state("4-opened", ("Check",))
        check = self._window.findChild(CheckTab).check
        check._keeper.looked.emit((cut_off_check(),), (check_record(), check_record(errors)))
        self._take_state("4-cut-off", ("Check",))
        check._keeper.looked.emit((), ())
        self._studio.headlines.dismiss()
        self._engines.scripts[RunCheck] = usual

    def _check_held(self, state: str, *, stops: bool = False, **script: Any) -> None:
        """Run a check, perhaps stop it, and take it in the middle of its memory stage."""
        self._engines.scripts[RunCheck] = partial(held_check, script)
        go(self._window, page_called("Check"))
        click(self._window, "check.run")
        wait_until(lambda: any(engine.paused.is_set() for engine in self._engines.made))
        wait_until(lambda: "Step 10 of 20" in find(self._window, "check.doing", QLabel).text())
        if stops:
            click(self._window, "check.stop")
        self._take_state(state, ("Check",))
        self._go_on()
        self._wait_checked()

    def _check(self) -> None:
        go(self._window, page_called("Check"))
        click(self._window, "check.run")
        self._wait_checked()

    def _wait_checked(self) -> None:
        tab = self._window.findChild(CheckTab)
        wait_until(lambda: tab.check.record is not None and tab.is_up_to_date)
        wait_until(find(self._window, "check.run", QPushButton).isEnabled)

    def _open_record(self, record: CheckRecord) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "record-of-a-check.html"
            path.write_bytes(page_of(record))
            check = self._window.findChild(CheckTab).check
            check.open_file(path)
            wait_until(lambda: check.record == record)

    def _take_failed(self) -> None:
        """Take the benchmark after wrong results, then every page after an error."""
        self._engines.scripts[RunWorkload] = wrong_results
        self._run_again("LIVE", "benchmark.run")
        self._take_state("6-wrong", ("Benchmark",))
        self._engines.scripts |= FAILING
        self._run_again("LIVE", "benchmark.run")
        for page, button in (
            ("Place", "switcher.move"),
            ("Pitfalls", "switcher.lab.break"),
            ("Break it", "memory.oom.run"),
        ):
            self._run_again(page, button)
        self._take_state("7-failed")

    def _run_again(self, page: str, button: str) -> None:
        go(self._window, page_called(page))
        if page == "LIVE":
            click(self._window, "benchmark.clear")
        press(self._window, button)
        wait_until(find(self._window, button, QPushButton).isEnabled)

    def _take_state(self, state: str, tabs: Collection[str] | None = None) -> None:
        pages = [page for page in self._pages if tabs is None or page.tab in tabs]
        for look in THEMES:
            self._settings.change(theme=look)
            for width, height, scale in SIZES:
                self._window.resize(width, height)
                settle()
                self._read_sensors()
                for page in pages:
                    go(self._window, page)
                    self._take(page.title, f"{state}-{width}x{height}-{look}", scale)

    def _read_sensors(self) -> None:
        """Send a reading: a sensor that says nothing for long is reported as silent."""
        self._readings += 1
        self._sensors.send(reading(two_cards(), float(self._readings)))

    def _take(self, page: str, name: str, scale: float) -> None:
        for plot in self._window.findChildren(LivePlot):
            if plot.isVisible() and not plot.visibleRegion().isEmpty():
                wait_until(lambda plot=plot: plot.plot is not None)
                plot.refresh()  # its next frame may be far
        settle()
        title = "".join(letter for letter in page.lower() if letter.isalnum())
        path = self._folder / title / f"{self._font}-{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = QImage(self._window.size() * scale, QImage.Format.Format_RGB32)
        picture.setDevicePixelRatio(scale)
        self._window.render(picture)
        picture.save(str(path))
        self._taken.setdefault(title, []).append(path)

    def _make_sheet(self, page: str, paths: list[Path]) -> None:
        """Put all pictures of a page on one, small, a row for each state and look."""
        across = len(SIZES)
        cell = QSize(_THUMBNAIL, _THUMBNAIL * 5 // 8) + QSize(_GAP, _GAP)
        rows = -(-len(paths) // across)
        sheet = QImage(cell.width() * across, cell.height() * rows, QImage.Format.Format_RGB32)
        sheet.fill(Qt.GlobalColor.gray)
        painter = QPainter(sheet)
        for number, path in enumerate(paths):
            small = QImage(str(path)).scaled(
                cell - QSize(_GAP, _GAP),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            row, column = divmod(number, across)
            painter.drawImage(QPoint(column * cell.width(), row * cell.height()), small)
        painter.end()
        path = self._folder / f"{self._font}-{page}.png"
        sheet.save(str(path))
        sys.stderr.write(f"{path}\n")


class Racing:
    """A script that pauses in each contestant's run; ``fails`` loses the second one's card there.

    Args:
        folder: gets the frames.
    """

    pauses = (3, 5)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = 0
        self.fails = False

    def __call__(self, _engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        number = self._runs % 2
        self._runs += 1
        for event in race_run(
            request,
            self._folder,
            pause_after=self.pauses[number],
            pictures=drawn_pictures(request.workload),
        ):
            yield event
            if isinstance(event, Pause) and number and self.fails:
                failure = Failure(FailureKind.CUDA_ERROR, "The card dropped off the bus.")
                yield RunFailed(run_id=request.run_id, failure=failure)
                return


def held_check(script: dict[str, Any], _engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    """Answer with a check that waits in its memory stage and hears no stop there."""
    for event in check_round(request, pause_in="memory", **script):
        yield Pause(deaf=True) if isinstance(event, Pause) else event


def lost_card(_engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    """Answer with a check whose card goes away in the middle of the memory stage."""
    yield from check_round(request, end_in="memory")
    message = "CUDA error: the GPU is lost."
    yield RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, message, fatal=True))


def cut_off_check() -> CutOffCheck:
    """Return an overnight check that a restart of the PC ended."""
    check = CheckRun(CheckPlan(device="cuda:0", minutes=480), STARTED_AT)
    request = check.next_request()
    for event in check_round(request, end_in="memory"):
        check.apply(event)
    return CutOffCheck(check.state(), Interruption(after_s=check.elapsed_s, is_restart=True))


def held(script: Script) -> Script:
    """Return a script that pauses before its end; of runs, those of 512."""

    def answer(engine: ScriptedEngine, request: Any) -> Iterator[Any]:
        events = list(script(engine, request) if callable(script) else script)
        yield from events[:-1]
        if getattr(request, "size", 512) == 512:
            yield Pause()
        yield events[-1]

    return answer


def wrong_results(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    """Answer with results of which the cards' do not match the CPU's."""
    is_right = request.device == "cpu"
    said = "matches" if is_right else "differs from"
    return run_events(request, verified=is_right, verification=f"{said} float64 on the CPU")


_FAILURE = Failure(
    FailureKind.OUT_OF_MEMORY, "CUDA out of memory. Tried to allocate 256.00 MiB.", ""
)
FAILING: dict[type, Any] = {
    RunWorkload: lambda _engine, request: [RunFailed(run_id=request.run_id, failure=_FAILURE)],
    PlaceModel: [RequestFailed(failure=_FAILURE)],
    RunPitfall: lambda _engine, request: [PitfallFailed(name=request.name, failure=_FAILURE)],
    RunMemoryExperiment: [RequestFailed(failure=_FAILURE)],
}


def take_every_page(folder: Path, fonts: list[str], tabs: Collection[str]) -> None:
    """Take every page in each of the fonts that this PC has; the others are named and left out."""
    scripted_engine.LONGEST_PAUSE_S = 3600.0  # an engine is held for as long as it is looked at
    check_run.STEP_PATIENCE_S = 3600.0
    check_engine._STOP_PATIENCE_MS = 3_600_000
    there = set(QFontDatabase.families())
    system_font = window_theme.application_font
    for family in fonts:
        if family not in there:
            sys.stderr.write(f"{family} is not installed\n")
            continue

        def chosen(system: QFont, family: str = family) -> QFont:
            font = system_font(system)
            font.setFamilies([family])
            return font

        window_theme.application_font = chosen
        EveryPage(folder, family, tabs).take_all()
    window_theme.application_font = system_font


def take_real_pictures(options: argparse.Namespace) -> None:
    """Take the README's pictures."""
    width, height = (int(part) for part in options.size.split("x"))
    settings = Settings(None)
    settings.change(theme=options.theme, budget_s=0.5)
    window = build_window(settings=settings)
    window.resize(width, height)
    window.show()
    try:
        Photographer(window, options.folder, options.suffix).take_all()
    finally:
        window.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="1280x800")
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument("--suffix", default="")
    parser.add_argument("--every-page", action="store_true", help="with invented numbers")
    parser.add_argument("--font", action="append", help="for --every-page; may be given again")
    parser.add_argument("--only", action="append", choices=TABS, help="a tab; may be given again")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    application = QApplication([])
    if options.every_page:
        take_every_page(options.folder, options.font or ["DejaVu Sans"], options.only or TABS)
    else:
        take_real_pictures(options)
    application.processEvents()


if __name__ == "__main__":
    main()
