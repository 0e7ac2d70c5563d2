import pytest

from gpu_studio.engine.devices import probe_client
from gpu_studio.engine.devices.probe_client import probe_pc
from gpu_studio.process.child_process import ChildProcess
from tests.patience import PATIENCE_S


def test_the_child_of_a_probe_that_is_given_up_is_killed_before_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(probe_client, "_MODULE", "tests.engine.child_with_family")
    exit_codes = []
    end = ChildProcess.end

    def noted_end(child: ChildProcess, timeout_s: float = PATIENCE_S) -> int | None:
        exit_codes.append(end(child, PATIENCE_S))
        return exit_codes[-1]

    monkeypatch.setattr(ChildProcess, "end", noted_end)
    assert probe_pc(is_over=lambda: True).error
    assert exit_codes[-1] not in (0, None)  # asked, it ends with 0
