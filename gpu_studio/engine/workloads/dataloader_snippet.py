"""The PyTorch script that feeds a device as the workload `dataloader` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import wait_line
from gpu_studio.engine.workloads.feeding import DATA_SETS, LEARNING_RATE

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case


def snippet_for(case: Case) -> str:
    """Return a runnable script; with workers, it must be saved as a file."""
    data_set, way = DATA_SETS[case.options["data_set"]], case.options["way"]
    workers = int(case.options["num_workers"])
    feed = _LOADER.format(
        pin_memory=way.startswith("pinned") and case.is_on_card,
        workers=f", num_workers={workers}, persistent_workers=True" if workers else "",
    )
    return _SNIPPET.format(
        size=case.size,
        device=case.address,
        samples=data_set.samples,
        inputs=data_set.inputs,
        outputs=data_set.outputs,
        targets="torch.randint(0, 2, ({0},))" if data_set.is_labelled else "torch.randn({0}, {1})",
        loss=_LABELLED if data_set.is_labelled else _NUMBERS,
        rate=LEARNING_RATE,
        feed=_WHOLE if way == "whole_set" else feed,
        non_blocking=", non_blocking=True" if way == "pinned_non_blocking" else "",
        wait=wait_line(case.address).replace("torch", "    torch"),
    ).format(data_set.samples, data_set.outputs)


_LABELLED = "binary_cross_entropy_with_logits(model(inputs).squeeze(1), targets.float())"
_NUMBERS = "mse_loss(model(inputs), targets)"
_WHOLE = """\
    dataset = TensorDataset(x_data.to(device), y_data.to(device))
    loader = [dataset[i : i + size] for i in range(0, len(dataset), size)]
"""
_LOADER = """\
    dataset = TensorDataset(x_data, y_data)
    loader = DataLoader(dataset, batch_size=size, pin_memory={pin_memory}{workers})
"""
_SNIPPET = """\
import time
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    size, device = {size}, "{device}"
    x_data = torch.randn({samples}, {inputs})
    y_data = {targets}
{feed}    model = torch.nn.Linear({inputs}, {outputs}).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr={rate})

    def epoch():
        for inputs, targets in loader:
            inputs = inputs.to(device{non_blocking})
            targets = targets.to(device{non_blocking})
            optimizer.zero_grad()
            loss = torch.nn.functional.{loss}
            loss.backward()
            optimizer.step()

    epoch()  # the first one is slower
{wait}    start = time.perf_counter()
    for _ in range(3):
        epoch()
{wait}    print(f"{{{{(time.perf_counter() - start) / 3:.6f}}}} s a call")


if __name__ == "__main__":  # worker processes import this file
    main()
"""
