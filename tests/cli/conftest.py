"""A PC without a card, on which commands run in processes of their own or in this one."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from gpu_studio.cli import main as cli
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.engine import client
from gpu_studio.engine.client import ProcessEngine
from tests.fakes.scripted_engine import Engines
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


@pytest.fixture
def engines_of(monkeypatch, tmp_path):
    """Return engines that answer from scripts; the commands' history is the test's own."""

    def engines_of(scripts):
        engines = Engines(scripts)
        monkeypatch.setattr(
            "gpu_studio.cli.pc.ProcessEngine",
            lambda environment, log_path: engines(environment),
        )
        monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path)
        return engines

    return engines_of


@pytest.fixture
def typed(capsys, monkeypatch, tmp_path):
    """Return what types a command, with a log of its own: its exit status, output and errors."""
    monkeypatch.setattr(cli, "_start_log", lambda: tmp_path / "log")

    def typed(*arguments):
        status = cli.main([*arguments])
        return status, *capsys.readouterr()

    return typed


@pytest.fixture(scope="package")
def started_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessEngine]:
    """A real engine for many commands, with short runs: its start takes most of their time."""
    log_path = tmp_path_factory.mktemp("log") / "engine.log"
    engine = ProcessEngine(EngineEnvironment(visible_devices=""), log_path=log_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_MODULE", "tests.engine.quick_engine")
        assert any(isinstance(one, EngineDescribed) for one in engine.run(DescribeEngine()))
    yield engine
    engine.close()


@pytest.fixture
def shared_engine(started_engine: ProcessEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of this process ask the engine that has started already."""
    monkeypatch.setattr(started_engine, "close", lambda: None)
    monkeypatch.setattr(
        "gpu_studio.cli.pc.ProcessEngine", lambda environment, log_path: started_engine
    )


@pytest.fixture
def type_here(shared_engine, typed, monkeypatch, tmp_path):
    """Type a command in this process; its engine has started already."""
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path)
    return lambda *arguments: subprocess.CompletedProcess(arguments, *typed(*arguments))
