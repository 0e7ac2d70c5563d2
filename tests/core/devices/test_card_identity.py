from typing import Any

import pytest

from gpu_studio.core.devices.card_identity import chips_named, identity_of, model_of
from gpu_studio.core.devices.cards import known_card
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.core.resources import read_resource
from tests.core.devices.test_cards import TABLE

GIB = 1 << 30

# The driver's name, the device id, and what the card reports: compute capability, multiprocessors,
# memory bus, MiB. None is not reported.
SOUND: tuple[tuple[Any, ...], ...] = (
    ("NVIDIA GeForce GTX 1060 6GB", 0x1C03, "6.1", 10, 192, 6144),
    ("NVIDIA GeForce GTX 1060 3GB", 0x1C02, "6.1", 9, 192, 3072),
    ("NVIDIA GeForce GTX 1060", 0x1C20, "6.1", 10, 192, 6144),  # of a laptop
    ("NVIDIA GeForce GTX 1650", 0x1F82, "7.5", 14, 128, 4096),
    ("NVIDIA GeForce GTX 750", 0x1407, "5.2", 4, 128, 2048),  # a later card of the series
    ("NVIDIA GeForce GTX 960", 0x13D8, "5.2", 10, 192, 3072),  # of a PC maker
    ("NVIDIA GeForce RTX 3060", 0x2504, "8.6", 28, 128, 8192),
    ("NVIDIA GeForce RTX 3060 Laptop GPU", 0x2520, "8.6", 30, 192, 6144),
    ("NVIDIA GeForce RTX 3090 Ti", 0x2203, "8.6", 84, 384, 23028),  # with ECC on
    ("NVIDIA GeForce GT 1030", 0x1D01, "6.1", 3, 64, 1996),
    ("Quadro T2000 with Max-Q Design", 0x1FB8, "7.5", 16, 128, 4096),
    ("Tesla T4", 0x1EB8, "7.5", 40, 256, 15360),  # ECC has taken its part
    ("GRID T4-2Q", 0x1EB8, "7.5", None, None, 2048),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 0x20B0, "8.0", 14, None, 4864),
    ("NVIDIA GeForce RTX 3060", None, "8.6", 28, 192, 12288),
    ("NVIDIA GeForce RTX 3060", 0x2503, None, None, None, None),
    ("NVIDIA GeForce RTX 9090", 0x9999, "99.0", 500, 1024, 99999),
    ("NVIDIA CMP 30HX", 0x2189, "7.5", 22, 192, 6144),
    ("NVIDIA card", None, None, None, None, None),
)


def card(
    name: str, device_id: int | None, capability: str | None, units: int | None,
    bits: int | None, mib: int | None, **others: Any,
) -> Device:  # fmt: skip
    return Device(
        kind="cuda", maker="NVIDIA", name=name, pci_device_id=device_id,
        compute_capability=capability, multiprocessors=units, memory_bus_width_bits=bits,
        memory_total_bytes=None if mib is None else mib << 20, **others,
    )  # fmt: skip


def test_a_sound_card_is_not_called_another_one() -> None:
    differing = {
        f"{facts[0]} {facts[5]}": identity_of(card(*facts), None).differing for facts in SOUND
    }
    assert not {name: found for name, found in differing.items() if found}


def test_every_version_in_the_table_is_the_card_of_its_name() -> None:
    for row in TABLE["cards"]:
        known = known_card(f"NVIDIA {row['name']}")
        assert known is not None
        for units in known.multiprocessors:
            for bits in known.bus_width_bits:
                for gib in known.memory_gib:
                    for share in (0.92, 1.0):
                        one = card(row["name"], None, known.compute_capability[0], units, bits, 0)
                        size = TorchCard(
                            torch_index=0, name="", memory_total_bytes=int(gib * share * GIB)
                        )
                        assert identity_of(one, size).differing == (), (row["name"], units, gib)


def test_the_tables_know_each_other_s_chips() -> None:
    capability_of = {chip["name"]: chip["compute_capability"] for chip in TABLE["chips"]}
    for row in TABLE["cards"]:
        chips = chips_named(row["name"])
        assert chips, row["name"]
        of_chips = {capability_of[chip] for chip in chips}
        assert of_chips == set(row["compute_capability"]), row["name"]
    names = read_resource("card_chips.json", dict)["chips"]
    assert all(model_of(name) == name for name in names)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (("NVIDIA GeForce GTX 1060 6GB", 0x0DC4, "2.1", 4, 128, 1024),
         ["says GTX 1060 6GB", "chip is GF106"]),
        (("NVIDIA GeForce GTX 1060 6GB", 0x1C03, "5.2", 6, 128, 6144), ["5.2", "6.1"]),
        (("NVIDIA GeForce GTX 1060 6GB", 0x1C03, "6.1", 9, 192, 6144), ["9", "10"]),
        (("NVIDIA GeForce GTX 1060 3GB", 0x1C02, "6.1", 9, 192, 6144), ["6", "3"]),
        (("NVIDIA GeForce GTX 1060 6GB", 0x1C03, "6.1", 10, 192, 3072), ["memory in GiB"]),
        (("NVIDIA GeForce RTX 3080", 0x220D, "8.6", 50, 320, 10240), ["CMP 90HX", "mining"]),
        (("NVIDIA GeForce RTX 3060 Laptop GPU", 0x1F82, "7.5", 14, 128, 4096), ["chip is TU117"]),
    ],
    ids=lambda value: str(value[:2]) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_another_card_with_this_name_is_found(facts: tuple[Any, ...], words: list[str]) -> None:
    found = identity_of(card(*facts), None)
    assert all(word in found.contradiction for word in words), found.contradiction
    assert found.agreement == ""


def test_what_fits_is_listed_and_no_more() -> None:
    whole = identity_of(card("NVIDIA GeForce RTX 3060", 0x2487, "8.6", 28, 192, 12288), None)
    assert whole.agreement == (
        "The name, chip, compute capability, units, memory bus and memory are those of the "
        "RTX 3060."
    )
    laptop = identity_of(
        card("NVIDIA GeForce RTX 3060 Laptop GPU", 0x2520, "8.6", 30, 192, 6144), None
    )
    assert "units" in laptop.agreement.split(".")[1]
    assert "units" not in laptop.agreement.split(".")[0]
    assert (
        identity_of(card("NVIDIA GeForce RTX 9090", 0x9999, "9.9", 9, 9, 9), None).agreement == ""
    )
