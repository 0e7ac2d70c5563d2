"""A PC without a card, on which commands run in processes of their own."""

from __future__ import annotations

import os

import pytest

from tests.own_home import own_home

NO_DISPLAY = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture
def environment(tmp_path):
    """A PC without a card and a home of its own for the log."""
    variables = {name: value for name, value in os.environ.items() if name not in NO_DISPLAY}
    return variables | {
        **own_home(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONIOENCODING": "utf-8",
    }
