from __future__ import annotations

import pytest

from gpu_studio.core.engine import EngineEnvironment, describe_exit


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
