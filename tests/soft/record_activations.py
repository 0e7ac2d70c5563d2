"""Records what the sample network asks of PyTorch's allocator, for the simulated cards.

    python -m tests.soft.record_activations

It runs the network on a soft card with the allocator's own history switched on, at two batches,
and takes every size for a fixed part and one a sample. Then it records further batches and
compares: a size that is not linear in the batch would be an error here. What kernels compute plays
no part in it.
"""

import json
from dataclasses import replace
from pathlib import Path

from tests.soft.child import Child
from tests.softcards.cards import soft_cards
from tests.softcards.catalogue import MODERN_1996_MIB

TARGET = Path(__file__).parents[2] / "resources" / "activation_calls.json"
FIRST, SECOND = 64, 4096
OTHERS = (1, 3, 100, 65536)

CODE = """
from gpu_studio.engine.memory.cuda_memory import _Network
from gpu_studio.core.memory.memory_bench import LAYERS, WIDTH

def traced():
    return torch._C._cuda_memorySnapshot(None)["device_traces"][0]

def record(steps):
    torch.cuda.memory._record_memory_history(enabled="all", context=None, clear_history=True)
    parts, seen = [], 0
    for name in steps():
        trace = traced()
        parts.append([name, trace[seen:]])
        seen = len(trace)
    parts.append(["end", traced()[seen:]])
    torch.cuda.memory._record_memory_history(enabled=None)
    told = ("alloc", "free_completed")
    return [[name, [[c["action"], c["addr"], c["size"]] for c in calls if c["action"] in told]]
            for name, calls in parts]

def set_up():
    global network
    network = _Network(torch.device("cuda", 0))
    yield "set-up"

def set_up_and_drop():
    global network
    yield from set_up()
    network = None
    yield "drop"
"""


def survivors(parts: list[list]) -> set[int]:
    """Return the numbers of the allocations that were never freed."""
    living, number = {}, 0
    for _, calls in parts:
        for action, address, _ in calls:
            if action == "alloc":
                living[address] = number
                number += 1
            else:
                living.pop(address, None)
    return set(living.values())


def set_up_of(child: Child) -> list[dict]:
    """Return the setup, with the memory that outlives the network, and check it."""
    code = "record(set_up_and_drop)"
    first = child.run(code)
    stays = survivors(first)
    result = parts_of([*first[:1], ["end", []]])
    number, calls = 0, []
    for size, frees in result[0]["calls"]:
        calls.append([size, 0, frees, frees < 0 and number in stays])
        number += frees < 0
    again = child.run(code)
    assert survivors(again) == set()
    sizes = [size for action, _, size in again[0][1] if action == "alloc"]
    assert sizes == [size for size, _, frees, stay in calls if frees < 0 and not stay]
    child.run("list(set_up())")
    return [{"name": "set-up", "calls": calls}]


def parts_of(parts: list[list]) -> list[dict]:
    """Give every free the number of its allocation, and leave out frees of what was there before.

    The last part, what is freed when a pass is over, is left out: the replay drops all of it.
    """
    living: dict[int, int] = {}
    number = 0
    collected = []
    for name, calls in parts[:-1]:
        turned = []
        for action, address, size in calls:
            if action == "alloc":
                living[address] = number
                number += 1
                turned.append([size, -1])
            else:
                turned.append([0, living.pop(address)])
        collected.append({"name": name, "calls": turned})
    return collected


def fitted(first: list[dict], second: list[dict]) -> list[dict]:
    """Return the parts with a fixed size and one a sample."""
    collected = []
    for one, other in zip(first, second, strict=True):
        assert one["name"] == other["name"]
        calls = []
        for (size, frees), (size_2, frees_2) in zip(one["calls"], other["calls"], strict=True):
            assert frees == frees_2
            sample, rest = divmod(size_2 - size, SECOND - FIRST)
            assert rest == 0
            calls.append([size - sample * FIRST, sample, frees])
        collected.append({"name": one["name"], "calls": calls})
    return collected


def at_batch(parts: list[dict], batch: int) -> list[dict]:
    return [
        {
            "name": part["name"],
            "calls": [
                [0 if frees >= 0 else fixed + sample * batch, frees]
                for fixed, sample, frees in part["calls"]
            ],
        }
        for part in parts
    ]


def main() -> None:
    card = replace(MODERN_1996_MIB, mib=16000, nvml_mib=16384)
    with soft_cards([card]) as pc, Child(pc) as child:
        child.run(CODE)
        whole = {"set_up": set_up_of(child)}
        for name in ("train", "infer"):

            def recorded(batch: int, name: str = name) -> list[dict]:
                return parts_of(child.run(f"record(lambda: network.{name}({batch}))"))

            whole[name] = fitted(recorded(FIRST), recorded(SECOND))
            for batch in OTHERS:
                assert at_batch(whole[name], batch) == recorded(batch), (name, batch)
        version, layers, width = child.run("[torch.__version__, LAYERS, WIDTH]")
    source = (
        f"Recorded from the caching allocator of PyTorch {version} on a card without silicon (a "
        "stand-in of the CUDA runtime, compute capability 7.5) by tests/soft/record_activations.py;"
        f" checked at batches {', '.join(map(str, OTHERS))}."
    )
    lines = [
        f'"source": {json.dumps(source)}',
        f'"torch_version": {json.dumps(version)}',
        f'"layers": {layers}, "width": {width}',
    ]
    for name, parts in whole.items():
        rows = ",\n  ".join(json.dumps(part) for part in parts)
        lines.append(f'"{name}": [\n  {rows}\n ]')
    TARGET.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
