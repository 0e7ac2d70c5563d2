import pytest

from gpu_studio.core.devices import findings
from gpu_studio.core.program_form import Program, ProgramForm


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next steps be those of an activated environment of the user's with PyTorch."""
    program = Program(ProgramForm.OWN_ENVIRONMENT, "gpu-studio", has_own_torch=True)
    monkeypatch.setattr(findings, "own_program", lambda: program)
