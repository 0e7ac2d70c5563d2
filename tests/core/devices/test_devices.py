import pytest

from gpu_studio.core.devices.access import (
    Obstacle,
    numbered_cards,
    obstacle_of,
    obstacle_words,
    usable_cards,
)
from gpu_studio.core.devices.card_programs import (
    CardState,
    busiest_other,
    do_others_compute,
    memory_by_program,
    program_notice,
    program_notices,
    spill_notice,
)
from gpu_studio.core.devices.devices import (
    CardReading,
    Device,
    Driver,
    GpuProcess,
    Inventory,
    Reading,
    decode_sensor_event,
    encode_sensor_event,
    number_cards,
)
from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard
from gpu_studio.core.notice import Tone
from gpu_studio.core.telemetry import Telemetry
from tests.driving.window import plain
from tests.fakes.descriptions import described_with_cuda

CPU = Device(kind="cpu", name="AMD Ryzen 7 5700G with Radeon Graphics")


def card(letter: str, bus: int, **facts) -> Device:
    return Device(
        kind="cuda", name=f"card {letter}", uuid=f"GPU-{letter * 8}-0000",
        pci_bus_id=f"00000000:{bus:02X}:00.0", **facts,
    )  # fmt: skip


# NVML's order is not the order of the slots.
A, B, C = card("a", 2), card("b", 1), card("c", 3)


@pytest.mark.parametrize(
    ("visible_devices", "indexes"),
    [
        (None, (1, 0, 2)),
        ("", (None, None, None)),
        ("1", (0, None, None)),
        ("2,0", (None, 1, 0)),
        ("-1", (None, None, None)),
        ("0,7,1", (None, 0, None)),
        ("0,0", (None, None, None)),
        ("GPU-cccc,GPU-aaaaaaaa-0000", (1, None, 0)),
        ("GPU-", (None, None, None)),  # names more than one
        ("GPU-dddd,GPU-aaaa", (None, None, None)),
    ],
)
def test_cuda_numbers_the_visible_cards_by_slot(visible_devices, indexes):
    numbered = number_cards([A, B, C], visible_devices)
    assert [device.uuid for device in numbered] == [A.uuid, B.uuid, C.uuid]
    assert tuple(device.torch_index for device in numbered) == indexes


def test_the_identity_of_a_device_outlives_its_numbers():
    assert CPU.identity == "cpu"
    assert A.identity == A.uuid
    assert Device(kind="cuda", name="x", pci_bus_id="00000000:01:00.0").identity.endswith("01:00.0")
    assert Device(kind="cuda", name="x", maker="NVIDIA", driver_index=3).identity == "NVIDIA 3"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA GeForce GT 1030", "GT 1030"),
        ("Intel(R) Core(TM) i5-9600K CPU @ 3.70GHz", "Core i5-9600K"),
        ("AMD Ryzen 7 5700G with Radeon Graphics", "Ryzen 7 5700G"),
        ("AMD Ryzen 5 5600 6-Core Processor", "Ryzen 5 5600"),
        ("NVIDIA GeForce GTX 1650 with Max-Q Design", "GTX 1650 Max-Q"),
        ("NVIDIA card", "NVIDIA card"),
    ],
)
def test_short_names_leave_the_maker_out(name, short):
    assert Device(kind="cpu", name=name).short_name == short


def test_sensor_events_survive_their_line():
    inventory = Inventory(
        devices=(CPU, card("a", 1, telemetry=Telemetry(power_w=12.5), processes=(
            GpuProcess(pid=7, name="python", memory_bytes=336 << 20),))),
        other_gpus=("AMD Radeon RX 6600",),
    )  # fmt: skip
    reading = Reading(
        taken_at_s=1.5,
        cpu=Telemetry(utilization_percent=3.0),
        cards=(CardReading(uuid="GPU-x", telemetry=Telemetry(), error="The card\nis lost."),),
    )
    for event in (inventory, reading):
        line = encode_sensor_event(event)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert decode_sensor_event(line) == event


def pc(*codes, **driver):
    cards = [Device(kind="cuda", name="a card", unreadable_code=code) for code in codes]
    return Inventory(devices=(Device(kind="cpu", name="CPU"), *cards), driver=Driver(**driver))


@pytest.mark.parametrize(
    ("inventory", "is_asked"),
    [
        (pc(), False),
        (pc("no_driver", "asleep"), False),
        (pc("asleep", None), True),
        (pc("silent"), True),
        # Windows tells a card from its driver alone, which did not answer.
        (pc(is_silent=True), True),
    ],
)
def test_a_driver_is_asked_where_there_is_one_and_a_card_is_awake(inventory, is_asked):
    assert inventory.asks_driver == is_asked


def test_processes_of_one_program_are_added_and_the_small_ones_share_a_row():
    processes = [
        GpuProcess(pid=1, name="/usr/bin/a", memory_bytes=1),
        GpuProcess(pid=2, name="b", memory_bytes=5),
        GpuProcess(pid=3, name=r"C:\bin\a", memory_bytes=2),
        GpuProcess(pid=4, name="c", memory_bytes=2),
        GpuProcess(pid=5, name="d", memory_bytes=1),
        GpuProcess(pid=6, name="silent"),
    ]
    assert memory_by_program(processes, 2) == [("b", 5), ("a", 3), ("2 others", 3)]
    assert memory_by_program(processes, 4) == [("b", 5), ("a", 3), ("c", 2), ("d", 1)]
    assert memory_by_program(processes[5:], 2) == []


def on_card(compute, graphics, busy=None) -> list[GpuProcess]:
    def kind(pid: int) -> str:
        both = "compute and graphics" if pid in graphics else "compute"
        return both if pid in compute else "graphics"

    pids = sorted({*compute, *graphics})
    return [GpuProcess(pid=pid, kind=kind(pid), busy_percent=(busy or {}).get(pid)) for pid in pids]


@pytest.mark.parametrize(
    ("compute", "graphics", "others"),
    [
        ([1, 2], [], True),
        ([1], [2], False),
        ([1, 2], [2], False),  # Windows lists what draws as computing too
        ([2], [], False),  # this process under another number, in a container
        ([2, 3], [], True),
        ([], [], None),
    ],
)
def test_other_processes_are_those_that_compute_and_do_not_draw(compute, graphics, others):
    assert do_others_compute(on_card(compute, graphics), own_pid=1) is others


@pytest.mark.parametrize(
    ("busy", "compute", "graphics", "busiest"),
    [
        ({1: 90.0, 2: 20.0, 3: 60.0}, [1], [2, 3], 3),  # 1 is us
        ({}, [1], [2], 2),
        ({}, [1, 2, 3], [2, 3], None),  # Windows lists its whole desktop
        ({}, [], [], None),
        ({2: 90.0}, [7], [2], None),  # in a container, the numbers are the host's
    ],
)
def test_the_program_that_keeps_a_card_busy_is_named_if_known(busy, compute, graphics, busiest):
    assert busiest_other(on_card(compute, graphics, busy), own_pid=1) == busiest


GT_1030 = TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030", compute_capability="6.1")
RTX_3060 = TorchCard(torch_index=1, name="NVIDIA GeForce RTX 3060", compute_capability="8.6")


def usable_of(*cards: TorchCard, arch_list: tuple[str, ...] = ("sm_75", "sm_80")) -> list[str]:
    engine = described_with_cuda(device_count=2, cards=cards, arch_list=arch_list)
    return usable_cards(engine)


def test_a_card_without_code_is_left_out() -> None:
    assert usable_of(GT_1030, RTX_3060) == ["cuda:1"]
    assert usable_of(GT_1030, RTX_3060, arch_list=("sm_60", "sm_80")) == ["cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    ("maker", "kind", "driver", "obstacle"),
    [
        ("AMD", "cuda", "amdgpu", Obstacle.OTHER_BUILD),
        ("Intel", "xpu", "xe", Obstacle.OTHER_BUILD),
        ("ASPEED", "display", "ast", Obstacle.OTHER_BUILD),
        ("NVIDIA", "cuda", "nouveau", Obstacle.OTHER_DRIVER),
        ("NVIDIA", "cuda", "nvidia", Obstacle.HIDDEN),
    ],
)
def test_a_card_of_another_maker_needs_another_build_and_is_not_hidden(
    maker, kind, driver, obstacle
):
    card = Device(kind=kind, maker=maker, name="x", kernel_driver=driver, pci_bus_id="0:1:2.0")
    (numbered,) = numbered_cards([card], "")  # CUDA_VISIBLE_DEVICES hides every card of NVIDIA's
    engine = EngineDescribed(pid=1, torch_version="2.13.0+cu130", cuda_build="13.0")
    assert numbered.torch_index is None
    assert obstacle_of(numbered, engine) is obstacle
    assert obstacle_words(obstacle, numbered, engine)


GIB, MIB = 1 << 30, 1 << 20
OWN = {4711: "This program's PyTorch"}
FULL = CardState(total_bytes=6 * GIB, used_bytes=int(5.8 * GIB))


def process(pid, name="python", memory_bytes=MIB, **changes):
    return GpuProcess(pid=pid, name=name, memory_bytes=memory_bytes, busy_over_s=10.0, **changes)


OLLAMA = process(7, "ollama.exe", int(4.1 * GIB), busy_percent=83.0, shared_bytes=int(0.9 * GIB))


def told(*processes, state=FULL, most=3):
    notices = program_notices(processes, OWN, state, most)
    return [(plain(one.sentence), one.tone) for one in notices]


def test_the_line_names_the_card_where_nothing_beside_it_does():
    found = program_notice("ollama.exe", [OLLAMA], FULL, on="GTX 1060")
    assert plain(found.sentence) == (
        "ollama.exe computes on the GTX 1060: 83 % of the last 10 s, 4.10 GiB of its memory and "
        "922 MiB spilled into RAM, so it is slow."
    )
    idle = program_notice("x", [process(1, busy_percent=0.0)], FULL, on="GTX 1060")
    assert plain(idle.sentence).startswith("x did nothing on the GTX 1060 in the last 10 s")


def test_more_programs_than_lines_end_in_one_sentence():
    many = [process(n, f"p{n}", (9 - n) * MIB) for n in range(5)]
    assert told(*many, state=CardState())[-1][0] == "3 other programs: 18 MiB."
    assert len(told(*many[:3], state=CardState())) == 3


def test_what_spilled_is_one_sentence_while_it_lasts():
    found = spill_notice([OLLAMA, process(8, "game", shared_bytes=GIB)], {}, FULL)
    assert plain(found.sentence) == (
        "game spilled 1 GiB into the PC's RAM, 1 more did too. It is slow until the card has room."
    )
    assert found.tone is Tone.AMBER
    assert spill_notice([OLLAMA], {}, FULL._replace(used_bytes=GIB)) is None
