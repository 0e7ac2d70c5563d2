"""The window with another PC at the other end of a stand-in ssh: rows, runs, and a cut line."""

from pytestqt.qtbot import QtBot

from gpu_studio.app import SshPcs
from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.other_pc import OtherPc
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines
from tests.patience import PATIENCE_MS

_LOADS_TORCH_MS = 6 * PATIENCE_MS


def test_a_plan_over_this_pc_and_a_real_engine_behind_a_line(
    qtbot: QtBot, there: OtherPc, engines: Engines
) -> None:
    settings = Settings(None)
    settings.change(pcs=(there,))
    studio = Studio(engines, SteadySensors(cpu_only()), settings, pc_port=SshPcs())
    (attic,) = studio.pcs.others
    assert attic.is_shut, "nothing is asked before the start"
    try:
        studio.start()
        qtbot.waitUntil(
            lambda: any(row.address == "attic/cpu" for row in studio.board.rows),
            timeout=_LOADS_TORCH_MS,
        )
        assert [row.identity for row in studio.board.rows][:2] == ["cpu", "attic/cpu"]
        benchmark = Benchmark(studio, studio)
        benchmark.start(
            Plan(
                workload="matmul", sizes=(32,), dtypes=("float32",),
                devices=("cpu", "attic/cpu"), settings={"budget_s": 0.05},
            )
        )  # fmt: skip
        qtbot.waitUntil(lambda: not benchmark.state.is_busy, timeout=_LOADS_TORCH_MS)
        there_run = benchmark.runs[1]
        assert there_run.state is RunState.FINISHED
        assert there_run.result is not None
        assert there_run.result.device == "attic/cpu"
        assert "me@attic" not in repr(there_run.result)
        studio.pcs.shut(attic)
        assert studio.board.row("attic/cpu").address is None
        assert studio.board.cpu.address == "cpu"
    finally:
        studio.close()
        studio.deleteLater()
