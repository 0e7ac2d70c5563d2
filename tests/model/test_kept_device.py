import msgspec
import pytest

from gpu_studio.core.benchmark.kept_run import KeptRun, encode_kept, kept_of, run_of, without_card
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.kept_device import doubt_note, kept_card, kept_name
from gpu_studio.model.studio import Studio
from tests.fakes.pc import gt_1030_card, two_cards
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Engines

CARD = gt_1030_card()
NAME = "GeForce GT 1030"


def twins() -> Inventory:
    inventory = two_cards()
    devices = [
        msgspec.structs.replace(one, name=CARD.name) if not one.is_cpu else one
        for one in inventory.devices
    ]
    return msgspec.structs.replace(inventory, devices=tuple(devices))


def kept(card: str, **changes: object) -> KeptRun:
    request = RunWorkload(
        run_id="run-1", workload="elementwise", device="cuda:1", size=64, dtype="float32"
    )
    run = Run(request)
    for event in run_events(request, device_name=CARD.name, **changes):
        run.apply(event)
    run.card = card
    return kept_of(run, "2026-01-02T03:04:05+00:00")


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_run_is_of_its_card_and_of_no_other_one_of_its_name(
    with_cuda: Engines, ready_studio: Studio
) -> None:
    board = ready_studio.board
    name = kept_name(kept(CARD.identity), board, NAME)
    assert (kept_card(kept(CARD.identity), board), name) == (CARD.identity, NAME)
    assert kept_name(kept("GPU-of-another"), board, NAME) == f"{NAME}, not in this PC now"
    assert kept_card(kept("GPU-of-another"), board) == "GPU-of-another"
    assert not doubt_note(kept("GPU-of-another"))


@pytest.mark.parametrize(("inventory", "of"), [(two_cards(), CARD.identity), (twins(), CARD.name)])
def test_a_run_of_an_older_version_is_shown_by_its_name_and_says_so(
    with_cuda: Engines, ready_studio: Studio, of: str
) -> None:
    old = kept("")
    assert kept_card(old, ready_studio.board) == of
    assert kept_name(old, ready_studio.board, NAME) == NAME
    assert "name only" in doubt_note(old)


def test_a_run_without_a_checksum_says_so_with_what_else_is_doubtful() -> None:
    unchecked = msgspec.structs.replace(kept("GPU-own"), is_unchecked=True)
    assert "checksum" in doubt_note(unchecked)
    assert doubt_note(msgspec.structs.replace(unchecked, card="")).count("only and its file") == 1


@pytest.mark.parametrize("inventory", [twins()])
def test_twins_have_their_numbers(with_cuda: Engines, ready_studio: Studio) -> None:
    names = [kept_name(kept(card.identity), ready_studio.board, NAME) for card in twins().cards]
    assert names == ["GT 1030 (cuda:0)", "GT 1030 (cuda:1)"]


def test_the_identity_stays_with_the_run_and_in_the_pc() -> None:
    assert run_of(kept("GPU-own")).card == "GPU-own"
    assert b"GPU-own" in encode_kept(kept("GPU-own"))
    assert b"GPU-own" not in encode_kept(without_card(kept("GPU-own")))
