from __future__ import annotations

import pytest

from gpu_studio.core.devices.link import link_bytes_per_s


@pytest.mark.parametrize(
    ("generation", "width", "gb_per_s"),
    [
        (1, 1, 0.25),
        (1, 16, 4.0),
        (3, 4, 3.94),
        (3, 16, 15.75),
        (4, 16, 31.5),
        (5, 16, 63.0),
        (6, 16, 121.0),
    ],
)
def test_a_link_carries_what_its_lanes_carry(generation, width, gb_per_s):
    assert link_bytes_per_s(generation, width) == pytest.approx(gb_per_s * 1e9, rel=0.002)


@pytest.mark.parametrize("link", [(None, 16), (3, None), (3, 0), (99, 16)])
def test_an_unknown_link_has_no_limit(link):
    assert link_bytes_per_s(*link) is None
