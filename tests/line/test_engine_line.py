"""Another PC over a stand-in for ssh: its names, its troubles, and whatever else may come."""

import contextlib
import itertools
import sys
from types import SimpleNamespace

import psutil
import pytest

from gpu_studio.core.devices.devices import Reading
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunFinished, RunStarted, RunWorkload
from gpu_studio.core.other_pc import PLACES, LineProblem
from gpu_studio.line import clients
from gpu_studio.line.clients import LineEngine, LineHello, LineSensors
from gpu_studio.line.ssh import LineGreeting
from tests.fakes.other_pcs import ATTIC
from tests.family import family_running
from tests.patience import outliving

_READ = ReadMemory(device="attic/cpu")


@pytest.fixture
def engine(there):
    engine = LineEngine(there, EngineEnvironment(visible_devices=""))
    yield engine
    engine.close()


def problem_of(events) -> LineProblem:
    last = list(events)[-1]
    assert isinstance(last, RequestFailed)
    assert last.ends_engine
    assert last.failure.kind is FailureKind.LINE_LOST
    sentences = {one.notice(ATTIC).sentence: one for one in LineProblem}
    return sentences[last.failure.message]


def test_an_engine_there_has_that_pcs_devices_and_names_and_leaves_nothing_when_it_ends(engine):
    (described,) = engine.run(DescribeEngine())
    assert isinstance(described, EngineDescribed)
    assert described.pc == "attic"
    assert described.first_address == "attic/cuda:0"
    assert described.visible_devices == ""
    run = RunWorkload(
        run_id="1", workload="matmul", device="attic/cpu", size=16, dtype="float32", budget_s=0.1
    )
    events = list(engine.run(run))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].device == "attic/cpu"
    assert events[-1].recording is None
    (started,) = (one for one in events if isinstance(one, RunStarted))
    assert started.device == "attic/cpu"
    (refused,) = engine.run(ReadMemory(device="cellar/cpu"))
    assert isinstance(refused, RequestFailed)
    family = psutil.Process(engine.pid).children(recursive=True)
    assert family
    engine.close()
    assert outliving(family) == []


def test_what_a_login_prints_is_skipped_and_what_comes_from_there_names_nothing_here(engine, play):
    play(
        """
say(b"Welcome to attic!\\nLast login: today\\n")
greet()
hear(), hear()
say(encode(MemoryRead(device="cpu", taken_at_s=1.0, mark="a\\u202eb")))
hear()
message, text = "<b>no</b>\\x1b[2J\\nx", "line 1\\nline\\x07 2"
say(encode(RequestFailed(failure=Failure(FailureKind.INTERNAL, message, text))))
sys.stdin.read()
"""
    )
    (read,) = engine.run(_READ)
    assert isinstance(read, MemoryRead)
    assert (read.device, read.mark) == ("attic/cpu", "a b")
    (failed,) = engine.run(_READ)
    assert isinstance(failed, RequestFailed)
    assert failed.failure.message == "<b>no</b> [2J x"
    assert failed.failure.traceback_text == "line 1\nline  2"


_SAMPLES = "SamplesMeasured(run_id='1', samples_s=(1e300,), calls_per_sample=1, spent_s=1.0)"
HOSTILE = {
    "no greeting": 'say(b"hello\\n" * 20_000)\nsys.stdin.read()',
    "gigabytes in a line": 'greet()\nwhile True: say(b"x" * 65536)',
    "gigabytes of signs of life": 'greet()\nwhile True: say(b"\\n" * 65536)',
    "deep": 'greet()\nhear()\nsay(b"[" * 100_000 + b"\\n")\nsys.stdin.read()',
    "wrong types": (
        "greet()\nhear()\n"
        """say(b'{"type":"memory_read","device":7}\\n')\nsys.stdin.read()"""
    ),
    "a time of 10^300 s": (f"greet()\nhear(), hear()\nsay(encode({_SAMPLES}))\nsys.stdin.read()"),
    "a text without end": (
        "greet()\nhear(), hear()\n"
        "say(encode(MemoryRead(device='cpu', taken_at_s=1.0, mark='x' * 200_000)))\n"
        "sys.stdin.read()"
    ),
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_pc_gets_a_sentence_and_no_more(engine, play, code):
    play(code)
    events = []
    with contextlib.closing(engine):
        engine.send(_READ)
        events = list(engine.events())
    assert problem_of(events) is LineProblem.NOT_OURS
    assert len(events) <= 2


def test_an_answer_that_does_not_end_is_cut_off(engine, play, monkeypatch):
    monkeypatch.setattr(clients, "_MOST_ANSWER_BYTES", 10_000)
    play("greet()\nhear(), hear()\nwhile True: say(encode(Heartbeat())), time.sleep(0.001)")
    engine.send(_READ)
    assert problem_of(itertools.islice(engine.events(), 1000)) is LineProblem.NOT_OURS


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("greet()\nhear(), hear()", LineProblem.NO_ANSWER),
        ("greet()\nhear(), hear(), sys.exit(255)", LineProblem.LOST),
        ("", LineProblem.NOT_OURS),
        ("sys.exit(127)", LineProblem.NO_PROGRAM),
        ("say(encode(msgspec.structs.replace(greeting(), protocol='0-x')))\nhear()",
         LineProblem.OTHER_VERSION),
        ("say(encode(msgspec.structs.replace(greeting(), engine='missing')))\nhear()",
         LineProblem.NO_ENGINE),
    ],
)  # fmt: skip
def test_a_line_that_ends_says_why(engine, play, code, problem):
    play(code)
    assert problem_of(engine.run(_READ)) is problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ssh: Could not resolve hostname attic: Name or service not known",
         LineProblem.NAME_NOT_FOUND),
        ("ssh: connect to host attic port 22: Connection refused", LineProblem.NO_SERVER),
        ("ssh: connect to host attic port 22: Connection timed out", LineProblem.NO_ROUTE),
        ("ssh: connect to host attic port 22: No route to host", LineProblem.NO_ROUTE),
        ("Host key verification failed.", LineProblem.HOST_KEY_UNKNOWN),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
         LineProblem.HOST_KEY_CHANGED),
        ("me@attic: Permission denied (publickey).", LineProblem.KEY_REFUSED),
        ("me@attic: Permission denied (publickey,password).", LineProblem.KEY_REFUSED),
        ("Timeout, server attic not responding.", LineProblem.LOST),
        ("something new", LineProblem.UNKNOWN),
    ],
)  # fmt: skip
def test_ssh_s_own_words_become_a_problem(text, problem):
    line = SimpleNamespace(error_text=text, is_greeted=False, has_flooded=False, was_silent=False)
    assert LineGreeting("hello").why_ended(line, exit_code=255) is problem
    assert problem.notice(ATTIC).next_step.endswith(".")


def test_a_program_that_is_not_in_the_path_is_found_in_its_usual_place(
    there, tmp_path, monkeypatch
):
    program, place, usual = tmp_path / "bin" / "gpu-studio", tmp_path / ".local" / "bin", PLACES[2]
    if sys.platform == "win32":
        program, usual = program.with_suffix(".exe"), PLACES[-1]
        place = tmp_path / "Programs" / "GPU Studio"
    place.mkdir(parents=True)
    program.rename(place / program.name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    found = LineHello(there).answer()
    assert found.problem is None
    assert found.pc.program == usual
    assert found.greeting is not None


def test_no_ssh_is_said(there, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = LineHello(there).answer()
    assert found.problem is LineProblem.NO_SSH
    engine = LineEngine(there)
    assert problem_of(engine.run(_READ)) is LineProblem.NO_SSH


def test_a_sensor_reader_that_is_killed_there_ends_the_line(there):
    reader = LineSensors(there, 0.1)
    with contextlib.closing(reader):
        for event in reader.readings():
            if isinstance(event, Reading):
                for one in family_running(psutil.Process(), "gpu_studio.hardware.reader"):
                    one.kill()
