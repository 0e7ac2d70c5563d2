"""The terminal without PyTorch: its engine is a real child, on Mesa's software without a card."""

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.engine import client
from gpu_studio.engine.quick.adapters import find_adapters


@pytest.fixture
def adapters():
    try:
        found = find_adapters()
    except StudioError:
        found = []
    if not any(one.facts.address == "vulkan:0" for one in found):
        pytest.skip("needs an adapter of Vulkan, such as that of mesa-vulkan-drivers")
    return found


@pytest.fixture(autouse=True)
def at_home(engines_of):
    """The log and the history are the test's own; PyTorch's engine is a script."""
    return engines_of({})


def test_cpu_and_an_adapter_are_compared(typed, adapters):
    status, output, errors = typed(
        "bench", "copy", "--size", "1", "--device", "vulkan:0,cpu", "--time", "0.05"
    )
    assert status in (0, 3), errors
    assert "NumPy computed this on the CPU." in output
    assert "llvmpipe is software" in output
    assert "by Vulkan against the CPU (copy" in output


def test_the_devices_have_the_adapters_and_the_command_that_measures_them(typed, adapters, at_home):
    _, output, _ = typed("devices")
    assert "vulkan:0    llvmpipe (software) by Vulkan" in output
    assert "bench matmul --device cpu,vulkan:0" in output
    software = output[output.index("Without PyTorch") :].splitlines()[1:3]
    assert not any("GPU" in line for line in software)


def test_an_adapter_beside_a_device_of_pytorch_is_refused(typed):
    status, _, errors = typed("bench", "matmul", "--device", "cuda:0,vulkan:0")
    assert status == 2
    assert "vulkan:0 is measured without PyTorch" in errors


def test_a_driver_that_crashes_is_a_sentence_and_the_cpu_is_measured(typed, monkeypatch, tmp_path):
    real = client.ChildProcess
    # Whoever asks the drivers dies; the engine of the CPU alone does not ask them.
    monkeypatch.setenv("CHILD_PLAN", "abort")

    def started(module, arguments=(), **other):
        if client.CPU_ALONE in arguments:
            return real(module, arguments, **other)
        return real("tests.engine.scripted_child", **other)

    monkeypatch.setattr(client, "ChildProcess", started)
    status, output, errors = typed(
        "bench", "copy", "--size", "1", "--without-pytorch", "--time", "0.05"
    )
    assert "A graphics driver crashed (signal 6)" in errors
    assert status in (0, 3)
    assert "cpu" in output
