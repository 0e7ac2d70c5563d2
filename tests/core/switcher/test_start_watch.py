"""Whether a started program uses its card, as its drivers list it."""

import pytest

from gpu_studio.core.devices.devices import CardReading, Device, GpuProcess, Reading
from gpu_studio.core.notice import Tone
from gpu_studio.core.switcher.program_start import StartTarget, VulkanDevice
from gpu_studio.core.switcher.start_watch import WATCHED_S, StartWatch
from gpu_studio.core.telemetry import Telemetry
from tests.driving.window import plain

RTX = Device(kind="cuda", maker="NVIDIA", name="NVIDIA GeForce RTX 3060", uuid="GPU-1")
UHD = Device(kind="xpu", maker="Intel", name="Intel UHD 630", uuid="GPU-2", is_integrated=True)
ON_RTX, ON_CPU = StartTarget("RTX 3060", card=RTX, key="GPU-1"), StartTarget("CPU")
PID, MIB = 100, 1 << 20


def process(pid=PID, kind="compute", **changes):
    return GpuProcess(pid=pid, name="ollama", kind=kind, memory_bytes=300 * MIB, **changes)


def seen(target, *looks, **options):
    """Return the answer after looks: the time, and the programs on the RTX and the UHD."""
    watch = StartWatch(target, PID, [RTX, UHD], **options)
    for elapsed_s, on_rtx, on_uhd in looks:
        cards = zip((RTX, UHD), (on_rtx, on_uhd), strict=True)
        readings = (
            CardReading(uuid=card.identity, telemetry=Telemetry(), processes=tuple(found))
            for card, found in cards
        )
        watch.look(Reading(taken_at_s=0, cpu=Telemetry(), cards=tuple(readings)), elapsed_s)
    return plain(watch.notice.sentence), watch.notice.tone, watch.is_settled


def test_it_uses_the_card_as_soon_as_it_is_listed_there():
    said, tone, is_settled = seen(ON_RTX, (2.0, [process(busy_percent=50.0)], []))
    assert said == (
        "It uses the card. It computes on the RTX 3060: 50 % of the last 1 s, "
        "300 MiB of its memory."
    )
    assert (tone, is_settled) == (Tone.GOOD, True)


@pytest.mark.parametrize("family", [(PID, 1), (55, PID, 1)])
def test_what_it_starts_belongs_to_it(family):
    assert seen(ON_RTX, (2.0, [process(200, family=family)], []))[1] is Tone.GOOD
    assert seen(ON_RTX, (2.0, [process(200, family=(1,))], []))[1] is Tone.QUIET


def test_a_child_whose_parent_has_ended_still_belongs_to_it():
    child, later = process(200, family=(PID, 1)), process(300, family=(200, 1))
    assert seen(ON_RTX, (2.0, [child], []), (4.0, [later], []))[1] is Tone.GOOD


def test_after_half_a_minute_without_a_card_it_says_so():
    assert seen(ON_RTX, (5.0, [], []))[0] == "It runs and uses no card yet. Watched for 25 s more."
    said, tone, is_settled = seen(ON_RTX, (WATCHED_S, [], []))
    assert said.startswith("It started, and does not use any card: most often its own settings")
    assert (tone, is_settled) == (Tone.AMBER, True)


def test_another_card_is_named():
    said, tone, _ = seen(ON_RTX, (9.0, [], [process(busy_percent=9.0)]))
    assert "computes on the UHD 630: 9 %" in said
    assert "You chose the RTX 3060." in said
    assert tone is Tone.AMBER


def test_drawing_elsewhere_is_no_use_of_another_card():
    said, tone, _ = seen(ON_RTX, (WATCHED_S, [], [process(kind="graphics")]))
    assert said.startswith("It started, and does not use any card")
    assert said.endswith("It draws on the UHD 630.")
    assert tone is Tone.AMBER


def test_on_the_cpu_no_card_is_right_and_one_is_wrong():
    assert seen(ON_CPU, (WATCHED_S, [], []))[:2] == (
        "It computes on no card, as you chose.", Tone.GOOD,
    )  # fmt: skip
    said, tone, _ = seen(ON_CPU, (5.0, [process()], []))
    assert "You chose no card." in said
    assert tone is Tone.AMBER


def test_what_nothing_lists_is_not_judged():
    lavapipe = VulkanDevice(name="llvmpipe", vendor_id=1, device_id=0, is_software=True)
    for target, options in (
        (StartTarget("llvmpipe", vulkan=lavapipe), {}),
        (ON_RTX, {"is_wsl": 1}),
    ):
        said, tone, is_settled = seen(target, (1.0, [], []), **options)
        assert "cannot be told whether it uses the card" in said
        assert (tone, is_settled) == (Tone.QUIET, True)


@pytest.mark.parametrize(
    ("code", "after_s", "said"),
    [
        (3, 2.0, "It ended after 2 s with status 3."),
        (0, 60.0, "It ended after 60 s."),
        (0, 1.0, "It ended after 1 s. If a copy of it was already running, end that first: "
                 "it took over."),
    ],
)  # fmt: skip
def test_its_end_is_told(code, after_s, said):
    watch = StartWatch(ON_RTX, PID, [RTX])
    watch.end(code, after_s)
    assert plain(watch.notice.sentence) == said
    assert watch.is_settled
