"""The Devices tab, as its tests see it."""

from __future__ import annotations

import pytest

from gpu_studio.ui.devices.devices_tab import DevicesTab


@pytest.fixture
def tab(qtbot, studio, theme):
    created = DevicesTab(studio, theme)
    qtbot.addWidget(created)
    created.resize(1000, 700)
    return created
