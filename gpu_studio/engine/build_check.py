"""Import PyTorch, compute on the CPU and on each card, and say what ran (this file is a module).

It writes one line of JSON. If the import fails, the error on standard error says why.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gpu_studio.core.packages_folder import VARIABLE, use_packages
from gpu_studio.process.child_streams import take_over_stdout

_SIDE = 64


def main() -> int:
    """Test this process's PyTorch; return the exit code."""
    out = take_over_stdout()
    use_packages()
    import torch

    from gpu_studio.engine.device import accelerator, accelerator_state, torch_cards
    from gpu_studio.engine.devices.probe import probe_card

    folder = os.environ.get(VARIABLE)
    if folder and not Path(torch.__file__).resolve().is_relative_to(Path(folder).resolve()):
        raise RuntimeError(f"PyTorch was imported from {torch.__file__} instead of {folder}")
    numbers = torch.arange(_SIDE * _SIDE, dtype=torch.float64).reshape(_SIDE, _SIDE)
    product = numbers @ torch.eye(_SIDE, dtype=torch.float64)
    if not torch.equal(product, numbers):
        raise RuntimeError("the product on the CPU is wrong")
    sentence = "A test computation on the CPU was correct."
    state = accelerator_state()
    probed = [probe_card(card) for card in torch_cards()] if state.is_available else []
    ran = [one for one in probed if one.outcome == "ran"]
    if ran:
        names = ", ".join(dict.fromkeys(one.card.name for one in ran))
        sentence = f"A kernel ran on {names}."
    elif accelerator().build is not None:
        why = "; ".join(one.message or "" for one in probed) or state.reason or "no card"
        sentence = f"It runs on the CPU, but on no card: {why}"
    answer = {
        "torch_version": torch.__version__,
        "runs_on_card": bool(ran),
        "sentence": sentence,
    }
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
