"""A tensor on the CPU meets a model on the card."""

from __future__ import annotations

import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import MIXED_DEVICES
from gpu_studio.engine.pitfalls.pitfall import META_STANDS_IN, Bench, error_of, seconds

_ROWS, _COLUMNS = 32, 1000
_REMARK = "  # on the CPU: the next line raises"


class MixedDevices:
    """See `pitfall.Pitfall`."""

    description = MIXED_DEVICES

    def snippet(self, part: str, device: str) -> str:
        """Return the script; on a PC without a card the second device is the meta device."""
        there = device if not is_cpu(device) else "meta"
        moved = f'x = torch.randn({_ROWS}, {_COLUMNS}).to("{there}")'
        return _SNIPPET.format(
            device=there,
            made=moved if part == "fixed" else f"x = torch.randn({_ROWS}, {_COLUMNS}){_REMARK}",
            columns=_COLUMNS,
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        """Give the model an input on the wrong or on the right device."""
        there = bench.device if bench.has_card else torch.device("meta")
        stand_in = "" if bench.has_card else META_STANDS_IN
        model = torch.nn.Linear(_COLUMNS, 500, device=there)
        x = torch.randn(_ROWS, _COLUMNS)
        if part == "broken":
            error = error_of(lambda: model(x))
            sentence = "PyTorch refuses and names both devices." if error else "It worked."
            return PitfallOutcome(part=part, sentence=sentence, error=error, stand_in=stand_in)
        y = model(x.to(there))
        if not bench.has_card:
            sentence = f"The output has shape {tuple(y.shape)} and is on {y.device}."
            return PitfallOutcome(part=part, sentence=sentence, stand_in=stand_in)
        move_s = bench.median_s(lambda: x.to(there), there)
        return PitfallOutcome(
            part=part,
            sentence=f"The output is on {y.device}. The missing copy takes this long.",
            figures=(seconds("copy_s", "Copying the input", move_s),),
        )


_SNIPPET = """\
import torch

model = torch.nn.Linear({columns}, 500).to("{device}")
{made}
y = model(x)
print(tuple(y.shape), y.device)
"""
