"""Which snippets can be pasted, and what is set before PyTorch is imported."""

from __future__ import annotations

import pytest

from gpu_studio.core.switcher.whole_snippet import (
    complete,
    runs_as_it_stands,
    snippet_for_device,
)

ORDER = 'os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"'


@pytest.mark.parametrize(
    ("address", "device_count", "visible_devices", "begins"),
    [
        ("cpu", 2, None, "import torch\n\ndevice"),
        ("cuda:0", 0, None, "import torch\n\ndevice"),
        ("cuda:0", 1, None, "import torch\n\ndevice"),
        ("cuda:0", 0, "", "import torch\n\ndevice"),
        ("cuda:1", 2, None, f"import os\n\n{ORDER}\n\nimport torch\n\ndevice"),
        (
            "cuda:0", 1, "GPU-1",
            f"import os\n\n{ORDER}\nos.environ[\"CUDA_VISIBLE_DEVICES\"] = 'GPU-1'\n\nimport torch",
        ),
    ],
)  # fmt: skip
def test_a_snippet_sees_the_cards_as_the_engine_does(
    address: str, device_count: int, visible_devices: str | None, begins: str
):
    whole = complete(
        snippet_for_device(address), device_count=device_count, visible_devices=visible_devices
    )
    assert whole.startswith(begins)
    assert f'torch.device("{address}")' in whole


def test_what_has_to_be_a_file_of_several_processes_cannot_be_pasted():
    assert runs_as_it_stands("import torch\n# Save this as a file")
    assert runs_as_it_stands("")
    assert not runs_as_it_stands("# Save this as share.py, then: torchrun share.py\nimport os\n")
