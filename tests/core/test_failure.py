import pytest

from gpu_studio.core.engine import EngineEnvironment, describe_exit
from gpu_studio.core.failure import FailureKind, StudioError, failure_from


def test_an_expected_failure_is_its_sentence_and_no_trace():
    failure = failure_from(StudioError(FailureKind.TOO_LARGE, "Too large for this PC."))
    assert (failure.kind, failure.message) == (FailureKind.TOO_LARGE, "Too large for this PC.")
    assert failure.traceback_text == ""


def test_an_unexpected_failure_is_one_line_for_people_and_its_trace_for_the_log():
    try:
        raise ValueError("first line\nsecond line " + "x" * 1000)
    except ValueError as error:
        failure = failure_from(error)
    assert failure.kind is FailureKind.INTERNAL
    assert failure.message == "ValueError: first line"
    assert "Traceback" in failure.traceback_text


@pytest.mark.parametrize(
    ("exit_code", "sentence"),
    [
        (None, "stopped answering"),
        (-9, "ran out of memory (RAM)"),
        (137, "ran out of memory (RAM)"),
        (-6, "signal 6"),
        (3, "exit code 3"),
    ],
)
def test_an_engines_end_in_words(exit_code: int | None, sentence: str) -> None:
    assert sentence in describe_exit(exit_code)


def test_nothing_chosen_sets_the_order_of_the_cards_alone():
    assert EngineEnvironment().variables() == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_no_card_visible_is_a_choice():
    assert EngineEnvironment(visible_devices="").variables()["CUDA_VISIBLE_DEVICES"] == ""


def test_an_allocator_s_configuration_leaves_no_other_beside_it():
    chosen = EngineEnvironment(allocator_configuration="max_split_size_mb:64").variables()
    assert chosen["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64"
    # torch 2.9 and newer read this name as well: a user's own value must not be left in it.
    assert chosen["PYTORCH_ALLOC_CONF"] == "max_split_size_mb:64"
