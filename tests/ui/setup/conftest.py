"""The window of a program without a PyTorch of its own."""

import pytest

from gpu_studio.model.studio import Studio
from tests.driving.window import click, wait_until
from tests.fakes.pc import gt_1030
from tests.fakes.scripted_builds import FakeShelf, ScriptedBuildInstaller
from tests.patience import limit


class Pc:
    """The window, its installed builds and its installer."""

    def __init__(self, window, store, installer):
        self.window, self.store, self.installer = window, store, installer
        self.studio = window.findChild(Studio)

    @property
    def builds(self):
        return self.studio.builds

    def begin(self, *presses):
        """Press what begins the installation, and wait for the installer."""
        for name in presses or ("setup.begin",):
            click(self.window, name)
        wait_until(lambda: self.installer.calls)

    def fail(self, trouble):
        self.installer.fail(trouble)
        wait_until(lambda: not self.builds.is_at_work)


@pytest.fixture
def pc_with(pages_on_sight, pc_with_all_pages):
    return pc_with_all_pages


@pytest.fixture
def pc_with_all_pages(make_window, monkeypatch):
    limit(monkeypatch, handover_ms=1)

    def make(store=None, inventory=None, quick_factory=None):
        store = store or FakeShelf()
        installer = ScriptedBuildInstaller(store)
        monkeypatch.setattr("gpu_studio.app.BuildInstallChild", lambda *_: installer)
        window = make_window(inventory or gt_1030(), builds=store, quick_factory=quick_factory)
        window.show()
        pc = Pc(window, store, installer)
        wait_until(lambda: pc.studio.sensors.inventory is not None)
        return pc

    return make
