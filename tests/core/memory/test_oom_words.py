from __future__ import annotations

import pytest

from gpu_studio.core.memory.oom_words import describe_filling, explain_outcome
from tests.fakes.memory_answers import memory_read, no_context, oom_finished


def plain(text):
    return text.replace("\u202f", " ")


def test_over_the_budget_names_the_limit_and_what_was_free():
    outcome = explain_outcome(oom_finished("over_budget"))
    sentence = plain(outcome.sentence)
    assert "Tensor 5 asked for 256 MiB when 1 GiB were allocated." in sentence
    assert "allows 1.17 GiB; 634 MiB of the card were still free" in sentence
    assert outcome.tone == "amber"
    assert "not full" in outcome.next_step


def test_a_full_card_names_what_was_free_and_what_lay_in_pieces():
    outcome = explain_outcome(
        oom_finished("card_full", free_bytes=154 << 20, unallocated_bytes=8 << 20)
    )
    sentence = plain(outcome.sentence)
    assert "allocated. 154 MiB of 1.95 GiB were free" in sentence
    assert sentence.endswith(", and 8 MiB were reserved in pieces too small for it.")
    assert outcome.tone == "failure"


def test_numbers_that_the_error_does_not_tell_are_left_out():
    bare = oom_finished(
        "card_full", allocated_bytes=None, tried_bytes=None, free_bytes=None, total_bytes=None,
        unallocated_bytes=None, limit_bytes=None,
    )  # fmt: skip
    sentence = plain(explain_outcome(bare).sentence)
    assert "Tensor 5 asked for 256 MiB." in sentence
    assert "None" not in sentence
    over = oom_finished("over_budget", limit_bytes=None)
    assert "budget allows" not in explain_outcome(over).sentence


def test_what_fits_is_counted():
    several = plain(explain_outcome(oom_finished("fits")).sentence)
    assert several == "4 tensors of 256 MiB, together 1 GiB, were on the card at once; now freed."
    single = plain(explain_outcome(oom_finished("fits", tensors=1)).sentence)
    assert single == "1 tensor of 256 MiB was on the card at once; now freed."


@pytest.mark.parametrize("outcome", ["fits", "over_budget", "card_full", "stopped", "refused"])
def test_every_end_has_a_name_a_sentence_and_a_next_step(outcome):
    told = explain_outcome(oom_finished(outcome))
    assert told.headline.endswith(".")
    assert told.sentence
    assert told.next_step


def test_a_refusal_quotes_one_line_of_the_error():
    told = explain_outcome(oom_finished("refused", error_text="first line\nsecond line"))
    assert "first line" in told.sentence
    assert "second line" not in told.sentence


def test_the_filling_is_told_while_it_goes_on():
    told = plain(describe_filling(memory_read(allocated=512, reserved=520), 1200 << 20))
    assert told == "512 MiB allocated, 520 MiB reserved, of a budget of 1.17 GiB."
    assert "context" in describe_filling(no_context(), 1 << 20)
