"""Several names in one sentence."""

from __future__ import annotations

import pytest

from gpu_studio.core.texts import listed


@pytest.mark.parametrize(
    ("names", "sentence"),
    [([], ""), (["A"], "A"), (["A", "B"], "A and B"), (iter("ABC"), "A, B and C")],
)
def test_names_become_a_list_in_a_sentence(names, sentence):
    assert listed(names) == sentence


def test_a_choice_ends_in_or():
    assert listed(("hot", "cold"), "or") == "hot or cold"
