from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices import CardReading, Telemetry
from gpu_studio.core.sensor_history import minutes_of
from tests.fakes import cpu_only, gt_1030, reading, rtx_3060_card, two_cards


def plain(text):
    return text.replace("\u202f", " ")


def card_minutes(steps, first_s=100.0, every_s=1.0):
    """The sensors of a GT 1030 over readings with these telemetry changes."""
    found = gt_1030()
    readings = [reading(found, first_s + i * every_s, **changes) for i, changes in enumerate(steps)]
    return {minute.kind.key: minute for minute in minutes_of(found.cards[0], readings)}


def test_a_run_warms_the_card_and_raises_its_clocks():
    cold = {"temperature_c": 26.0, "pstate": 8, "sm_clock_mhz": 139.0, "memory_used_bytes": 4 << 20}
    hot = {"temperature_c": 40.0, "pstate": 0, "sm_clock_mhz": 1468.0,
           "memory_used_bytes": 340 << 20}  # fmt: skip
    minutes = card_minutes([cold, cold, hot])
    assert (plain(minutes["temperature"].latest), plain(minutes["temperature"].change)) == (
        "40 °C", "+14 °C",
    )  # fmt: skip
    assert (plain(minutes["clock"].latest), minutes["clock"].change) == ("1468 MHz · P0", "P8 → P0")
    assert plain(minutes["memory"].latest) == "340 MiB of 2 GiB"
    assert plain(minutes["memory"].change) == "+336 MiB"


def test_a_fall_has_a_minus():
    minutes = card_minutes([{"temperature_c": 60.0}, {"temperature_c": 50.0}])
    assert plain(minutes["temperature"].change) == "−10 °C"


def test_small_changes_are_not_worth_a_word():
    steps = [{"temperature_c": 40.0, "utilization_percent": 1.0, "pstate": 8},
             {"temperature_c": 40.4, "utilization_percent": 99.0, "pstate": 8}]  # fmt: skip
    assert {minute.change for minute in card_minutes(steps).values()} == {""}


def test_curve_table_and_sentence_say_the_same():
    minute = card_minutes([{"temperature_c": t} for t in (30.0, 40.0, 35.0)])["temperature"]
    assert minute.values == (30.0, 40.0, 35.0)
    assert minute.times_s == (100.0, 101.0, 102.0)
    assert [plain(cell) for cell in minute.row] == [
        "Temperature", "35 °C", "+5 °C", "30 °C", "35 °C", "40 °C",
    ]  # fmt: skip
    assert plain(minute.sentence) == (
        "Temperature: 35 °C, +5 °C. In the last 2 seconds between 30 °C and 40 °C, on average "
        "35 °C."
    )


def test_a_refused_sensor_is_said_to_be_and_has_no_curve():
    minute = card_minutes([{"power_w": None}] * 3)["power"]
    assert minute.is_refused
    assert minute.values == ()
    assert minute.row == ("Power", "n/a", "", "", "", "")
    assert minute.sentence == "Power: n/a, this device does not report it."


def test_a_sensor_that_is_refused_later_has_no_present_value():
    minute = card_minutes([{"power_w": 12.0}, {"power_w": 12.0}, {"power_w": None}])["power"]
    assert minute.values == (12.0, 12.0)
    assert (minute.latest, minute.change) == ("n/a", "")
    assert plain(minute.sentence).startswith("Power: n/a. In the last 1 seconds between 12.0 W")


def test_one_reading_is_too_early_to_call_it_refused():
    minute = card_minutes([{"utilization_percent": None}])["utilization"]
    assert not minute.is_refused
    assert minute.sentence == "Utilisation: not read yet."


def test_nothing_is_known_before_the_first_reading():
    assert {minute.sentence for minute in minutes_of(cpu_only().cpu, [])} == {
        "Utilisation: not read yet.", "Memory: not read yet.", "Temperature: not read yet.",
    }  # fmt: skip


def test_only_the_last_minute_counts():
    minute = card_minutes([{"fan_percent": float(i % 100)} for i in range(200)])["fan"]
    assert minute.times_s[-1] == 299.0
    assert minute.times_s[0] == 239.0
    assert minute.span_s == 60.0


def test_a_curve_does_not_run_over_a_time_when_nobody_looked():
    found = gt_1030()
    readings = [reading(found, at_s) for at_s in (0.0, 1.0, 30.0, 31.0)]
    assert minutes_of(found.cards[0], readings)[0].times_s == (30.0, 31.0)


def test_each_card_has_its_own_minute():
    found = two_cards()
    first, second = reading(found).cards
    hot = msgspec.structs.replace(second, telemetry=Telemetry(temperature_c=80.0))
    taken = msgspec.structs.replace(reading(found), cards=(first, hot))
    temperatures = [minutes_of(card, [taken])[2].values for card in found.cards]
    assert temperatures == [(41.0,), (80.0,)]


def test_a_card_without_a_uuid_has_a_minute_too():
    card = rtx_3060_card(uuid=None)
    taken = msgspec.structs.replace(
        reading(two_cards()),
        cards=(CardReading(uuid="00000000:06:00.0", telemetry=Telemetry(temperature_c=50.0)),),
    )
    assert minutes_of(card, [taken])[2].values == (50.0,)


def test_a_lost_card_adds_nothing():
    found = gt_1030()
    lost = CardReading(uuid=found.cards[0].identity, telemetry=Telemetry(), error="Lost.")
    readings = [
        reading(found, 0.0),
        msgspec.structs.replace(reading(found, 1.0), cards=(lost,)),
    ]
    minute = minutes_of(found.cards[0], readings)[2]
    assert minute.times_s == (0.0,)
    only_lost = [msgspec.structs.replace(reading(found, at_s), cards=(lost,)) for at_s in (1, 2)]
    assert not minutes_of(found.cards[0], only_lost)[2].is_refused


@pytest.mark.parametrize(
    ("key", "changes", "scale"),
    [
        ("utilization", {"utilization_percent": 3.0}, (0.0, 100.0)),
        ("memory", {"memory_used_bytes": 1 << 20}, (0.0, float(2 << 30))),
        ("temperature", {"temperature_c": 40.0}, (30.0, 70.0)),
        ("temperature", {"temperature_c": 95.0}, (90.0, 130.0)),
        ("temperature", {"temperature_c": -5.0}, (-10.0, 30.0)),
        ("power", {"power_w": 10.0, "power_limit_w": 30.0}, (0.0, 30.0)),
        ("power", {"power_w": 10.0, "power_limit_w": None}, (0.0, 12.0)),
        ("power", {"power_w": 40.0, "power_limit_w": 30.0}, (0.0, 48.0)),
        ("clock", {"sm_clock_mhz": 227.0}, (0.0, 1911.0)),
        ("fan", {"fan_percent": 0.0}, (0.0, 100.0)),
    ],
)
def test_a_scale_holds_its_values_and_what_there_is(key, changes, scale):
    assert card_minutes([changes])[key].scale == pytest.approx(scale)


def test_a_wide_range_of_temperatures_fits():
    minute = card_minutes([{"temperature_c": t} for t in (26.0, 78.0)])["temperature"]
    assert minute.scale == (20.0, 90.0)


def test_a_cpu_has_its_own_sensors():
    found = cpu_only()
    minutes = minutes_of(found.cpu, [reading(found, 0.0), reading(found, 1.0)])
    assert [minute.kind.title for minute in minutes] == ["Utilisation", "Memory", "Temperature"]
    assert plain(minutes[0].latest) == "12 %"
    assert plain(minutes[1].latest) == "8 GiB of 32 GiB"
    assert minutes[2].is_refused
