"""One wrong index, and the card refuses everything until the process ends."""

from __future__ import annotations

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallDescription, PitfallOutcome
from gpu_studio.engine.pitfalls.pitfall import Bench, count

_ERROR = "error: "
_CPU_REMARK = (
    "This PC has no card that PyTorch can use: the CPU stands in for it, and shows what a card "
    "does not: the cause, in the right line, and no harm to what follows."
)


class StickyError:
    """See `pitfall.Pitfall`. A fresh process: a card's error would end the engine, too."""

    description = PitfallDescription(
        name="sticky_error",
        title="An error that stays",
        sentence="An index outside of its table: on a card, all that follows fails as well.",
        why=(
            "A kernel that fails on the card takes the whole CUDA context of its process with it: "
            "every later call raises the same error, even one that has nothing to do with it. And "
            "as calls are only queued, the error may come at a later line than the mistake. "
            "Nothing in the process mends it; it has to end."
        ),
        remedy="Run the same lines on the CPU once: there the error names its cause and its line.",
        source="Known to all who have met “device-side assert triggered”",
    )

    def snippet(self, part: str, device: str) -> str:
        """Return the script that is run."""
        return (_BROKEN if part == "broken" else _FIXED).format(device=device)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        """Run the script in a fresh process and count what failed in it."""
        end = bench.run_script(self.snippet(part, bench.address))
        errors = [
            line.removeprefix(_ERROR) for line in end.output.splitlines() if line.startswith(_ERROR)
        ]
        if end.error and not errors:
            errors = [end.error]
        if not end.output and not errors:
            raise StudioError(FailureKind.INTERNAL, "The fresh process printed nothing.")
        if part == "fixed":
            sentence = "The wrong index was found before it was used: nothing failed."
            if errors:
                sentence = "It failed all the same."
        else:
            sentence = (
                "Nothing failed here.",
                "One line failed, the next one worked.",
                "One line failed, and the next one, which has nothing to do with it, too.",
            )[min(len(errors), 2)]
        return PitfallOutcome(
            part=part,
            sentence=sentence,
            error="\n".join(errors),
            figures=(count("errors", "Lines that failed", len(errors), aim="less"),),
            stand_in="" if bench.has_card else _CPU_REMARK,
            output=end.output,
        )


_BROKEN = """\
import torch

device = "{device}"
table = torch.nn.Embedding(10, 4).to(device)
index = torch.tensor([3, 12], device=device)  # there is no row 12


def look_up():
    return table(index).sum().item()


def something_else():
    return torch.ones(3, device=device).sum().item()


for work in (look_up, something_else):
    try:
        print(work.__name__, work())
    except Exception as error:
        print("error:", work.__name__, type(error).__name__, str(error).splitlines()[0])
"""
_FIXED = """\
import torch

device = "{device}"
table = torch.nn.Embedding(10, 4).to(device)
index = torch.tensor([3, 12])  # looked at on the CPU, where it was made

if int(index.max()) >= table.num_embeddings:
    print("there is no row", int(index.max()), "in a table of", table.num_embeddings)
    index = index[index < table.num_embeddings]
print(table(index.to(device)).sum().item())
print(torch.ones(3, device=device).sum().item())
"""
