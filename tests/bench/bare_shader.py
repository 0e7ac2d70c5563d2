"""What our loop costs: a shader by the quick engine, and by the fewest calls of wgpu, in turns.

Both use one adapter, one compiled shader and the same buffers. The engine's batch also asks the
adapter for its clock; its sample is that clock's time.
"""

import sys
import time

from gpu_studio.core.units import format_duration
from gpu_studio.engine.benchmark.timing import choose_calls
from gpu_studio.engine.quick.adapters import find_adapters
from gpu_studio.engine.quick.compute import BoundShader, Compute
from gpu_studio.engine.quick.work import find_quick_work
from tests.bench.ratios import describe_machine, paired_ratio

_CASES = {"launch": 1, "copy": 1, "elementwise": 256, "matmul": 256}
_PAIRS = 60
_LEAST = 0.95


def bare_s(compute: Compute, shader: BoundShader, calls: int, is_each_submitted: bool) -> float:
    """Return the seconds of a batch, with nothing but what wgpu needs for it."""
    device = compute.device
    submits, dispatches = (calls, 1) if is_each_submitted else (1, calls)
    begin_s = time.perf_counter()
    for _ in range(submits):
        encoder = device.create_command_encoder()
        asked = encoder.begin_compute_pass()
        shader.begin(asked)
        for _ in range(dispatches):
            asked.dispatch_workgroups(*shader.groups)
        asked.end()
        device.queue.submit([encoder.finish()])
    device.queue.on_submitted_work_done_sync()
    return time.perf_counter() - begin_s


def main(address: str = "vulkan:0") -> None:
    """Print both ratios for each workload."""
    (found,) = (one for one in find_adapters() if one.facts.address == address)
    print(f"{found.facts.title}; {describe_machine()}")
    with Compute(found) as compute:
        for name, size in _CASES.items():
            work = find_quick_work(name)
            operands = work.operands(size, "float32")
            buffers = [compute.buffer(one) for one in operands]
            code, groups = work.code(size, "float32"), work.groups(size, "float32")
            shader, each = BoundShader(compute, code, buffers, groups), work.is_each_submitted

            class Ours:
                def time(self, call, calls, shader=shader, each=each):
                    return compute.batch([shader], calls, is_each_submitted=each)

            Ours().time(None, 1)
            calls = choose_calls(Ours(), lambda: None, 1e-6, lambda: False)
            bare, own, wall = [], [], []
            for pair in range(_PAIRS):
                for is_ours in (pair % 2 == 0, pair % 2 == 1):
                    if is_ours:
                        own_s, wall_s = Ours().time(None, calls)
                        own, wall = [*own, own_s], [*wall, wall_s]
                    else:
                        bare.append(bare_s(compute, shader, calls, each))
            shader.close()
            by_wall, by_clock = paired_ratio(bare, wall), paired_ratio(bare, own)
            print(f"{name} {size}: {calls} calls, {format_duration(min(bare))} bare")
            print(f"  bare over ours, by the wall clock: {by_wall}")
            print(f"  bare over the sample that counts: {by_clock}")
            print(f"  at least {_LEAST:g}: {'reached' if by_clock.median >= _LEAST else 'MISSED'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
