import ctypes
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware.nvidia import nvapi
from gpu_studio.hardware.nvidia.nvapi import CardHeat, ChannelReading, GuardedNvapi, is_proven
from gpu_studio.hardware.nvidia.nvidia import NvidiaReader
from gpu_studio.hardware.nvidia.nvml import Nvml
from tests.hardware.fake_nvapi import ABSENT, INCOMPATIBLE, NOT_SUPPORTED, FakeCard, FakeNvapi
from tests.hardware.fake_nvml import GT_1030, FakeNvml
from tests.patience import until

NOTHING = ChannelReading(None, None)
LOADED = Telemetry(temperature_c=60.0, utilization_percent=99.0)


def rtx_3060(bus: int = 1, **statuses: int) -> FakeCard:
    return FakeCard(bus, {0: 35.0, 1: 45.59375, 7: 52.0}, **statuses)


def guarded(fake: FakeNvapi, **options: object) -> GuardedNvapi:
    choices: dict[str, Callable[[], bool]] = {
        "is_proven": lambda: True, "is_any_asleep": lambda: False, **options,
    }  # type: ignore[dict-item]  # fmt: skip
    return GuardedNvapi(fake.session, **choices)


def heat_of(
    fake: FakeNvapi, bus: int | None = 1, architecture: int | None = 8
) -> Callable[..., Telemetry]:
    """Return what adds the temperatures to a reading, at a time in seconds."""
    now = [0.0]
    heat = CardHeat(guarded(fake), bus, architecture, now_s=lambda: now[0])

    def read(telemetry: Telemetry = LOADED, at_s: float = 0.0) -> Telemetry:
        now[0] = at_s
        return heat.added_to(telemetry)

    return read


def test_the_structures_have_the_sizes_that_the_driver_expects() -> None:
    assert ctypes.sizeof(nvapi.Channel) == 84
    assert (ctypes.sizeof(nvapi.ChannelInfo), nvapi.stamp(nvapi.ChannelInfo)) == (2736, 0x20AB0)
    assert (ctypes.sizeof(nvapi.ChannelStatus), nvapi.stamp(nvapi.ChannelStatus)) == (168, 0x200A8)
    assert nvapi.ChannelInfo.primary.offset == 2728
    assert nvapi.ChannelStatus.values.offset == 40


def test_cards_are_matched_by_their_bus_and_not_by_their_order() -> None:
    session = FakeNvapi(FakeCard(0x41, {0: 50, 1: 61}), rtx_3060(bus=1)).session()
    assert session.read(1) == ChannelReading(45.59375, 52.0)
    assert session.read(0x41) == ChannelReading(61.0, None)
    assert session.read(2) == NOTHING


def test_two_cards_with_one_bus_number_are_not_told_apart() -> None:
    assert FakeNvapi(rtx_3060(bus=1), rtx_3060(bus=1)).session().read(1) == NOTHING


@pytest.mark.parametrize(
    "card",
    [
        rtx_3060(info=NOT_SUPPORTED), rtx_3060(info=INCOMPATIBLE), rtx_3060(status=NOT_SUPPORTED),
        FakeCard(1, {0: 35, 1: 45, 7: 50}, primary=(0, 32, ABSENT, ABSENT, ABSENT)),
        FakeCard(1, {0: 35}), FakeCard(1, {}),
        FakeCard(1, {0: 35, 1: 45}, primary=(1, 1, ABSENT, ABSENT, ABSENT)),
    ],
    ids=["no info", "wrong size", "no status", "primary 32", "not in the mask", "no channels",
         "the core's channel"],
)  # fmt: skip
def test_what_a_card_does_not_say_is_not_reported(card: FakeCard) -> None:
    assert FakeNvapi(card).session().read(1) == NOTHING


@pytest.mark.parametrize("answer", ["info", "status"])
def test_an_answer_of_another_version_is_no_answer(answer: str) -> None:
    card = rtx_3060()
    card.stamps[answer] = 3 << 16 | 13512
    assert FakeNvapi(card).session().read(1) == NOTHING


def test_a_driver_without_the_thermal_channels_has_none() -> None:
    fake = FakeNvapi(rtx_3060(), missing=(nvapi.CHANNEL_INFO,))
    assert fake.session().read(1) == NOTHING
    with pytest.raises(OSError):  # noqa: PT011  # it has no text: nobody sees it
        FakeNvapi(rtx_3060(), missing=(nvapi.INITIALIZE,)).session()


@pytest.mark.parametrize(
    ("hot_spot", "core", "shown"),
    [(45.59375, 35.0, 45.59), (58.0, 60.0, 58.0), (57.9, 60.0, None), (255.0, 60.0, None),
     (0.0, 0.0, None), (-3.0, 0.0, None), (130.0, 90.0, 130.0), (130.1, 90.0, None),
     (70.0, None, 70.0)],
)  # fmt: skip
def test_only_a_plausible_hot_spot_is_shown(
    hot_spot: float, core: float | None, shown: float | None
) -> None:
    read = heat_of(FakeNvapi(FakeCard(1, {0: 35, 1: hot_spot})))
    assert read(Telemetry(temperature_c=core)).hotspot_c == shown


def test_blackwell_has_no_hot_spot_but_may_have_the_memory_s_temperature() -> None:
    card = FakeCard(1, {0: 60, 1: 60, 2: 74}, primary=(0, 1, ABSENT, 2, ABSENT))
    read = heat_of(FakeNvapi(card), architecture=10)
    assert (read().hotspot_c, read().memory_temperature_c) == (None, 74.0)


def test_a_sensor_that_never_changes_under_load_is_stuck_until_it_changes() -> None:
    card = rtx_3060()
    read = heat_of(FakeNvapi(card))
    card.channels[1] = 77.0
    assert read(at_s=0.0).hotspot_c == 77.0
    card.channels[7] = 60.0
    assert read(at_s=59.0).hotspot_c == 77.0
    stuck = read(at_s=61.0)
    assert (stuck.hotspot_c, stuck.memory_temperature_c) == (None, 60.0)
    assert read(Telemetry(temperature_c=50.0, utilization_percent=0.0), 62.0).hotspot_c is None
    card.channels[1] = 77.5
    assert read(at_s=63.0).hotspot_c == 77.5


def test_an_idle_sensor_may_stay_the_same() -> None:
    read = heat_of(FakeNvapi(rtx_3060()))
    idle = Telemetry(temperature_c=35.0, utilization_percent=3.0)
    assert [read(idle, at_s).hotspot_c for at_s in (0.0, 100.0, 200.0)] == [45.59] * 3


def test_nvml_s_own_temperature_of_the_memory_counts_more() -> None:
    read = heat_of(FakeNvapi(rtx_3060()))
    assert (
        read(Telemetry(temperature_c=35.0, memory_temperature_c=61.0)).memory_temperature_c == 61.0
    )


def test_a_card_without_a_known_bus_is_not_guessed() -> None:
    fake = FakeNvapi(rtx_3060())
    assert heat_of(fake, bus=None)() == LOADED
    assert fake.asked == []


def test_a_call_that_hangs_is_given_up_for_good() -> None:
    fake = FakeNvapi(rtx_3060())
    fake.hangs_until = threading.Event()
    nvapi_ = GuardedNvapi(fake.session, lambda: True, lambda: False, patience_s=0.05)
    assert nvapi_.read(1) == NOTHING
    asked = list(fake.asked)
    assert asked[-1] == "status"
    fake.hangs_until.set()
    until(lambda: not nvapi_._watchdog.has_left_behind)
    assert nvapi_.read(1) == NOTHING
    nvapi_.close()
    assert nvapi_.read(1) == NOTHING
    assert fake.asked == asked


def test_nothing_is_asked_that_failed_in_the_proof_or_would_wake_a_card() -> None:
    fake = FakeNvapi(rtx_3060())
    assert guarded(fake, is_proven=lambda: False).read(1) == NOTHING
    asleep = [True]
    waking = guarded(fake, is_any_asleep=lambda: asleep[0])
    assert waking.read(1) == NOTHING
    assert fake.asked == []
    asleep[0] = False
    assert waking.read(1).hotspot_c == 45.59375
    waking.close()
    assert fake.asked[-1] == "unload"


def test_a_pc_without_the_library_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvapi, "_LIBRARY", "libnvidia-api-that-is-nowhere.so.1")
    monkeypatch.setattr(nvapi, "_WINDOWS_LIBRARY", "nvapi64-that-is-nowhere.dll")
    assert not is_proven()
    assert nvapi.main() == 1
    quiet = GuardedNvapi(is_any_asleep=lambda: False)
    assert quiet.read(1) == NOTHING


def test_the_card_s_readings_have_both_and_its_description_too() -> None:
    fake = FakeNvapi(FakeCard(2, {0: 90, 1: 99}), FakeCard(1, {0: 26, 1: 38, 7: 40}))
    reader = NvidiaReader(Nvml(FakeNvml(GT_1030)), guarded(fake))
    card = reader.card(0)
    now = card.telemetry()
    assert (now.temperature_c, now.hotspot_c, now.memory_temperature_c) == (26.0, 38.0, 40.0)
    assert card.telemetry(("power_w",)).hotspot_c is None
    assert card.telemetry(("hotspot_c",)).hotspot_c == 38.0
    assert reader.card(0) is card
    reader.close()
    assert fake.asked[-1] == "unload"


def test_a_card_of_a_data_center_says_its_memory_s_temperature_through_nvml() -> None:
    answers: dict[object, object] = dict(GT_1030)
    field = SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=71))
    answers["FieldValues", (82,)] = [field]
    card = NvidiaReader(Nvml(FakeNvml(answers))).card(0)
    assert card.telemetry().memory_temperature_c == 71.0
    field.nvmlReturn = 3
    assert card.telemetry().memory_temperature_c is None
