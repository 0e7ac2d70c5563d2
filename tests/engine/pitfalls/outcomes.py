"""What came of a pitfall on the CPU."""

import contextlib
import io

from gpu_studio.core.messages.pitfall_messages import PitfallFinished, PitfallOutcome, RunPitfall
from gpu_studio.engine.pitfalls.pitfall import Bench, ScriptEnd
from tests.engine.answers import ask


def finish(name: str, part: str = "both") -> PitfallFinished:
    events = ask(RunPitfall(name=name, device="cpu", part=part))
    assert isinstance(events[-1], PitfallFinished), events[-1]
    return events[-1]


def both(name: str) -> tuple[PitfallOutcome, PitfallOutcome, dict[str, float]]:
    finished = finish(name)
    assert finished.broken is not None
    assert finished.fixed is not None
    figures = {one.name: one.value for one in (*finished.broken.figures, *finished.fixed.figures)}
    return finished.broken, finished.fixed, figures


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def run_here(bench: Bench, script: str) -> ScriptEnd:
    """Run a script as `Bench.run_script` does, but in this process: PyTorch is here already."""
    output, error = io.StringIO(), ""
    card = bench.device.type
    with contextlib.redirect_stdout(output):
        try:
            exec(script.replace('"cuda"', f'"{card}"'), {"__name__": "__main__"})
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    return ScriptEnd(output.getvalue().strip(), error)
