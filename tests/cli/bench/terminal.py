"""What ``gpu-studio bench`` finds in these tests: workloads, and what was asked of the engine."""

import msgspec

from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadOption
from tests.fakes.descriptions import elementwise, matmul

CROSSING = 471.4  # of call_time_s: 0.9e-9 × size² = 200 µs


def conv2d():
    return msgspec.structs.replace(
        matmul(), name="conv2d", sizes=(1, 8, 64), size_text="{size} pictures",
        size_title="Pictures in a batch", dtypes=("float16", "float64"),
        options=(
            WorkloadOption(
                name="cudnn", title="cuDNN", sentence="How.", values=("default", "benchmark")
            ),
        ),
        refuses={"cold": "conv2d is never cold.", "naive": "conv2d is never naive."},
    )  # fmt: skip


def custom_kernel():
    return msgspec.structs.replace(
        elementwise(), name="custom_kernel", device_kinds=("cuda",), skipped="It needs a card.",
    )  # fmt: skip


def card_only():
    return msgspec.structs.replace(elementwise(), name="card_only", device_kinds=("cuda",))


WORKLOADS = (elementwise(), matmul(), conv2d(), custom_kernel(), card_only())


def asked(engines):
    return [request for request in engines.requests if isinstance(request, RunWorkload)]
