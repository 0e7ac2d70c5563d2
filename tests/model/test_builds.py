from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.record import Wanted
from gpu_studio.core.builds.trouble import TroubleError, build_in_use, no_network
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.builds import Builds
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.studio import Studio
from tests.fakes.pc import SteadySensors, cpu_only, gt_1030
from tests.fakes.scripted_builds import FakeStore, ScriptedBuildInstaller, record
from tests.model.session_watcher import hold, run_request, wait_paused
from tests.patience import limit

STAGES = InstallStage
STATES = EngineState


class Pc:
    """A studio on a PC whose program has no PyTorch of its own."""

    def __init__(self, engines, settings, store: FakeStore, inventory: Inventory, wheels=None):
        self.engines, self.store = engines, store
        self.installer = ScriptedBuildInstaller(store)
        self.studio = Studio(
            engines,
            SteadySensors(inventory),
            settings,
            build_store=store,
            build_installer=self.installer,
            wheels=wheels,
        )

    @property
    def session(self):
        return self.studio.session

    @property
    def builds(self) -> Builds:
        assert self.studio.builds is not None
        return self.studio.builds


@pytest.fixture
def pc_with(qapp, engines, settings, monkeypatch) -> Iterator[object]:
    limit(monkeypatch, handover_ms=1)
    collected = []

    def make(store=None, inventory=None, wheels=None) -> Pc:
        pc = Pc(engines, settings, store or FakeStore(), inventory or gt_1030(), wheels)
        collected.append(pc)
        return pc

    yield make
    for pc in collected:
        pc.studio.close()
        pc.studio.deleteLater()


def known_cards(qtbot, pc):
    pc.studio.start()
    qtbot.waitUntil(lambda: pc.studio.sensors.inventory is not None)


def at_work(qtbot, pc, family):
    qtbot.waitUntil(lambda: bool(pc.installer.calls) and pc.installer.calls[-1][0] == family)


def test_without_a_build_no_engine_starts_and_everything_says_why(qtbot, pc_with):
    pc = pc_with()
    known_cards(qtbot, pc)
    assert pc.session.state is STATES.ABSENT
    assert pc.engines.requests == []
    assert "not installed" in pc.session.what_is_missing
    assert not pc.builds.has_engine
    assert pc.builds.needs_attention
    assert pc.installer.calls == []  # nothing is downloaded without a question
    pc.session.restart()
    pc.session.start()
    assert pc.session.state is STATES.ABSENT


def test_the_cpus_build_works_while_the_cards_build_comes_and_then_it_takes_over(qtbot, pc_with):
    pc = pc_with()
    known_cards(qtbot, pc)
    pc.builds.begin(*pc.builds.planned)
    at_work(qtbot, pc, "cpu")
    assert pc.store.wish.builds == ("cpu", "cu126")
    assert pc.builds.next_builds == ("cu126",)
    pc.installer.say(STAGES.DOWNLOADING, 50, 100)
    qtbot.waitUntil(lambda: pc.builds.progress.done_bytes == 50)
    pc.installer.finish(record("cpu"))
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert pc.builds.engine.in_use == "cpu"
    assert pc.session.what_is_missing == ""
    at_work(qtbot, pc, "cu126")
    engines_before = len(pc.engines.made)
    pc.installer.finish(record("cu126", on_card=True))
    qtbot.waitUntil(lambda: pc.builds.engine.in_use == "cu126")
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert len(pc.engines.made) == engines_before + 1
    assert not pc.builds.needs_attention


def test_a_run_is_never_interrupted_by_a_better_build(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu")))
    pc.engines.scripts[RunWorkload] = hold
    known_cards(qtbot, pc)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    pc.builds.begin("cu126")
    at_work(qtbot, pc, "cu126")
    reply = pc.session.submit(run_request())
    wait_paused(qtbot, pc.engines)
    pc.installer.finish(record("cu126", on_card=True))
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    assert pc.builds.engine.taking_over == "cu126"
    assert pc.session.state is STATES.BUSY
    pc.builds.engine._settled.timeout.emit()  # even if its time has come
    assert pc.builds.engine.in_use == "cpu"
    pc.engines.latest.go()
    qtbot.waitUntil(lambda: pc.builds.engine.in_use == "cu126")
    assert reply.is_finished
    assert pc.builds.engine.taking_over == ""


def test_an_experiment_is_never_interrupted_by_a_better_build(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu")))
    pc.engines.scripts[RunWorkload] = hold
    known_cards(qtbot, pc)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    pc.studio.lab.start()
    reply = pc.studio.lab.submit(run_request())
    wait_paused(qtbot, pc.engines)
    pc.builds.begin("cu126")
    at_work(qtbot, pc, "cu126")
    pc.installer.finish(record("cu126", on_card=True))
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    pc.builds.engine._settled.timeout.emit()
    assert pc.builds.engine.in_use == "cpu"
    pc.engines.latest.go()
    qtbot.waitUntil(lambda: pc.builds.engine.in_use == "cu126")
    assert reply.is_finished


def test_a_cuda_build_that_runs_on_no_card_does_not_take_over(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu")))
    known_cards(qtbot, pc)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    pc.builds.begin("cu126")
    at_work(qtbot, pc, "cu126")
    pc.installer.finish(record("cu126"))
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    assert pc.builds.engine.taking_over == ""
    assert pc.builds.engine.in_use == "cpu"


def test_a_pause_is_remembered_and_continued(qtbot, pc_with):
    pc = pc_with()
    known_cards(qtbot, pc)
    pc.builds.begin("cpu", "cu126")
    at_work(qtbot, pc, "cpu")
    pc.builds.pause()
    assert pc.builds.is_pausing
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    assert pc.builds.progress.stage is STAGES.PAUSED
    assert pc.store.wish == Wanted(("cpu", "cu126"), "", True)
    assert pc.builds.next_builds == ("cpu", "cu126")
    assert len(pc.installer.calls) == 1  # the next one does not begin either
    pc.builds.go_on()
    qtbot.waitUntil(lambda: len(pc.installer.calls) == 2)
    assert pc.installer.calls[-1][0] == "cpu"
    assert not pc.store.wish.is_paused
    assert pc.builds.next_builds == ("cu126",)


def test_another_start_continues_what_was_wanted(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu"), wanted=Wanted(("cpu", "cu126"))))
    pc.studio.start()
    at_work(qtbot, pc, "cu126")
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert pc.builds.engine.in_use == "cpu"


@pytest.mark.parametrize("is_paused", [True, False])
def test_another_start_waits_after_a_pause_or_if_the_download_would_begin_again(
    qtbot, pc_with, monkeypatch, is_paused
):
    store = FakeStore(record("cpu"), wanted=Wanted(("cpu", "cu126"), "", is_paused))
    monkeypatch.setattr(store, "is_begun", lambda _family: is_paused)
    pc = pc_with(store)
    known_cards(qtbot, pc)
    assert pc.builds.progress.stage is STAGES.PAUSED
    assert pc.installer.calls == []
    pc.builds.go_on()
    at_work(qtbot, pc, "cu126")


def test_what_another_window_installed_is_not_downloaded_again(qtbot, pc_with):
    pc = pc_with()
    known_cards(qtbot, pc)
    pc.builds.begin("cpu")
    at_work(qtbot, pc, "cpu")
    pc.installer.fail(build_in_use("cpu"))
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    pc.store.kept["cpu"] = record("cpu")  # the other window is done
    pc.builds.go_on()
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert len(pc.installer.calls) == 1
    assert pc.builds.progress.stage is STAGES.READY
    assert pc.builds.next_builds == ()


def test_an_installer_that_cannot_start_is_reported(qtbot, pc_with, monkeypatch):
    pc = pc_with()

    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(pc.installer, "installing", refuse)
    known_cards(qtbot, pc)
    pc.builds.begin("cpu")
    qtbot.waitUntil(lambda: pc.builds.progress.stage is STAGES.FAILED)
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    assert "no more processes" in pc.builds.trouble.detail


@pytest.mark.parametrize(
    ("in_folder", "installed"),
    [(("cpu",), "cpu"), (("cu126",), "cu126"), (("cpu", "cu130"), "cpu"), (("cu130",), "cu130")],
)
def test_only_what_a_folder_has_is_installed_from_it(qtbot, pc_with, in_folder, installed):
    pc = pc_with()
    known_cards(qtbot, pc)
    pc.installer.in_folder = in_folder
    pc.builds.begin_from(Path("/wheels"), "cpu", "cu126")
    at_work(qtbot, pc, installed)
    assert pc.builds.next_builds == ()
    assert pc.store.wish.builds == (installed,)
    pc.installer.finish(record(installed))
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    pc.builds.begin("cu126" if installed != "cu126" else "cpu")
    qtbot.waitUntil(lambda: len(pc.installer.calls) == 2)
    assert pc.installer.calls[-1][1] is None  # the rest is downloaded


def test_the_engine_ends_before_its_build_is_repaired_and_starts_again(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu")))
    known_cards(qtbot, pc)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    first = pc.engines.latest
    pc.builds.repair("cpu")
    at_work(qtbot, pc, "cpu")
    assert pc.installer.calls == [("cpu", None, "repair")]
    assert first.is_closed
    assert pc.session.state is STATES.ABSENT
    pc.installer.finish(record("cpu"))
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert pc.builds.engine.in_use == "cpu"


def test_a_build_in_use_cannot_be_changed_during_a_run(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu"), record("cu130")))
    pc.engines.scripts[RunWorkload] = hold
    known_cards(qtbot, pc)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    pc.session.submit(run_request())
    wait_paused(qtbot, pc.engines)
    assert not pc.builds.can_change("cpu")
    assert pc.builds.can_change("cu130")
    pc.builds.remove("cpu")
    assert pc.store.removed == []


def test_a_removed_build_leaves_the_engine_to_another(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu"), record("cu126", on_card=True),
                           wanted=Wanted(("cpu", "cu126"), "cu126")))  # fmt: skip
    known_cards(qtbot, pc)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert pc.builds.engine.in_use == "cu126"
    pc.builds.remove("cu126")
    qtbot.waitUntil(lambda: pc.builds.engine.in_use == "cpu" and pc.session.state is STATES.READY)
    assert pc.store.removed == ["cu126"]
    assert pc.store.wish == Wanted(("cpu",))  # it does not come back at the next start
    assert [one.family for one in pc.builds.installed.records] == ["cpu"]


def test_what_is_given_up_stays_wanted_until_it_is_removed(qtbot, pc_with):
    pc = pc_with()
    known_cards(qtbot, pc)
    pc.builds.begin("cpu", "cu126")
    at_work(qtbot, pc, "cpu")
    pc.installer.fail(no_network("download.pytorch.org"))
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    pc.store.removal_error = TroubleError(build_in_use(""))
    pc.builds.give_up()
    qtbot.waitUntil(lambda: not pc.builds.is_discarding)
    assert "Another GPU Studio" in pc.builds.trouble.sentence
    assert not pc.builds.can_give_up  # what the other window downloads is not ours
    assert set(pc.store.wish.builds) == {"cpu", "cu126"}
    assert pc.builds.next_builds == ("cpu", "cu126")


def test_an_outdated_build_works_while_the_new_one_comes(qtbot, pc_with):
    old = record("cpu", torch="2.12.0")
    pc = pc_with(FakeStore(old, wanted=Wanted(("cpu",))), cpu_only())
    pc.studio.start()
    pc.builds.begin("cpu")
    at_work(qtbot, pc, "cpu")
    assert pc.installer.calls == [("cpu", None, "fetch")]
    assert "2.12.0" in pc.builds.installed.outdated(old)
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    first = pc.engines.latest
    pc.installer.say(STAGES.FETCHED, 100, 100)
    qtbot.waitUntil(lambda: len(pc.installer.calls) == 2)
    assert pc.installer.calls[-1] == ("cpu", None, "install")
    assert first.is_closed
    assert pc.session.state is STATES.ABSENT
    pc.installer.finish(record("cpu"))
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    assert pc.builds.engine.in_use == "cpu"
    assert pc.builds.installed.outdated(pc.builds.installed.records[0]) == ""


def test_a_fetched_build_waits_for_the_end_of_a_run(qtbot, pc_with):
    pc = pc_with(FakeStore(record("cpu", torch="2.12.0"), wanted=Wanted(("cpu",))), cpu_only())
    pc.engines.scripts[RunWorkload] = hold
    pc.studio.start()
    pc.builds.begin("cpu")
    at_work(qtbot, pc, "cpu")
    qtbot.waitUntil(lambda: pc.session.state is STATES.READY)
    pc.session.submit(run_request())
    wait_paused(qtbot, pc.engines)
    pc.installer.say(STAGES.FETCHED, 100, 100)
    qtbot.waitUntil(lambda: not pc.builds.is_at_work)
    assert len(pc.installer.calls) == 1
    pc.engines.latest.go()
    qtbot.waitUntil(lambda: len(pc.installer.calls) == 2)


def test_closing_ends_the_installer(qtbot, pc_with):
    pc = pc_with()
    known_cards(qtbot, pc)
    pc.builds.begin("cpu")
    at_work(qtbot, pc, "cpu")
    pc.studio.close()
    assert pc.installer.is_closed
    assert pc.store.wish == Wanted(("cpu",))  # the next start continues
