"""The shipped picture: the same scene at every size."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_studio.core.race.mountain_lake import mountain_lake


@pytest.mark.parametrize("side", [1, 7, 64])
def test_a_picture_has_the_asked_size(side: int) -> None:
    picture = mountain_lake(side)

    assert picture.shape == (side, side, 3)
    assert picture.dtype == np.uint8


def test_a_small_picture_is_the_large_one_seen_from_afar() -> None:
    """Learning at another size must be learning the same picture."""
    large = mountain_lake(128).reshape(32, 4, 32, 4, 3).mean(axis=(1, 3))

    # Only the pixels on an edge differ: a small picture has fewer samples of it.
    assert np.abs(large - mountain_lake(32)).mean() < 4


def test_the_scene_has_sky_above_trees_and_a_lit_window() -> None:
    picture = mountain_lake(200).astype(int)
    sky, tree, window = picture[2, 100], picture[150, 9], picture[168, 34]

    assert sky[2] > sky[0], "the sky is blue"
    assert tree.sum() < 200, "the trees are dark"
    assert window[0] > 200, "the window is lit"
    assert window[2] < 150, "the light is yellow"


def test_a_picture_needs_a_pixel() -> None:
    with pytest.raises(ValueError, match="0 pixels"):
        mountain_lake(0)
