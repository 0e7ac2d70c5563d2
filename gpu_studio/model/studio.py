"""The application's state, shared by the tabs. It owns the models and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.notice import Action
from gpu_studio.model import pages
from gpu_studio.model.adapters_here import AdaptersHere
from gpu_studio.model.devices.device_board import DeviceBoard
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.headline import HeadlineModel
from gpu_studio.model.pages import LESSONS, RACE, Destination, Wakefulness
from gpu_studio.model.pc import Pc
from gpu_studio.model.pcs import Pcs
from gpu_studio.model.run_marks import RunMarks
from gpu_studio.model.snippets import Snippets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.engine import Engine, EngineFactory
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.run_messages import OwnCode, WorkloadDescription
    from gpu_studio.model.builds import (
        BuildInstallerPort,
        Builds,  # 10 ms
        BuildStore,
    )
    from gpu_studio.model.pages import PageId
    from gpu_studio.model.pc import PcPort
    from gpu_studio.model.sensors import SensorSource
    from gpu_studio.model.settings import Settings
    from gpu_studio.process.sleep_block import SleepBlock

    RecordedFactory = Callable[[Recording, float], Engine]

# Where the button of a notice leads.
_PAGE_OF = {
    Action.SET_UP: pages.SET_UP,
    Action.SHOW_SET_UP: pages.SET_UP,
    Action.SHOW_LOG: pages.DIAGNOSTICS,
    Action.SHOW_CHECK: pages.CHECK,
}


class Studio(QObject):
    """The PCs, the settings, and the snippet of each page.

    `pcs` has this PC and those that the user added; `session`, `lab`, `sensors` and `doctor` are
    those of this one. ``pc_port`` reaches others. `board` has the devices. `modelled` is the engine
    of simulated cards, created by ``modelled_factory``; it costs nothing and stays. `adapters`
    has what computes here without PyTorch, with an engine of its own by ``quick_factory``.
    ``data_folder`` is the folder of the results; None keeps none. `doctor` has the
    findings; `headlines` chooses the banner's sentence, `runs` marks the runs of the session.
    ``recorded_factory`` creates the engine that replays a recording; ``cards_are_simulated`` is
    stated in every new recording. ``boot`` differs after each start of the PC. `builds` has the
    builds that the window installs for itself, if ``build_store`` and ``build_installer`` are
    given; ``wheels`` is a folder of wheels for them.
    `wakefulness` keeps the PC awake by ``sleep_blocker`` while long work runs.
    `is_ended_by_system` is true if the system ends the program, such as at a logoff; otherwise, you
    close it.

    Signals:
        destination_wanted(Destination): the user wants to see a page of the window.
        closing(): the program is ending: receivers finish their writing.
    """

    destination_wanted = Signal(Destination)
    closing = Signal()

    def __init__(
        self,
        engine_factory: EngineFactory,
        sensor_source: SensorSource,
        settings: Settings,
        parent: QObject | None = None,
        *,
        modelled_factory: EngineFactory | None = None,
        quick_factory: EngineFactory | None = None,
        data_folder: Path | None = None,
        recorded_factory: RecordedFactory | None = None,
        cards_are_simulated: bool = False,
        boot: str = "",
        build_store: BuildStore | None = None,
        build_installer: BuildInstallerPort | None = None,
        wheels: Path | None = None,
        sleep_blocker: SleepBlock | None = None,
        pc_port: PcPort | None = None,
    ) -> None:
        super().__init__(parent)
        self.wakefulness = Wakefulness(sleep_blocker, self)
        self.is_ended_by_system = False
        self.settings = settings
        self.data_folder = data_folder
        self.recorded_factory = recorded_factory
        self.cards_are_simulated = cards_are_simulated
        self.boot = boot
        here = Pc("", engine_factory, sensor_source, self)
        self.adapters = AdaptersHere(quick_factory or engine_factory, here, self)
        self.pcs = Pcs(here, self.adapters, settings, pc_port, self)
        self.session, self.lab = here.session, here.lab
        self.sensors, self.doctor = here.sensors, here.doctor
        self.modelled = EngineSession(modelled_factory or engine_factory, self)
        self.builds: Builds | None = None
        if build_store is not None and build_installer is not None:
            from gpu_studio.model.builds import Builds

            self.builds = Builds(
                self.session, self.lab, self.sensors, build_store, build_installer, self,
                wheels=wheels,
            )  # fmt: skip
        self.headlines = HeadlineModel(
            self.session, self.sensors, self.doctor, settings, self.builds, self
        )
        self.headlines.action_wanted.connect(self._on_action_wanted)
        self.runs = RunMarks(self.session, self.sensors, self)
        self.snippets = Snippets(self)
        self._asked_for: tuple[int, tuple[str, ...]] | None = None
        self.session.engine_described.connect(self._engine_described)
        self.modelled.request_submitted.connect(self.snippets.on_request_submitted)
        for pc in self.pcs.all:
            self._show_snippets_of(pc)
        self.pcs.added.connect(self._show_snippets_of)
        # After the cards have got this engine's numbers.
        self.board = DeviceBoard(self.pcs, settings, self)
        self.sensors.inventory_changed.connect(self._on_inventory_changed)

    def start(self) -> None:
        """Start the sensor reader and the engine; called after the window's first paint."""
        self.sensors.start()
        if self.builds is not None:
            self.builds.start()
        else:
            self.session.start()
        self.pcs.start()

    def close(self) -> None:
        """End all work and processes."""
        self.closing.emit()
        if self.builds is not None:
            self.builds.close()
        self.pcs.close()
        self.modelled.close()

    def go_to(self, page: PageId, *, device: str = "", starts: bool = False) -> None:
        """Bring a page of the window to the front; see `Destination`."""
        self.destination_wanted.emit(Destination(page=page, device=device, starts=starts))

    def race_code(self, code: OwnCode, workload: WorkloadDescription) -> None:
        """Race the user's own code, which has run before."""
        self.destination_wanted.emit(Destination(page=RACE, code=code, workload=workload))

    def teach(self, lesson: str) -> None:
        """Open the lesson of this name."""
        self.destination_wanted.emit(Destination(page=LESSONS, lesson=lesson))

    def wake_cards(self) -> None:
        """Let the engine ask CUDA although all cards sleep: the user wants to use them."""
        self._describe_again(wakes_cards=True)

    def _show_snippets_of(self, pc: Pc) -> None:
        for session in (pc.session, pc.lab):
            session.request_submitted.connect(self.snippets.on_request_submitted)

    def _on_action_wanted(self, headline: Finding) -> None:
        if headline.action is Action.WAKE_CARDS:
            self.wake_cards()
        elif headline.action is Action.INSTALL:
            assert self.builds is not None  # otherwise no headline offers it
            self.builds.use(headline.build_tag)  # whatever was chosen before
            self.builds.begin(headline.build_tag)
            self.go_to(pages.SET_UP)
        elif headline.action in _PAGE_OF:
            self.go_to(_PAGE_OF[headline.action])

    def _on_inventory_changed(self, inventory: Inventory) -> None:
        """Let the engine ask CUDA once another program has woken a sleeping card."""
        engine = self.session.description
        awake = [card.identity for card in inventory.cards if card.unreadable_code != "asleep"]
        asked_for = (engine.pid, tuple(awake)) if engine is not None and awake else None
        # Only once: the engine checks itself, and may find that the card sleeps again.
        if asked_for is not None and asked_for != self._asked_for:
            self._asked_for = asked_for
            self._describe_again(wakes_cards=False)

    def _describe_again(self, *, wakes_cards: bool) -> None:
        described = self.session.description
        if described is not None and described.cards_asleep:
            self.session.submit(DescribeEngine(wakes_cards=wakes_cards))

    def _engine_described(self, description: EngineDescribed) -> None:
        self.sensors.number_for(
            description.visible_devices, description.build_kind, description.cards
        )
        if description.snippet:
            self.snippets.show(description.snippet, pages.OVERVIEW)
