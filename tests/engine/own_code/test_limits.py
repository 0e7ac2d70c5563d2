"""What ends a user's code, and what becomes of what it prints."""

import os

import pytest

from gpu_studio.core.benchmark.own_code import own_code, read_own_code
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.run_messages import OpenOwnCode, OwnCodeOpened, RunFinished
from gpu_studio.engine.own_code.errors import explained
from gpu_studio.engine.serve import EXIT_FATAL
from tests.engine.own_code.codes import engine, opened, printed, run_of

IMPATIENT = "from gpu_studio.engine.own_code.limits import WATCH; WATCH.longest_s = 2.0"
SMALL = "from gpu_studio.engine.own_code import limits; limits._MEMORY_SHARE = 0.0"


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    with engine(tmp_path_factory.mktemp("log") / "log") as started:
        yield started


@pytest.fixture
def impatient(tmp_path):
    with engine(tmp_path / "log", IMPATIENT) as started:
        yield started


def test_what_never_ends_and_catches_everything_is_ended_with_its_line(impatient):
    code = own_code(
        "import time, torch\nwhile True:\n    try:\n        time.sleep(9)\n"
        "    except BaseException: pass"
    )
    event = opened(impatient, code)
    assert isinstance(event, RequestFailed)
    assert "or never ends" in event.failure.message
    assert event.failure.message.startswith("Line ")
    assert impatient.wait() == EXIT_FATAL


def test_a_later_call_that_never_ends_is_noticed_as_well(impatient):
    code = own_code(
        "import torch\ncount = 0\n"
        "def work(device):\n    global count\n    count += 1\n"
        "    while count > 20: pass\n    return torch.ones(3).sum()"
    )
    assert isinstance(opened(impatient, code), OwnCodeOpened)
    events = impatient.ask(run_of(code))
    assert "Line 6" in events[-1].failure.message


def test_a_pc_is_not_filled(tmp_path):
    code = own_code(
        "import torch, time\nkept = []\nfor _ in range(200):\n"
        "    kept.append(torch.ones(1 << 20))\n    time.sleep(0.1)"
    )
    with engine(tmp_path / "log", SMALL) as child:
        event = opened(child, code)
        assert "more memory than this PC has free" in event.failure.message


def test_prints_are_shown_once_and_up_to_a_limit(child):
    code = own_code(
        "import os, sys, torch\nprint('one'); print('two', file=sys.stderr)\n"
        "sys.stdout.buffer.write(b'three\\n')\nos.system('echo four')\n"
        "print('long ' * 100_000)\nx = torch.ones(9).exp()"
    )
    events = child.ask(OpenOwnCode(code=code))
    text = printed(events)
    assert all(word in text for word in ("one", "two", "three"))
    assert "the rest is left out" in text
    assert len(text) < 20_000
    finished = child.ask(run_of(code))
    assert "long long" not in printed(finished)
    assert any("500," in finding for finding in finished[-1].details.findings)


def test_a_package_beside_the_script_is_found(tmp_path):
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("")
    (tmp_path / "matplotlib" / "pyplot.py").write_text("def show(): print('shown')")
    path = tmp_path / "mine.py"
    path.write_text(
        "import matplotlib.pyplot as plt\nimport torch\nx = torch.ones(9).exp()\nplt.show()"
    )
    with engine(tmp_path / "log") as child:  # it looks beside the first script alone
        assert "shown" in printed(child.ask(OpenOwnCode(code=read_own_code(path))))


def test_a_child_that_the_code_forks_is_no_second_engine(child):
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    code = own_code(
        "import os, torch\nx = torch.ones(9).exp()\nif not os.fork():\n    os._exit(3)\n"
        "print('status', os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    assert "status 3" in printed(child.ask(OpenOwnCode(code=code)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("InvalidCxxCompiler: No working C++ compiler found", "needs a C++ compiler"),
        ("DataLoader worker (pid 7) exited unexpectedly", "num_workers=0"),
    ],
)
def test_what_a_library_lacks_is_said_in_plain_words(text, words):
    assert words in str(explained(RuntimeError(text)))


def test_a_program_that_is_started_prints_as_well(child):
    code = own_code("import os, torch\nos.system('echo four')\nx = torch.ones(9).exp()")
    events = child.ask(OpenOwnCode(code=code))
    assert "four" in printed(events + child.ask(run_of(code)))


def test_threads_that_go_on_are_a_doubt(child):
    code = own_code(
        "import threading, time, torch\ndef on():\n    while True: time.sleep(0.01)\n"
        "threading.Thread(target=on, daemon=True).start()\nx = torch.ones(9).exp()"
    )
    assert isinstance(opened(child, code), OwnCodeOpened)
    finished = child.ask(run_of(code))[-1]
    assert "threads" in finished.doubts


def test_a_result_that_is_random_or_missing_is_not_called_checked(child):
    for lines, reason in (
        (
            "import torch, time\ndef work(device):\n"
            "    return torch.ones(2) * (time.time_ns() % 997)",
            "run to",
        ),
        (
            "import torch\ndef work(device):\n    torch.ones(4, dtype=torch.int64)",
            "nothing",
        ),
    ):
        code = own_code(lines)
        assert isinstance(opened(child, code), OwnCodeOpened)
        finished = child.ask(run_of(code))[-1]
        assert isinstance(finished, RunFinished)
        assert finished.verified is None
        assert reason in finished.verification
