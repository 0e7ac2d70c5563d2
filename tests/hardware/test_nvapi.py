import ctypes
import threading
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


def rtx_3060(bus: int = 1, **statuses: int) -> FakeCard:
    return FakeCard(bus, {0: 35.0, 1: 45.59375, 7: 52.0}, **statuses)


def guarded(fake: FakeNvapi, *, proven: bool = True, asleep: bool = False) -> GuardedNvapi:
    return GuardedNvapi(fake.session, lambda: proven, lambda: asleep)


def test_the_structures_have_the_sizes_that_the_driver_expects() -> None:
    assert (ctypes.sizeof(nvapi.ChannelInfo), nvapi.stamp(nvapi.ChannelInfo)) == (2736, 0x20AB0)
    assert (ctypes.sizeof(nvapi.ChannelStatus), nvapi.stamp(nvapi.ChannelStatus)) == (168, 0x200A8)
    assert nvapi.ChannelInfo.primary.offset == 2728
    assert nvapi.ChannelStatus.values.offset == 40


def test_cards_are_matched_by_their_bus_and_not_by_their_order() -> None:
    session = FakeNvapi(FakeCard(0x41, {0: 50, 1: 61}), rtx_3060(bus=1)).session()
    assert session.read(1) == ChannelReading(45.59375, 52.0)
    assert session.read(0x41) == ChannelReading(61.0, None)
    assert session.read(2) == NOTHING


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
    now = Telemetry(temperature_c=core)
    for has_one in (True, False):
        heat = CardHeat(has_hot_spot=has_one)
        read = heat.added_to(now, ChannelReading(hot_spot), 0.0)
        assert read.hotspot_c == (shown if has_one else None)


def test_a_sensor_that_never_changes_under_load_is_stuck_until_it_changes() -> None:
    heat = CardHeat(has_hot_spot=True)

    def read(hotspot_c: float, load_percent: float, at_s: float) -> float | None:
        now = Telemetry(temperature_c=50.0, utilization_percent=load_percent)
        return heat.added_to(now, ChannelReading(hotspot_c), at_s).hotspot_c

    assert [read(66.0, 10.0, 0.0), read(66.0, 10.0, 99.0)] == [66.0, 66.0], "an idle card is steady"
    assert [read(66.0, 98.0, 100.0), read(66.0, 98.0, 159.0)] == [66.0, 66.0]
    assert [read(66.0, 98.0, 161.0), read(66.0, 10.0, 170.0)] == [None, None]
    assert read(67.0, 98.0, 171.0) == 67.0


def test_nvml_s_own_temperature_of_the_memory_counts_more() -> None:
    reading = ChannelReading(memory_c=74.0)
    for own_c, shown_c in ((61.0, 61.0), (None, 74.0)):
        heat = CardHeat(has_hot_spot=False)
        now = heat.added_to(Telemetry(memory_temperature_c=own_c), reading, 0.0)
        assert now.memory_temperature_c == shown_c


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
    assert guarded(fake, proven=False).read(1) == NOTHING
    assert guarded(fake, asleep=True).read(1) == NOTHING
    assert fake.asked == []


def test_a_pc_without_the_library_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvapi, "_LIBRARY", "libnvidia-api-that-is-nowhere.so.1")
    monkeypatch.setattr(nvapi, "_WINDOWS_LIBRARY", "nvapi64-that-is-nowhere.dll")
    assert not is_proven()
    assert nvapi.main() == 1
    quiet = GuardedNvapi(is_any_asleep=lambda: False)
    assert quiet.read(1) == NOTHING


def test_the_card_s_readings_have_both_and_its_description_too() -> None:
    fake = FakeNvapi(FakeCard(2, {0: 90, 1: 99}), FakeCard(1, {0: 26, 1: 38, 7: 40}))
    answers = dict(GT_1030)
    reader = NvidiaReader(Nvml(FakeNvml(answers)), guarded(fake))
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
