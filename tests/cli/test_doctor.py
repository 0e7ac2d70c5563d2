"""``gpu-studio doctor`` with facts of our own; tests/soft/test_doctor.py runs it whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.cli import devices
from gpu_studio.cli.main import main
from gpu_studio.cli.pc import HeldEngineError
from gpu_studio.core.devices.access import PcProbed
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.notice import Tone
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030
from tests.own_home import own_home

ROOT = Path(__file__).resolve().parent.parent.parent


def test_on_a_pc_without_a_card_it_says_so_and_fails(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "doctor", "--json"],
        capture_output=True, encoding="utf-8", timeout=240, cwd=ROOT, check=False,
        env=os.environ | own_home(tmp_path),
    )  # fmt: skip
    findings = json.loads(done.stdout)["findings"]
    assert done.stderr == ""
    assert all(
        set(finding) == {"code", "device_uuid", "sentence", "evidence", "action"}
        for finding in findings
    )
    codes = [finding["code"] for finding in findings]
    assert done.returncode == (0 if "ok" in codes else 1)
    assert codes  # something is always found


def test_findings_are_reported_with_evidence_and_the_next_step():
    problem = Finding(code="no_driver", sentence="It is not there.", detail="NVML error 12",
                      tone=Tone.FAILURE, command="sudo reboot")  # fmt: skip
    fine = Finding(code="ok", sentence="PyTorch can use it.", tone=Tone.GOOD)
    first, evidence, action, last = devices.verdict_lines((problem, fine))
    assert first.split("]")[0] == "[problem"
    assert first.endswith(problem.sentence)
    assert all(fact in evidence for fact in (problem.code, problem.detail))
    assert action.endswith(problem.command)
    assert last.split("]")[0] == "[ok"
    assert last.endswith(fine.sentence)


class Watch:
    def __init__(self, inventory):
        self._inventory = inventory

    def __call__(self, _log_path):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def inventory(self):
        return self._inventory

    def readings(self):
        return []


@pytest.fixture
def examine(monkeypatch, capsys):
    def examine(inventory, engine, *, with_kernel=True):
        probes = []

        def probe(*_, **__):
            probes.append(1)
            return PcProbed()

        monkeypatch.setattr(devices, "SensorWatch", Watch(inventory))
        monkeypatch.setattr(devices, "_ask_engine", lambda *_: engine)
        monkeypatch.setattr(devices, "probe_pc", probe)
        status = main(["doctor", *([] if with_kernel else ["--no-kernel"])])
        return status, len(probes), capsys.readouterr().out

    return examine


def test_a_kernel_is_tried_only_where_it_can_report_something(examine):
    card, cpu = gt_1030(), cpu_only()
    assert examine(card, described_with_cuda())[1] == 1
    assert examine(card, described_with_cuda(), with_kernel=False)[1] == 0
    assert examine(card, described())[1] == 0
    assert examine(cpu, described_with_cuda())[1] == 0
    assert examine(card, None)[1] == 0


def test_a_driver_that_holds_pytorch_is_a_finding(monkeypatch, capsys):
    def hold(*_):
        raise HeldEngineError(FailureKind.ENGINE_ENDED, "It did not answer within 90 s.")

    monkeypatch.setattr(devices, "SensorWatch", Watch(gt_1030()))
    monkeypatch.setattr(devices, "describe_beside", hold)
    status = main(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [finding["code"] for finding in findings] == ["driver_not_answering"]
    assert status == 1
