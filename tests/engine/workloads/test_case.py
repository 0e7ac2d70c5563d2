import msgspec
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from gpu_studio.engine.workloads.case import make_case, refuse_mode

CPU = torch.device("cpu")
SORTS = WorkloadDescription(
    name="sort",
    title="Sorting",
    sentence="Sorts numbers.",
    dtypes=("float32",),
    sizes=(8,),
    throughput_unit="B/s",
    options=(
        WorkloadOption(name="order", title="Order", sentence="Which end.", values=("up", "down")),
        WorkloadOption(name="keys", title="Keys", sentence="How many.", values=("1", "2", "3")),
    ),
    refuses={"transfers": "Sorting stays where it is."},
)


def refusal(**changes: object) -> str:
    with pytest.raises(StudioError) as caught:
        make_case(SORTS, CPU, 8, **changes)
    assert caught.value.kind is FailureKind.BAD_REQUEST
    return str(caught.value)


def test_missing_options_have_their_first_value():
    assert make_case(SORTS, CPU, 8).options == {"order": "up", "keys": "1"}
    chosen = make_case(SORTS, CPU, 8, options={"keys": "3"})
    assert chosen.options == {"order": "up", "keys": "3"}


def test_an_unknown_option_is_answered_with_those_there_are():
    sentence = refusal(options={"speed": "1"})
    assert all(words in sentence for words in ("“speed”", "order or keys"))
    plain = msgspec.structs.replace(SORTS, options=())
    with pytest.raises(StudioError, match="has no options"):
        make_case(plain, CPU, 8, options={"speed": "1"})


def test_an_unknown_value_is_answered_with_those_there_are():
    sentence = refusal(options={"keys": "x" * 1000})
    assert all(words in sentence for words in (f"“{'x' * 20}”", "option keys", "1, 2 or 3"))


def test_a_mode_without_sense_is_refused_with_its_reason():
    assert refusal(transfers=True) == "Sorting stays where it is."
    assert make_case(SORTS, CPU, 8, cache="cold").cache == "cold"
    sentence = refusal(cache="warm")
    assert all(words in sentence for words in ("“warm”", "hot or cold"))
    refuse_mode(SORTS, "naive")
    refuse_mode(SORTS, "transfers", is_wanted=False)


def test_a_device_of_another_kind_is_refused():
    for_cards = msgspec.structs.replace(SORTS, device_kinds=("cuda",))
    with pytest.raises(StudioError, match="sort does not run on cpu, only on NVIDIA cards"):
        make_case(for_cards, CPU, 8)
