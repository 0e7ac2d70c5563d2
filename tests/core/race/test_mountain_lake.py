"""The shipped picture: the same scene at every size."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_studio.core.race.mountain_lake import mountain_lake


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 4), (64, 36)])
def test_a_picture_has_the_asked_width_and_is_wide(width: int, height: int) -> None:
    picture = mountain_lake(width)

    assert picture.shape == (height, width, 3)
    assert picture.dtype == np.uint8


def test_a_small_picture_is_the_large_one_seen_from_afar() -> None:
    """Learning at another size must be learning the same picture."""
    large = mountain_lake(128).reshape(18, 4, 32, 4, 3).mean(axis=(1, 3))

    # Only the pixels on an edge differ: a small picture has fewer samples of it.
    assert np.abs(large - mountain_lake(32)).mean() < 4


def test_the_scene_has_sky_above_trees_and_a_lit_window() -> None:
    picture = mountain_lake(512).astype(int)
    sky, tree, window = picture[2, 256], picture[200, 14], picture[226, 93]

    assert sky[2] > sky[0], "the sky is blue"
    assert tree.sum() < 200, "the trees are dark"
    left, top, right = (round(share * 512) for share in (0.15, 0.36, 0.26))
    house = picture[top : top + 60, left:right]
    assert (house[..., 0] > house[..., 2] + 40).mean() > 0.2, "the lens shows the house"
    assert window[0] > 200, "the window is lit"
    assert window[2] < 150, "the light is yellow"


def test_a_picture_needs_a_pixel() -> None:
    with pytest.raises(ValueError, match="0 pixels"):
        mountain_lake(0)
