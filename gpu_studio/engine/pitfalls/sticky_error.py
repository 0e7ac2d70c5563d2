"""After one wrong index, the card refuses everything until the process ends."""

from __future__ import annotations

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import STICKY_ERROR
from gpu_studio.engine.pitfalls.pitfall import Bench, count

_ERROR = "error: "
_CPU_REMARK = (
    "This PC has no card that PyTorch can use. The CPU stands in for it. Unlike a card, it names "
    "the cause in the right line, and later lines still work."
)


class StickyError:
    """See `pitfall.Pitfall`. It runs in a new process: a card's error would end the engine."""

    description = STICKY_ERROR

    def snippet(self, part: str, device: str) -> str:
        return _SCRIPT.format(device=device, look="" if part == "broken" else _LOOK)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        errors = [
            line.removeprefix(_ERROR) for line in end.output.splitlines() if line.startswith(_ERROR)
        ]
        if end.error and not errors:
            errors = [end.error]
        if not end.output and not errors:
            raise StudioError(FailureKind.INTERNAL, "The new process printed nothing.")
        if part == "fixed":
            sentence = "The script found the wrong index before it used it: nothing failed."
            if errors:
                sentence = "It still failed."
        else:
            sentence = (
                "Nothing failed here.",
                "One line failed. The next one worked.",
                "One line failed, and so did the next one, which has nothing to do with it.",
            )[min(len(errors), 2)]
        return PitfallOutcome(
            part=part,
            sentence=sentence,
            error="\n".join(errors),
            figures=(count("errors", "Lines that failed", len(errors), aim="less"),),
            stand_in="" if bench.has_card else _CPU_REMARK,
            output=end.output,
        )


_SCRIPT = """\
import torch

device = "{device}"
table = torch.nn.Embedding(10, 4).to(device)
index = torch.tensor([3, 12])  # there is no row 12
{look}

def look_up():
    return table(index.to(device)).sum().item()


def something_else():
    return torch.ones(3, device=device).sum().item()


for work in (look_up, something_else):
    try:
        print(work.__name__, work())
    except Exception as error:
        print("error:", work.__name__, type(error).__name__, str(error).splitlines()[0])
"""
_LOOK = """\
if int(index.max()) >= table.num_embeddings:  # on the CPU, before the index moves
    print("there is no row", int(index.max()), "in a table of", table.num_embeddings)
    index = index[index < table.num_embeddings]
"""
