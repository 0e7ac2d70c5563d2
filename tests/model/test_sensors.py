import msgspec
import pytest

from gpu_studio.core.devices.devices import ASLEEP
from gpu_studio.model.sensors import LOG, Sensors
from tests.fakes.pc import SteadySensors, cpu_only, gt_1030, reading, two_cards
from tests.patience import limit


@pytest.fixture
def make(qtbot):
    collected = []

    def make(source):
        sensors = Sensors(source)
        collected.append(sensors)
        return sensors

    yield make
    for sensors in collected:
        sensors.close()


class DyingSource(SteadySensors):
    """Ends, or raises, after each of its lists of events."""

    def __init__(self, *lives):
        super().__init__(cpu_only())
        self.lives = list(lives)
        self.begun = 0

    def readings(self):
        life = self.lives[min(self.begun, len(self.lives) - 1)]
        self.begun += 1
        for event in life:
            if isinstance(event, Exception):
                raise event
            yield event


def test_devices_and_readings_arrive_and_are_kept(qtbot, make):
    source = SteadySensors(two_cards(), [reading(two_cards(), 1.0)])
    sensors = make(source)
    with qtbot.waitSignal(sensors.reading_taken) as taken:
        sensors.start()
    assert [device.address for device in sensors.inventory.devices] == ["cpu", "cuda:0", "cuda:1"]
    assert [sensors.newest] == taken.args
    card = sensors.inventory.cards[1]
    assert sensors.latest(card).temperature_c == 41.0
    assert sensors.latest(sensors.inventory.cpu).utilization_percent == 12.0
    assert [process.pid for process in sensors.processes(card)] == [1234]


def test_cards_are_numbered_as_the_engine_counts_them(qtbot, make):
    sensors = make(SteadySensors(two_cards()))
    with qtbot.waitSignal(sensors.inventory_changed):
        sensors.start()
    second = sensors.inventory.cards[1]
    with qtbot.waitSignal(sensors.inventory_changed):
        sensors.number_for(second.uuid)
    assert [card.address for card in sensors.inventory.cards] == [None, "cuda:0"]


def test_a_sleeping_card_keeps_the_number_that_cuda_will_give_it(qtbot, make):
    found = two_cards()
    asleep = msgspec.structs.replace(found.cards[0], unreadable=ASLEEP, unreadable_code="asleep")
    inventory = msgspec.structs.replace(found, devices=(found.cpu, asleep, found.cards[1]))
    sensors = make(SteadySensors(inventory))
    with qtbot.waitSignal(sensors.inventory_changed):
        sensors.start()
    assert [card.address for card in sensors.inventory.cards] == ["cuda:0", "cuda:1"]


def test_a_reader_that_stops_answering_is_noticed_and_its_return_too(qtbot, make, monkeypatch):
    limit(monkeypatch, sensors_silence_ms=20)
    source = SteadySensors(cpu_only())
    sensors = make(source)
    with qtbot.waitSignal(sensors.silence_changed, check_params_cb=bool):
        sensors.start()
    assert sensors.is_silent
    with qtbot.waitSignal(sensors.silence_changed, check_params_cb=lambda silent: not silent):
        source.send(reading(cpu_only()))


def test_sensors_that_are_not_read_are_not_silent(qtbot, make, monkeypatch):
    limit(monkeypatch, sensors_silence_ms=20)
    source = SteadySensors(cpu_only())
    sensors = make(source)
    with qtbot.waitSignal(sensors.inventory_changed):
        sensors.start()
        sensors.set_watched(False)
    with qtbot.assertNotEmitted(sensors.silence_changed, wait=80):
        source.send(reading(cpu_only()))
    sensors.set_watched(True)
    assert source.is_paused is False
    with qtbot.waitSignal(sensors.silence_changed):
        source.send(reading(cpu_only()))


def test_only_needed_sensors_are_polled(make):
    source = SteadySensors(cpu_only())
    sensors = make(source)
    sensors.want("window", False)
    assert (source.is_paused, sensors.is_polled) == (True, False)
    sensors.want("run", True)
    sensors.want("window", True)
    sensors.want("run", False)
    assert sensors.is_polled
    sensors.set_watched(False)
    assert (source.is_paused, sensors.is_polled) == (True, False)
    sensors.want("run", True)
    assert not sensors.is_polled
    sensors.want(LOG, True)
    assert (source.is_paused, sensors.is_polled) == (False, True)


def test_a_reader_that_dies_is_started_again(qtbot, make, monkeypatch):
    limit(monkeypatch, sensors_restart_ms=1)
    source = DyingSource([cpu_only(), reading(cpu_only(), 1.0)], [OSError("gone")], [gt_1030()])
    sensors = make(source)
    sensors.start()
    qtbot.waitUntil(lambda: sensors.inventory is not None and len(sensors.inventory.cards) == 1)
    assert source.begun >= 3


def test_a_reader_that_dies_again_and_again_is_left_alone(qtbot, make, monkeypatch):
    limit(monkeypatch, sensors_restart_ms=1)
    source = DyingSource([cpu_only()])
    sensors = make(source)
    with qtbot.waitSignal(sensors.silence_changed, check_params_cb=bool):
        sensors.start()
    with qtbot.assertNotEmitted(sensors.inventory_changed, wait=60):
        pass
    assert source.begun == 3


def test_programs_are_read_while_a_part_of_the_window_shows_them(make):
    source = SteadySensors(gt_1030())
    sensors = make(source)
    sensors.want_programs("devices", True)
    assert source.reads_programs
    sensors.want_programs("memory", True)
    sensors.want_programs("devices", False)
    assert source.reads_programs, "the other part still shows them"
    sensors.want_programs("memory", False)
    assert not source.reads_programs
