"""A line through a real sshd, cut in each way during a run: it leaves nothing there and says so."""

import contextlib
import signal
import sys

import psutil
import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.check_messages import CheckProgressed, RunCheck
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunWorkload, SamplesMeasured
from gpu_studio.line.clients import LineEngine, LineHello, LineSensors
from tests.family import family_running
from tests.line.real_sshd import running_sshd, why_not
from tests.patience import until

if sys.platform == "win32":
    pytest.skip("the sshd of the tests is Debian's", allow_module_level=True)
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is an sshd")
_RUN = RunWorkload(
    run_id="1", workload="matmul", device="attic/cpu", size=32, dtype="float32", budget_s=600.0
)
# It rests for longer than a silence lasts: a run would keep two cores busy all that time.
_REST = RunCheck(device="attic/cpu", stages=("compute",), round_s=600.0)


@pytest.fixture
def line(tmp_path, monkeypatch):
    with running_sshd(tmp_path) as (pc, server, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield pc, server


def test_a_pc_greets_and_its_sensors_are_read(line):
    pc, _ = line
    found = LineHello(pc).answer()
    assert found.problem is None, found.detail
    reader = LineSensors(pc, 0.2)
    events = reader.readings()
    inventory = next(events)
    assert inventory.cpu.address == "attic/cpu"
    assert next(events).cpu is not None
    reader.close()


def _ssh_here(engine, _server):
    return [psutil.Process(engine.pid)]


def _sshd_there(_engine, server):
    return [one for one in server.children(recursive=True) if "sshd" in one.name()]


def _engine_there(_engine, server):
    return family_running(server, "gpu_studio.engine.serve")


@pytest.mark.parametrize(
    ("who", "how", "asked", "kind"),
    [
        (_ssh_here, signal.SIGKILL, _RUN, FailureKind.LINE_LOST),
        (_sshd_there, signal.SIGKILL, _RUN, FailureKind.LINE_LOST),
        (_sshd_there, signal.SIGSTOP, _REST, FailureKind.LINE_LOST),
        (_engine_there, signal.SIGKILL, _RUN, None),
    ],
    ids=["ssh killed", "sshd killed", "network silent", "engine killed"],
)
def test_a_cut_line_is_noticed_keeps_what_arrived_and_leaves_nothing_there(
    line, who, how, asked, kind
):
    pc, server = line
    with contextlib.closing(LineEngine(pc, EngineEnvironment(visible_devices=""))) as engine:
        arrived, is_cut, family = 0, False, []
        for event in engine.run(asked):
            if isinstance(event, SamplesMeasured | CheckProgressed):
                arrived += 1
            if arrived == 2 and not is_cut:
                family = family_running(server, "gpu_studio")
                assert len(family) >= 2
                is_cut = True
                for process in who(engine, server):
                    process.send_signal(how)
        assert arrived >= 2
        if kind is None:
            assert isinstance(event, EngineEnded)
        else:
            assert isinstance(event, RequestFailed)
            assert event.failure.kind is kind
        until(lambda: not any(one.is_running() and one.status() != "zombie" for one in family))
