"""``gpu-studio bench`` over a PC with a card, whose engine answers from a script."""

from __future__ import annotations

import pytest

from gpu_studio.cli import answers
from gpu_studio.cli import main as cli
from gpu_studio.core.messages.engine_messages import DescribeEngine
from tests.cli.bench.terminal import WORKLOADS
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.scripted_engine import Engines


@pytest.fixture
def engines(monkeypatch, tmp_path):
    """A PC with a card; the commands' engine, log and history are the test's own."""
    engines = Engines({DescribeEngine: [described_with_cuda(workloads=WORKLOADS)]})
    monkeypatch.setattr(
        answers, "ProcessEngine", lambda environment, log_path: engines(environment)
    )
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(cli, "_start_log", lambda: tmp_path / "log")
    return engines


@pytest.fixture
def type_in(engines, capsys):
    def type_in(*arguments):
        status = cli.main(["bench", *arguments])
        output, errors = capsys.readouterr()
        return status, output, errors

    return type_in
