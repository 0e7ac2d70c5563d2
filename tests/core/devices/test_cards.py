from __future__ import annotations

import itertools
import json

import pytest

from gpu_studio.core.devices.cards import chip_of, driver_branches, known_card
from gpu_studio.core.devices.peaks import known_capabilities
from gpu_studio.core.resources import resource_path

TABLE = json.loads(resource_path("cards.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("device_id", "chip"),
    [(0x1D01, "GP108"), (0x128B, "GK208"), (0x1180, "GK104"), (0x102D, "GK210"), (0x1B06, "GP102"),
     (0x1F82, "TU117"), (0x2503, "GA106"), (0x2684, "AD102"), (0x2335, "GH100"), (0x0001, None),
     (None, None)],
)  # fmt: skip
def test_a_chip_is_known_by_its_device_id(device_id, chip):
    found = chip_of(device_id)
    assert (found.name if found else None) == chip


def test_no_device_id_is_of_two_chips():
    ranges = [
        tuple(int(end, 16) for end in text.split("-"))
        for chip in TABLE["chips"]
        for text in chip["device_ids"]
    ]
    assert all(first <= last for first, last in ranges)
    for (_, last), (first, _) in itertools.pairwise(sorted(ranges)):
        assert last < first


def test_a_card_is_known_with_the_maker_s_name_and_without():
    assert known_card("NVIDIA GeForce GT 1030") == known_card("GeForce GT 1030")
    assert known_card("NVIDIA GeForce RTX 3060 Laptop GPU") is None
    assert known_card("NVIDIA GeForce RTX 3060").multiprocessors == (28,)


def test_drivers_serve_every_architecture_up_to_a_branch_or_still():
    architectures = {chip["architecture"] for chip in TABLE["chips"]}
    assert set(TABLE["driver_branches"]) < architectures
    assert driver_branches("Pascal").first_without == 590
    assert driver_branches("Turing") is None
    assert all(b["last"] < b["first_without"] for b in TABLE["driver_branches"].values())


def test_the_table_is_of_one_piece_and_names_its_sources():
    capabilities = {chip["compute_capability"] for chip in TABLE["chips"]}
    for card in TABLE["cards"]:
        assert set(card["compute_capability"]) <= capabilities | {"12.0"}, card["name"]
    known = {f"{major}.{minor}" for major, minor in known_capabilities()} | {"2.0", "2.1"}
    assert capabilities <= known
    assert set(TABLE["sources"]) == set(TABLE) - {"about", "sources"}
