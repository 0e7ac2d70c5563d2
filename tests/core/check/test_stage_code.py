"""The lines of PyTorch for each stage."""

from __future__ import annotations

import pytest

from gpu_studio.core.check.stage_code import stage_code
from gpu_studio.core.messages.check_messages import STAGE_NAMES, StageName


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_has_a_few_lines_for_its_device(name: StageName) -> None:
    code = stage_code(name, "cuda:1")
    assert 'torch.device("cuda:1")' in code
    assert "{" not in code.replace("{wrong}", "").replace("{2 *", "")
    assert 6 <= len([line for line in code.splitlines() if line]) <= 15
    assert max(map(len, code.splitlines())) < 100


def test_the_first_line_names_the_stage_for_the_device() -> None:
    assert stage_code("link", "cuda:1").startswith("# PCIe link\n")
    assert stage_code("link", "cpu").startswith("# Copies in RAM\n")
