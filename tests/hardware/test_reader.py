import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from gpu_studio.core import limits
from gpu_studio.core.devices.devices import (
    Device,
    GpuProcess,
    Inventory,
    Reading,
    decode_sensor_event,
)
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware import reader
from gpu_studio.hardware.client import SensorReader
from gpu_studio.hardware.processes import ProcessBook
from gpu_studio.hardware.reader import Commands, events
from gpu_studio.hardware.watchdog import SilentError, Watchdog
from tests.patience import PATIENCE_S, until


@pytest.fixture
def child():
    with subprocess.Popen(
        [sys.executable, "-m", "gpu_studio.hardware.reader", "--period-s", "0.05"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield process
        process.kill()


def test_the_child_writes_an_inventory_then_readings_and_ends_with_its_input(child):
    first, second, third = (decode_sensor_event(child.stdout.readline()) for _ in range(3))
    assert isinstance(first, Inventory)
    assert isinstance(second, Reading)
    assert third.taken_at_s > second.taken_at_s
    _, errors = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    assert errors == b""


@pytest.mark.parametrize("word", [b"quit\n", b"nonsense\nquit\n"])
def test_the_child_ends_when_told_to(child, word):
    child.stdout.readline()
    child.stdin.write(word)
    child.stdin.flush()
    assert child.wait(PATIENCE_S) == 0


class ScriptedSensors:
    """Sensors that count: every reading's time is its number."""

    def __init__(self, outdated=()):
        self.readings = 0
        self.rests = 0
        self.cards = 1
        self.outdated = list(outdated)

    @property
    def is_outdated(self):
        return bool(self.outdated) and self.outdated.pop(0)

    def inventory(self):
        cards = [Device(kind="cuda", name=f"card {n}") for n in range(self.cards)]
        telemetry = Telemetry(memory_used_bytes=self.readings)
        return Inventory(devices=(Device(kind="cpu", name="CPU", telemetry=telemetry), *cards))

    def reading(self):
        self.readings += 1
        return Reading(taken_at_s=float(self.readings), cpu=Telemetry())

    def read_programs(self, *, wanted):
        self.wants_programs = wanted

    def rest(self):
        self.rests += 1


def listen(commands, *lines):
    class Lines:
        def __init__(self):
            self.left = [*lines]

        def readline(self):
            return self.left.pop(0) if self.left else b""

    thread = threading.Thread(target=commands.listen, args=(Lines(),))
    thread.start()
    return thread


def test_a_pause_rests_the_sensors_until_the_resume():
    commands, sensors = Commands(), ScriptedSensors()
    stream = events(sensors, commands, 0.001)
    assert isinstance(next(stream), Inventory)
    assert next(stream).taken_at_s == 1
    commands.pause()
    waiting = threading.Thread(target=next, args=(stream,))
    waiting.start()
    until(lambda: sensors.rests)
    waiting.join(0.2)
    assert waiting.is_alive()
    assert (sensors.readings, sensors.rests) == (1, 1)
    commands.pause(is_paused=False)
    waiting.join(PATIENCE_S)
    assert sensors.readings == 2


def test_programs_are_read_only_as_long_as_they_are_wanted_and_then_at_once():
    commands, sensors = Commands(), ScriptedSensors()
    stream = events(sensors, commands, 0.001)
    next(stream)
    commands.want_programs(wanted=False)
    next(stream)
    assert not sensors.wants_programs
    stream = events(sensors, commands, PATIENCE_S)
    next(stream)
    commands.want_programs(wanted=True)  # nobody waits for the next second
    next(stream)
    assert sensors.wants_programs


def test_a_new_inventory_comes_only_with_new_facts():
    commands, sensors = Commands(), ScriptedSensors(outdated=[False, True, True])
    stream = events(sensors, commands, 0.001)
    first = [type(next(stream)) for _ in range(3)]
    sensors.cards = 2
    second = [type(next(stream)) for _ in range(2)]
    assert first == [Inventory, Reading, Reading]
    assert second == [Inventory, Reading]


def test_a_child_inside_a_call_that_never_returns_ends_with_its_input(monkeypatch):
    script = (
        "import threading\n"
        "from gpu_studio.hardware import reader\n"
        "reader.PcSensors.inventory = lambda self: threading.Event().wait()\n"
        "reader._GRACE_S = 0.05\n"
        "print('ready', flush=True)\n"
        "reader.main([])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline().strip() == b"ready"
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert limits.TimeLimits().sensors_end_s > reader._GRACE_S  # else the window kills it first


class TestSensorReader:
    @pytest.fixture
    def sensors(self):
        sensors = SensorReader(period_s=0.05)
        yield sensors
        sensors.close()

    def test_it_yields_an_inventory_and_readings_until_closed(self, sensors):
        assert sensors.pid is None, "no child before it is iterated"
        kinds = []
        for event in sensors.readings():
            kinds.append(type(event))
            if len(kinds) == 3:
                sensors.close()
        assert kinds[:3] == [Inventory, Reading, Reading]
        assert sensors.pid is None
        assert list(sensors.readings()) == []

    def test_close_from_another_thread_ends_a_waiting_iteration(self):
        sensors = SensorReader(period_s=600)
        stream = sensors.readings()
        next(stream)
        next(stream)
        closing = threading.Timer(0.1, sensors.close)
        closing.start()
        assert list(stream) == []
        closing.join()

    def test_a_child_that_died_ends_the_stream_and_can_be_replaced(self, sensors):
        stream = sensors.readings()
        next(stream)
        psutil.Process(sensors.pid).kill()
        list(stream)
        assert isinstance(next(sensors.readings()), Inventory)

    def test_nothing_is_read_while_paused(self, sensors):
        stream = sensors.readings()
        next(stream)
        sensors.pause()
        later = []
        reading = threading.Thread(target=lambda: later.extend(stream))
        reading.start()
        settled = -1
        while settled != len(later):  # readings that were under way when the pause began
            settled = len(later)
            reading.join(0.3)
        assert reading.is_alive()
        sensors.resume()
        while len(later) < settled + 3:
            reading.join(0.01)
        sensors.close()
        reading.join(PATIENCE_S)
        assert not reading.is_alive()

    def test_an_answer_that_is_not_understood_ends_the_stream(self, sensors, monkeypatch, caplog):
        monkeypatch.setattr(
            "gpu_studio.process.child_process.ChildProcess.lines", lambda self: iter([b"{}\n"])
        )
        assert list(sensors.readings()) == []
        assert "unreadable" in caplog.text


@pytest.fixture
def held():
    """A call that returns when the test lets it, at its end at the latest."""
    go = threading.Event()

    def wait():
        go.wait(2 * PATIENCE_S)
        return "late"

    wait.go = go
    yield wait
    go.set()


@pytest.fixture
def watchdog():
    return Watchdog()


def test_a_subject_that_hangs_is_not_asked_again_before_it_has_answered(watchdog, held):
    asked = []
    with pytest.raises(SilentError):
        watchdog.call("card", held, 0.05)
    with pytest.raises(SilentError):
        watchdog.call("card", lambda: asked.append(1), PATIENCE_S)
    assert asked == []
    held.go.set()
    until(lambda: not watchdog.is_stuck("card"))
    assert watchdog.call("card", lambda: "now", PATIENCE_S) == "now"
    assert not watchdog.has_left_behind


def named(book, pid):
    (one,) = book.of_card("card", [GpuProcess(pid=pid)])
    return one.name, one.user


def test_this_process_has_a_name_and_a_user():
    name, user = named(ProcessBook(), os.getpid())
    assert name == psutil.Process().name()
    assert user == psutil.Process().username().rpartition("\\")[2]  # Windows names the PC as well


def test_the_driver_names_what_the_system_hides(monkeypatch):
    def hide(pid):
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr("psutil.Process", hide)
    book = ProcessBook(lambda pid: "C:\\Games\\game.exe" if pid == 4 else None)
    assert named(book, 4) == ("game.exe", None)
    assert named(book, 5) == ("unknown", None)


CHECKOUT = Path(__file__).parents[2]
WITHOUT_TABLES = """
import sys
from pathlib import Path
from gpu_studio.core import resources

resources._PACKAGE_DIR = Path(sys.argv[1])  # before a table is read
from gpu_studio.builds.shelf import own_shelf
from gpu_studio.core.devices.facts import PcSnapshot
from gpu_studio.core.devices.report import report_text
from gpu_studio.engine.accelerators.cuda import start_code
from tests.core.devices.doctor_facts import CPU_ENGINE, GT_1030, RTX_3060, codes, examined, pc
from tests.hardware.test_linux_cards import TREES, described
from tests.hardware.test_nvml import device_of

amd, nvidia = described(TREES / "rx6600"), device_of()
print(amd.name, nvidia.name, sep="\\n")
print(report_text(PcSnapshot(inventory=pc(amd, nvidia))))
print(codes(examined(pc(RTX_3060))), start_code("Error 804: forward compatibility"))
(finding,) = examined(pc(RTX_3060), CPU_ENGINE)
print(finding.code, [finding.command])
own_shelf(lambda: Path(sys.argv[1])).used_folder()  # each command begins with it
"""


@pytest.mark.skipif(sys.platform == "win32", reason="reads a tree with links")
@pytest.mark.parametrize("text", [None, "{"])
def test_without_a_table_of_the_program_the_cards_are_read(tmp_path, text):
    """A virus scanner has taken them away, or a copy broke off."""
    (tmp_path / "resources").mkdir()
    if text is not None:
        for table in (CHECKOUT / "resources").glob("*.json"):
            (tmp_path / "resources" / table.name).write_text(text)
    asked = subprocess.run(
        [sys.executable, "-c", WITHOUT_TABLES, str(tmp_path / "gpu_studio")],
        capture_output=True, encoding="utf-8", check=False, timeout=PATIENCE_S,
        cwd=CHECKOUT,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    amd, nvidia, *lines = asked.stdout.splitlines()
    assert "AMD" in amd
    assert nvidia == "NVIDIA GeForce GT 1030"
    assert lines[-2:] == ["['ok'] None", "build_without_cuda ['']"]
