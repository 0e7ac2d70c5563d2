"""Every page of the window in every state, over scripts: all numbers are invented."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtWidgets import QLabel, QPushButton

from gpu_studio.app import build_window
from gpu_studio.core.check.check_record import encode_record
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.core.messages.pitfall_messages import RunPitfall
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.model.pages import AMP, FEEDING, SEVERAL_CARDS
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.race.race_tab import RaceTab
from gpu_studio.ui.tabs import tab_of
from tests.driving.pages import (
    PAGES,
    go,
    page_called,
    press,
    scripts_of_all_pages,
    use_everything,
)
from tests.driving.window import click, find, wait_ready, wait_until
from tests.fakes.check_answers import hot_card, wrong_bit
from tests.fakes.check_records import check_record
from tests.fakes.pc import SteadySensors, long_names, reading, two_cards
from tests.fakes.race_pictures import drawn_pictures
from tests.fakes.scripted_engine import Engines, Pause, Script, ScriptedEngine
from tests.pictures.interrupted_work import (
    FAILING,
    Racing,
    card_without_code,
    cut_off_check,
    held,
    held_check,
    held_second,
    lost_card,
    wrong_results,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.model.race.race import Race
    from tests.driving.pages import Page
    from tests.pictures.album import Album

LONGEST_WAIT_S = 120.0
SWITCHER = tab_of(FEEDING)
# The pages of the Switcher that compare ways to run a workload.
_COMPARING = {
    SWITCHER.parts[FEEDING]: "dataloader",
    SWITCHER.parts[AMP]: "train_step",
    SWITCHER.parts[SEVERAL_CARDS]: "data_parallel",
}


class EveryPage:
    """Takes all pages of one window over scripts.

    Args:
        album: gets the pictures.
        tabs: the tabs whose pages are taken.
    """

    def __init__(self, album: Album, tabs: Collection[str]) -> None:
        self._album = album
        self._pages = [page for page in PAGES if page.tab in tabs]
        self._readings = 0
        self._settings = Settings(None)
        self._engines = Engines()
        self._engines.scripts |= scripts_of_all_pages()
        self._inventory = two_cards()

    def take_all(self) -> None:
        """Take each state in turn; one state follows from the one before."""
        described = self._engines.scripts[DescribeEngine]
        self._engines.scripts[DescribeEngine] = [Pause(), *described]
        self._open(two_cards())
        try:
            wait_until(lambda: self._engines.made and self._engines.latest.paused.is_set())
            self._take_state("1-starting")
            self._engines.scripts[DescribeEngine] = described  # an experiment's engine starts too
            self._engines.latest.go()
            self._wait_for_sensors()
            self._take_state("2-empty")
            self._take_running()
            if any(page.tab == "Race" for page in self._pages):
                self._take_races()
            if any(page.tab == "Check" for page in self._pages):
                self._take_checks()
            use_everything(self._window)
            self._compare_workloads()
            self._take_state("4-result")
            self._studio.headlines.notify(
                "Something was found.", "This is what you can do about it."
            )
            self._take_state("5-finding")
            self._studio.headlines.dismiss()
            self._take_failed()
        finally:
            self._window.close()

    def take_long_names(self) -> None:
        """Take the results of a PC whose devices have the longest names."""
        inventory = long_names()
        run = self._engines.scripts[RunWorkload]
        self._engines.scripts[RunWorkload] = under_names_of(inventory, run)
        self._open(inventory)
        try:
            self._wait_for_sensors()
            use_everything(self._window)
            self._compare_workloads()
            self._take_state("8-long-names")
        finally:
            self._window.close()

    def _compare_workloads(self) -> None:
        """Bring a result to the pages of the Switcher that compare ways to run a workload."""
        for title, workload in _COMPARING.items():
            go(self._window, page_called(title))
            press(self._window, f"switcher.{workload}.run")

    def _open(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._sensors = SteadySensors(inventory)
        self._window = build_window(
            engine_factory=self._engines, sensor_source=self._sensors, settings=self._settings
        )
        self._studio = self._window.findChild(Studio)
        self._window.show()

    def _wait_for_sensors(self) -> None:
        wait_ready(self._studio, LONGEST_WAIT_S)
        self._read_sensors()
        wait_until(lambda: self._studio.sensors.newest is not None)

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
        if any(page.tab == "Switcher" for page in self._pages):
            self._take_comparing()
        go(self._window, page_called("LIVE"))
        click(self._window, "benchmark.clear")

    def _take_comparing(self) -> None:
        """Take the pages that compare ways to run a workload during the second run."""
        usual = self._engines.scripts[RunWorkload]
        for title, workload in _COMPARING.items():
            self._engines.scripts[RunWorkload] = held_second(usual)
            go(self._window, page_called(title))
            click(self._window, f"switcher.{workload}.run")
            wait_until(lambda: any(engine.paused.is_set() for engine in self._engines.made))
            self._take_pages("3-comparing", [page_called(title)])
            self._go_on()
            wait_until(lambda: self._studio.session.is_free)
        self._engines.scripts[RunWorkload] = usual

    def _go_on(self) -> None:
        """End the pause of each engine; experiments have engines of their own."""
        wait_until(lambda: any(engine.paused.is_set() for engine in self._engines.made))
        for engine in self._engines.made:
            if engine.paused.is_set():
                engine.go()

    def _take_races(self) -> None:
        """Take each race: before, while either contestant runs, at its end, and failed."""
        usual = self._engines.scripts[RunWorkload]
        racing = Racing()
        self._engines.scripts[RunWorkload] = racing
        go(self._window, page_called("Race"))
        race = self._window.findChild(RaceTab).race
        for picture in ("learn", "paint", "grow", "swarm"):
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
            wait_until(lambda n=number, count=frames: len(race.sides[n].track.frames) == count)
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
        check = self._window.findChild(CheckTab).check
        check.choose_plant("bit")
        self._check_held("3-planted", findings=errors)
        self._take_state("4-planted", ("Check",))
        check.choose_plant(None)
        self._engines.scripts[RunCheck] = lost_card
        self._check()
        self._take_state("7-lost", ("Check",))
        self._engines.scripts[RunCheck] = card_without_code
        self._check()
        self._take_state("7-nothing-tested", ("Check",))
        self._engines.scripts[RunCheck] = usual
        self._check()
        self._take_state("4-passed", ("Check",))
        self._open_record(check_record(errors, device="cpu"))
        self._take_state("4-opened", ("Check",))
        check._on_kept_found(((cut_off_check(),), (check_record(), check_record(errors))))
        self._take_state("4-cut-off", ("Check",))
        check._on_kept_found(((), ()))
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
            path = Path(folder) / "record-of-a-check.json"
            path.write_bytes(encode_record(record))
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
        self._take_pages(state, [one for one in self._pages if tabs is None or one.tab in tabs])

    def _take_pages(self, state: str, pages: list[Page]) -> None:
        shows = {page.title: partial(go, self._window, page) for page in pages}
        self._album.take_state(
            self._window, self._settings, state, shows, prepare=self._read_sensors
        )

    def _read_sensors(self) -> None:
        """Send a reading: a sensor that says nothing for long is reported as silent."""
        self._readings += 1
        self._sensors.send(reading(self._inventory, float(self._readings)))


def under_names_of(inventory: Inventory, script: Script) -> Script:
    """Return a script whose results carry the names of the devices of a PC."""
    names = {"cpu": inventory.devices[0].name}
    names |= {f"cuda:{number}": card.name for number, card in enumerate(inventory.cards)}

    def answer(engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        for event in script(engine, request) if callable(script) else script:
            if isinstance(event, RunFinished):
                yield msgspec.structs.replace(event, device_name=names[event.device])
            else:
                yield event

    return answer
