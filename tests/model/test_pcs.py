from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.core.notice import Action
from gpu_studio.core.other_pc import LineProblem
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pc import RemotePc
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.fakes.other_pcs import OtherPcs, add_attic, line_lost
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.run_answers import run_events, started
from tests.fakes.scripted_engine import Engines


def addresses(studio: Studio) -> list[str | None]:
    return [row.address for row in studio.board.rows]


def test_without_another_pc_nothing_is_asked(
    qtbot: QtBot, ready_studio: Studio, other_pcs: OtherPcs
) -> None:
    assert (other_pcs.asked, other_pcs.engines.made, other_pcs.sources) == ([], [], [])
    assert ready_studio.pcs.all == (ready_studio.pcs.here,)
    assert addresses(ready_studio) == ["cpu"]


def test_the_devices_of_another_pc_are_rows_with_its_name(
    qtbot: QtBot, ready_studio: Studio, attic: RemotePc
) -> None:
    rows = ready_studio.board.rows
    assert [row.label for row in rows] == ["CPU", "CPU · attic", "GT 1030 · attic"]
    assert addresses(ready_studio) == ["cpu", "attic/cpu", "attic/cuda:0"]
    assert ready_studio.board.cpu.pc == ""
    assert ready_studio.board.current is ready_studio.board.cpu
    colors = ready_studio.board.colors
    assert colors["attic/cpu"] != colors["attic/cuda:0"]
    assert ready_studio.pcs.session_of("attic/cuda:0") is attic.session
    assert ready_studio.pcs.session_of("cpu") is ready_studio.session
    assert not any("192.0.2.7" in repr(row) for row in rows)


def test_it_is_kept_and_connected_at_the_next_start(
    qtbot: QtBot, tmp_path: Path, engines: Engines, other_pcs: OtherPcs
) -> None:
    def opened() -> Studio:
        settings = Settings(tmp_path / "settings.json")
        return Studio(engines, SteadySensors(cpu_only()), settings, pc_port=other_pcs)

    first = opened()
    first.start()
    add_attic(first)
    first.close()
    second = opened()
    assert other_pcs.asked.count("attic") <= 1, "not before the start"
    second.start()
    (pc,) = second.pcs.others
    qtbot.waitUntil(lambda: not pc.why_not)
    second.pcs.shut(pc)
    second.close()
    third = opened()
    third.start()
    assert third.pcs.others[0].is_shut, "the user disconnected it"
    third.pcs.remove(third.pcs.others[0])
    third.close()
    assert opened().pcs.others == ()


def test_a_pc_that_refuses_says_why_and_can_be_tried_again(
    qtbot: QtBot, ready_studio: Studio, other_pcs: OtherPcs
) -> None:
    other_pcs.refusal = LineProblem.KEY_REFUSED
    pc = add_attic(ready_studio)
    qtbot.waitUntil(lambda: pc.notice.action is Action.CONNECT_AGAIN)
    assert pc.notice.sentence.startswith("attic accepts no key of yours")
    assert "ssh-copy-id lea@192.0.2.7" in pc.notice.next_step
    assert (other_pcs.engines.made, addresses(ready_studio)) == ([], ["cpu"])
    other_pcs.refusal = None
    ready_studio.pcs.open(pc)
    qtbot.waitUntil(lambda: "attic/cuda:0" in addresses(ready_studio))


def test_without_an_engine_there_its_devices_and_sensors_are_still_shown(
    qtbot: QtBot, ready_studio: Studio, other_pcs: OtherPcs
) -> None:
    other_pcs.engine_there = "missing"
    pc = add_attic(ready_studio)
    qtbot.waitUntil(lambda: len(ready_studio.board.rows) == 3)
    assert addresses(ready_studio) == ["cpu", None, None]
    assert "has no PyTorch yet" in ready_studio.board.rows[2].reason
    assert other_pcs.engines.made == []
    other_pcs.sources[0].close()  # its line was cut
    qtbot.waitUntil(lambda: pc.notice.action is Action.CONNECT_AGAIN)


def test_a_lost_line_keeps_the_devices_and_connects_again(
    qtbot: QtBot, ready_studio: Studio, attic: RemotePc, other_pcs: OtherPcs
) -> None:
    other_pcs.engines.scripts[RunWorkload] = [line_lost()]
    request = Plan(
        workload="matmul",
        sizes=(64,),
        dtypes=("float32",),
        devices=("attic/cpu",),
        settings={"budget_s": 1},
    ).requests()[0]
    attic.session.submit(request)
    qtbot.waitUntil(lambda: attic.notice.action is Action.CONNECT_AGAIN)
    assert (attic.session.state, attic.is_shut) == (EngineState.ABSENT, False)
    assert len(other_pcs.engines.made) == 1, "no second engine is tried on a line that is lost"
    assert other_pcs.sources[0].is_closed
    assert [row.label for row in ready_studio.board.rows][1:] == ["CPU · attic", "GT 1030 · attic"]
    assert addresses(ready_studio) == ["cpu", None, None]
    assert ready_studio.board.rows[2].reason == "The connection to attic was lost."
    ready_studio.pcs.open(attic)
    qtbot.waitUntil(lambda: "attic/cuda:0" in addresses(ready_studio))


# ── plans over several PCs ───────────────────────────────────────────────────────────────────────


def plan(*devices: str, sizes: tuple[int, ...] = (64, 128)) -> Plan:
    return Plan(
        workload="matmul",
        sizes=sizes,
        dtypes=("float32",),
        devices=devices,
        settings={"budget_s": 1.0},
    )


def run(qtbot: QtBot, studio: Studio, *devices: str) -> Benchmark:
    benchmark = Benchmark(studio, studio)
    benchmark.start(plan(*devices))
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)
    return benchmark


def test_each_pc_makes_its_own_runs_one_pc_after_the_other(
    qtbot: QtBot, ready_studio: Studio, attic: RemotePc, other_pcs: OtherPcs, engines: Engines
) -> None:
    benchmark = run(qtbot, ready_studio, "cpu", "attic/cpu", "attic/cuda:0")
    assert [one.device for one in engines.requests if isinstance(one, RunWorkload)] == ["cpu"] * 2
    assert [one.device for one in other_pcs.engines.requests if isinstance(one, RunWorkload)] == [
        "attic/cpu",
        "attic/cuda:0",
    ] * 2
    turns = [one for one in other_pcs.engines.latest.requests if isinstance(one, RunInTurns)]
    assert len(turns) == 2, "those of one PC take turns"
    assert {one.state for one in benchmark.runs} == {RunState.FINISHED}
    assert benchmark.notice.sentence == "Done: 6 of 6 runs finished."


@pytest.mark.parametrize("later", ["cpu", "attic/cpu"])
def test_a_plan_goes_on_without_the_pc_whose_line_was_lost(
    qtbot: QtBot,
    ready_studio: Studio,
    attic: RemotePc,
    other_pcs: OtherPcs,
    engines: Engines,
    later: str,
) -> None:
    def cut(_engine: object, request: RunWorkload) -> Iterator[Any]:
        if request.size == 64:
            yield from run_events(request)
            return
        yield started(request)
        yield line_lost()

    other_pcs.engines.scripts[RunWorkload] = cut
    benchmark = Benchmark(ready_studio, ready_studio)
    benchmark.start(plan("attic/cuda:0", later, sizes=(64, 128, 256)))
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)
    kept = [one for one in benchmark.runs if one.state is RunState.FINISHED]
    here = [one for one in kept if one.request.device == "cpu"]
    assert len(kept) - len(here) == (1 if later == "cpu" else 2)
    assert len(here) == (3 if later == "cpu" else 0), "this PC goes on"
    assert "The connection to attic was lost." in benchmark.notice.sentence
    assert f"{len(kept)} of 6 runs finished" in benchmark.notice.sentence or later != "cpu"
