"""The devices' model over a scripted engine."""

from __future__ import annotations

import pytest

from gpu_studio.model.devices.devices import DevicesModel


@pytest.fixture
def model(studio):
    return DevicesModel(studio)
