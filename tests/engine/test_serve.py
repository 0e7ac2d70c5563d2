"""The engine's real child process, spoken to over its pipes."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    RequestFailed,
    Stop,
)
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunStopped,
    SamplesMeasured,
)
from gpu_studio.core.protocol import encode
from gpu_studio.engine.serve import EXIT_FATAL
from tests.engine.answers import only, run_request
from tests.engine.engine_child import EngineChild


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineChild]:
    """One child for all tests that leave it alive."""
    child = EngineChild(tmp_path_factory.mktemp("engine") / "log")
    yield child
    assert child.end() == 0
    assert "Traceback" not in child.log.read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., EngineChild]]:
    """Start children of a test's own; none outlives it."""
    children: list[EngineChild] = []

    def start_child(prelude: str = "") -> EngineChild:
        children.append(EngineChild(tmp_path / f"log{len(children)}", prelude))
        return children[-1]

    yield start_child
    for child in children:
        child.kill()


def test_it_describes_itself(child: EngineChild):
    (described,) = child.ask(DescribeEngine())
    assert isinstance(described, EngineDescribed)
    # On Windows an environment's python.exe starts the real one and waits for it.
    assert child.process.pid in (described.pid, psutil.Process(described.pid).ppid())
    assert described.pid != os.getpid()


def test_it_runs_a_workload(child: EngineChild):
    events = child.ask(run_request())
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True
    assert result.device_name not in ("", "CPU")
    assert sum(len(event.samples_s) for event in only(SamplesMeasured, events)) == result.samples


def test_a_stop_ends_a_run_and_the_samples_so_far_are_there(child: EngineChild):
    stopped = threading.Event()

    def stop_at_first_samples(event: Event) -> None:
        if isinstance(event, SamplesMeasured) and not stopped.is_set():
            stopped.set()
            child.send(encode(Stop()))

    events = child.ask(run_request(budget_s=3600.0), stop_at_first_samples)
    samples = sum(len(event.samples_s) for event in only(SamplesMeasured, events))
    assert events[-1] == RunStopped(run_id="r1", samples=samples)


def test_a_stop_right_after_its_request_is_never_lost(child: EngineChild):
    for _ in range(20):
        child.send(encode(run_request(budget_s=3600.0)) + encode(Stop()))
        event = child.receive()
        while not event.ends(run_request()):
            event = child.receive()
        assert isinstance(event, RunStopped)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n",
        b"{}\n",
        b"null\n",
        b'{"type": "run_workload"}\n',
        b'{"type": "format_disk"}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_an_unreadable_line_is_answered_and_survived(child: EngineChild, line: bytes):
    child.send(line)
    failed = child.receive()
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is FailureKind.BAD_REQUEST
    assert isinstance(child.ask(ReadMemory(device="cpu"))[-1], MemoryRead)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signal to one process")
def test_an_interrupt_in_the_terminal_is_the_parents_business(child: EngineChild):
    child.ask(ReadMemory(device="cpu"))
    child.process.send_signal(signal.SIGINT)
    assert isinstance(child.ask(run_request())[-1], RunFinished)


def test_the_end_of_its_input_ends_it_in_the_middle_of_a_call(start: Callable[..., EngineChild]):
    child = start(
        "import time\n"
        "from gpu_studio.engine.workloads.elementwise import Elementwise\n"
        "from gpu_studio.engine.workloads.call import FunctionCall\n"
        "Elementwise.prepare = lambda *arguments: FunctionCall(lambda: time.sleep(3600))\n"
    )
    child.send(encode(run_request()))
    while getattr(child.receive(), "phase", "") != "warm-up":
        pass
    assert child.end() == 0


def test_what_libraries_print_does_not_reach_the_pipe(start: Callable[..., EngineChild]):
    child = start(
        "import os\n"
        "from gpu_studio.engine.workloads.elementwise import Elementwise\n"
        "prepare = Elementwise.prepare\n"
        "def noisy(*arguments):\n"
        "    os.write(1, b'native noise')\n"
        "    print('more noise')\n"
        "    os.system('echo noise of a child')\n"
        "    return prepare(*arguments)\n"
        "Elementwise.prepare = noisy\n"
    )
    assert isinstance(child.ask(run_request())[-1], RunFinished)
    assert child.end() == 0
    log = child.log.read_text()
    assert "native noise" in log
    assert "more noise" in log
    assert "noise of a child" in log


def test_it_ends_after_an_error_that_no_process_survives(start: Callable[..., EngineChild]):
    child = start(
        "from gpu_studio.engine.workloads.elementwise import Elementwise\n"
        "def sticky(*arguments):\n"
        "    raise RuntimeError('CUDA error: an illegal memory access was encountered')\n"
        "Elementwise.prepare = sticky\n"
    )
    failed = child.ask(run_request())[-1]
    assert isinstance(failed, RunFailed)
    assert failed.failure.kind is FailureKind.CUDA_ERROR
    assert failed.failure.fatal
    assert child.wait() == EXIT_FATAL
    assert "in sticky" in child.log.read_text()  # the trace is in the log


# Windows' loader says it with an OSError where a library of PyTorch's is missing.
WINDOWS_LOADER = """
import sys
class Loader:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            text = '[WinError 126] The module was not found. Error loading "c10.dll"'
            raise OSError(text)
sys.meta_path.insert(0, Loader())
"""


def test_a_pytorch_whose_libraries_are_missing_is_reported_with_what_to_install(
    start: Callable[..., EngineChild],
):
    child = start(WINDOWS_LOADER)
    (failed,) = child.ask(DescribeEngine())
    assert isinstance(failed, RequestFailed)
    assert failed.failure.message.startswith("PyTorch cannot be loaded: ")
    assert "Visual C++ Redistributable" in failed.failure.message
    assert child.wait() == EXIT_FATAL
