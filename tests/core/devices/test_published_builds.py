import pytest

from gpu_studio.core.devices.published_builds import advice_for


@pytest.mark.parametrize(
    ("capability", "advice"),
    [
        ((6, 1), "Install the cu126 build: the Devices tab has the command."),
        ((12, 0), "Install the cu130 build: the Devices tab has the command."),
        ((3, 7), "The last PyTorch with code for it is 2."),
        ((2, 0), "No PyTorch since 2.0 has code for it: use the CPU."),
    ],
)
def test_a_card_without_code_gets_the_build_that_has_it(capability: tuple[int, int], advice: str):
    assert advice_for(capability, system="Linux", machine="x86_64").startswith(advice)
