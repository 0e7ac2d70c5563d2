import msgspec
import pytest

from gpu_studio.core.devices.access import (
    Obstacle,
    discrete_first,
    numbered_cards,
    obstacle_of,
    usable_cards,
)
from gpu_studio.core.devices.devices import Device, Inventory
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.devices.pc_facts import PcFacts
from gpu_studio.core.devices.torch_findings import integrated_first
from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard
from gpu_studio.core.notice import Tone
from tests.core.devices.doctor_facts import ABSENT, CPU_ENGINE, ENGINE, RTX_3060, examined, one, pc

AMD, INTEL = "AMD", "Intel"


def card(maker, name, device_id, bus=3, **facts):
    return Device(
        kind="cuda" if maker == AMD else "xpu", maker=maker, name=f"{maker} {name}",
        pci_device_id=device_id, pci_bus_id=f"00000000:{bus:02X}:00.0", **facts,
    )  # fmt: skip


RX_6600 = card(AMD, "Radeon RX 6600", 0x73FF)
RX_580 = card(AMD, "Radeon RX 580", 0x67DF)
B580 = card(INTEL, "Arc B580", 0xE20B)
IRIS_XE = card(INTEL, "Iris Xe Graphics", 0x9A49, bus=0)
DECK = card(AMD, "Custom GPU 0405", 0x163F)
VEGA = card(AMD, "Radeon RX Vega", 0x687F)
STRANGE = card(AMD, "graphics (1002:fffe)", 0xFFFE)


def findings(*cards, engine=CPU_ENGINE, driver=ABSENT, **options):
    return examined(pc(*cards, driver=driver), engine, **options)


@pytest.mark.parametrize(
    ("device", "tag", "words"),
    [
        (RX_6600, "rocm-gfx1032", "Navi 23, gfx1032, RDNA 2, PCI 1002:73ff; torch 2.13.0+rocm10"),
        (B580, "xpu", "Battlemage, bmg, Xe2, PCI 8086:e20b; torch 2.13.0+xpu"),
        (card(AMD, "Radeon 820M", 0x1902), "rocm-gfx1153", "stable.repo.amd.com"),
    ],
)
@pytest.mark.parametrize("system", ["Linux", "Windows"])
def test_a_card_with_a_build_is_offered_it(device, tag, words, system):
    found = one("build_for_card", findings(device, system=system, machine="x86_64"))
    assert (found.build_tag, found.device_uuid) == (tag, device.identity)
    assert ("whl/xpu" if tag == "xpu" else f"device-{tag[5:]}") in found.command
    assert "extra-index" not in found.command  # PyPI has packages of the same names
    assert "GB" in found.sentence
    assert words in found.detail
    assert f"for {system} and Python" in found.detail
    assert "needs" in found.detail  # a driver, or a right
    is_untested = tag == "rocm-gfx1153"
    assert ("AMD has not tested it" in found.sentence) is is_untested


@pytest.mark.parametrize(
    ("device", "system", "words", "command"),
    [
        (RX_580, "Linux", "no build of PyTorch 2.13.0 has code for it", "--without-pytorch"),
        (VEGA, "Linux", "PyTorch's own ROCm builds list it", "whl/rocm7.2"),
        (VEGA, "Windows", "can measure it without PyTorch", "--without-pytorch"),
        (IRIS_XE, "Linux", "no build of PyTorch 2.13.0 has code for it", "--without-pytorch"),
        (DECK, "Linux", "wrong results", "unsloth/pull/8412"),
        (STRANGE, "Linux", "not in this program's table", "pci-ids.ucw.cz/read/PC/1002/fffe"),
        (card(AMD, "Instinct MI100", 0x738C), "Windows", "only for Linux", "rocm.docs.amd.com"),
        (RX_6600, "Darwin", "only for Linux and Windows", "rocm.docs.amd.com"),
    ],
)
def test_a_card_without_a_build_is_told_why_and_what_is_left(device, system, words, command):
    found = one("no_build_for_card", findings(device, system=system, machine="x86_64"))
    assert words in found.sentence
    assert "GPU Studio can measure it without PyTorch" in found.sentence
    assert ("Polaris 10, gfx803, GCN 4" in found.detail) is (device is RX_580)
    assert command in found.command


def test_beside_a_usable_nvidia_card_the_other_build_is_a_note():
    other = one("other_build_for_card", examined(pc(RTX_3060, RX_6600), ENGINE))
    assert (other.tone, other.build_tag) == (Tone.PLAIN, "rocm-gfx1032")
    assert other.sentence.startswith("Another PyTorch can use your Radeon RX 6600")


def test_a_hybrid_laptop_says_nothing_of_its_old_integrated_graphics():
    assert [one.code for one in examined(pc(RTX_3060, IRIS_XE), ENGINE)] == ["ok"]
    assert [one.code for one in findings(IRIS_XE)] == ["no_build_for_card"]


@pytest.mark.parametrize(("device", "version"), [(RX_6600, "2.13.0+rocm10.0.0"),
                                                 (B580, "2.13.0+xpu")])  # fmt: skip
def test_a_card_whose_build_is_there_is_not_offered_it_again(device, version):
    engine = EngineDescribed(pid=1, torch_version=version, arch_list=("gfx1032", "bmg-g21"))
    codes = {finding.code for finding in findings(device, engine=engine)}
    assert not codes & {"build_for_card", "other_build_for_card", "no_build_for_card"}


def test_a_second_card_of_amds_may_need_another_build():
    big = card(AMD, "Radeon RX 7900 XTX", 0x744C, bus=4)
    engine = EngineDescribed(pid=1, torch_version="2.13.0+rocm10.0.0", arch_list=("gfx1100",))
    found = one("build_for_card", findings(big, RX_6600, engine=engine))
    assert (found.build_tag, found.device_uuid) == ("rocm-gfx1032", RX_6600.identity)


def test_a_chip_that_is_newer_than_the_table_has_no_build():
    newer = msgspec.structs.replace(STRANGE, architecture="gfx1250")
    found = one("no_build_for_card", findings(newer))
    assert "(gfx1250): no build of PyTorch" in found.sentence


RADEON = Device(
    kind="cuda", maker="AMD", name="AMD Radeon RX 6600", pci_bus_id="00000000:03:00.0",
    architecture="gfx1032", is_integrated=False,
)  # fmt: skip
RYZEN = Device(
    kind="cuda", maker="AMD", name="AMD Radeon Graphics", pci_bus_id="00000000:0E:00.0",
    architecture="gfx1036", is_integrated=True,
)  # fmt: skip
GEFORCE = Device(
    kind="cuda", maker="NVIDIA", name="NVIDIA GeForce RTX 3060", uuid="GPU-1",
    pci_bus_id="00000000:01:00.0", compute_capability="8.6",
)  # fmt: skip
ARC = Device(
    kind="xpu", maker="Intel", name="Intel Arc A380", pci_bus_id="00000000:03:00.0",
    pci_device_id=0x56A5,
)  # fmt: skip


def torch_card(index: int, card: Device, **changes: object) -> TorchCard:
    usual = TorchCard(
        torch_index=index, name=card.name, kind=card.kind, maker=card.maker,
        pci_bus_id=card.pci_bus_id, architecture=card.architecture,
        is_integrated=bool(card.is_integrated),
    )  # fmt: skip
    return msgspec.structs.replace(usual, **changes)


def engine_with(*cards: TorchCard, **changes: object) -> EngineDescribed:
    first = next((one.torch_index for one in cards if not one.is_integrated), 0)
    usual = EngineDescribed(
        pid=1, torch_version="2.12.0+rocm7.2", hip_build="7.2", cuda_available=True,
        device_count=len(cards), cards=cards, first_card=first,
        arch_list=("gfx10-3-generic", "gfx1100"),
    )  # fmt: skip
    return msgspec.structs.replace(usual, **changes)


def numbers(cards: list[Device], engine: EngineDescribed) -> list[int | None]:
    found = numbered_cards(cards, None, engine.build_kind, engine.cards)
    return [card.torch_index for card in found]


def test_without_slots_the_chip_or_the_name_decides_and_each_number_is_given_once():
    twin = msgspec.structs.replace(RADEON, pci_bus_id="00000000:06:00.0")
    cards = [torch_card(0, RYZEN, pci_bus_id=None), torch_card(1, RADEON, pci_bus_id=None),
             torch_card(2, RADEON, pci_bus_id=None)]  # fmt: skip
    assert numbers([twin, RADEON, RYZEN], engine_with(*cards)) == [2, 1, 0]
    named = "Intel(R) Arc(TM) A380 Graphics"
    arc = torch_card(0, ARC, name=named, pci_bus_id=None, pci_device_id=0x56A5)
    intel = engine_with(arc, hip_build=None, torch_version="2.13.0+xpu", accelerator="xpu")
    assert numbers([GEFORCE, ARC], intel) == [None, 0]


def test_the_engine_begins_with_the_card_outside_the_processor_and_says_so():
    engine = engine_with(torch_card(0, RYZEN), torch_card(1, RADEON))
    assert usable_cards(engine) == ["cuda:1", "cuda:0"]
    assert discrete_first([RYZEN, RADEON]) == [RADEON, RYZEN]
    cpu = Device(kind="cpu", name="Ryzen 7 5800X")
    inventory = Inventory(devices=(cpu, RYZEN, RADEON))
    (finding,) = integrated_first(PcFacts(inventory, engine, "Linux", "x86_64"))
    assert "cuda:1, the AMD Radeon RX 6600" in finding.sentence
    assert finding.command == "export HIP_VISIBLE_DEVICES=1"
    only_one = engine_with(torch_card(0, RADEON))
    assert not list(integrated_first(PcFacts(inventory, only_one, "Linux", "x86_64")))


@pytest.mark.parametrize(
    ("chip", "is_listed"),
    [("gfx1032", True), ("gfx1100", True), ("gfx1010", False), ("gfx1201", False)],
)
def test_a_build_has_code_for_a_chip_or_for_its_generic_one(chip, is_listed):
    assert lists_gfx(("gfx10-3-generic", "gfx1100"), chip) is is_listed
    card = msgspec.structs.replace(RADEON, architecture=chip, torch_index=0)
    engine = engine_with(torch_card(0, card))
    assert (obstacle_of(card, engine) is None) is is_listed
    if not is_listed:
        assert obstacle_of(card, engine) is Obstacle.NO_CODE
        # HSA_OVERRIDE_GFX_VERSION lets it pass for another one.
        passing = engine_with(torch_card(0, card, architecture="gfx1030"))
        assert obstacle_of(card, passing) is None
