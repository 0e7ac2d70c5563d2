"""The workloads of the benchmark, as window, terminal and engine name them.

Each is implemented by a file of its own in `engine/workloads`; these descriptions need no PyTorch.
"""

from __future__ import annotations

from gpu_studio.core.benchmark.ceilings import CALLS_PER_S
from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from gpu_studio.core.tensors import DTYPES

ELEMENTWISE = WorkloadDescription(
    name="elementwise",
    title="Element by element",
    sentence=(
        "Ten lines of additions and multiplications on whole matrices. There is little to "
        "compute, so the memory's speed decides."
    ),
    dtypes=DTYPES,
    sizes=(64, 128, 256, 512, 1024, 2048, 4096),
    throughput_unit="B/s",
    source="How can I run any code on my GPU, instead on CPU? by Radosław Śmigielski",
    options=(
        WorkloadOption(
            name="form",
            title="Style",
            sentence=(
                "All ten statements, or only their final result, with as few passes over "
                "memory as PyTorch's operations allow."
            ),
            values=("statements", "fused"),
        ),
    ),
)

MATMUL = WorkloadDescription(
    name="matmul",
    title="Matrix product",
    sentence=(
        "One matrix times another. Each number is used many times, so the speed of the "
        "arithmetic decides. Neural networks do mostly this."
    ),
    dtypes=DTYPES,
    sizes=(64, 128, 256, 512, 1024, 2048, 4096),
    throughput_unit="FLOP/s",
)

TINY_LINEAR = WorkloadDescription(
    name="tiny_linear",
    title="Tiny model",
    sentence=(
        "A layer that turns ten numbers into ten. Launching such a small operation takes "
        "longer than the operation, so a GPU is slower until the batch is very large."
    ),
    dtypes=DTYPES,
    sizes=(1, 8, 64, 512, 4096, 32768),
    throughput_unit="FLOP/s",
    source="When to move from CPU to GPU; Chapter 17: Using torch with CUDA",
    options=(
        WorkloadOption(
            name="outputs",
            title="Outputs",
            sentence="The number of outputs for ten inputs.",
            values=("10", "1"),
        ),
    ),
    size_title="Rows per batch",
    size_text="batch of {size}",
)

LINEAR = WorkloadDescription(
    name="linear",
    title="One layer",
    sentence=(
        "A layer that turns 1000 numbers into 500, as in the middle of many models. With a few "
        "rows, reading its weights takes the time; with a thousand rows, the arithmetic does."
    ),
    dtypes=DTYPES,
    sizes=(1, 10, 100, 1000, 10000),
    throughput_unit="FLOP/s",
    source="How can I switch from CPU to GPU PyTorch? (2025-01-30), Example 1",
    size_title="Rows per batch",
    size_text="batch of {size}",
)

TRAIN_STEP = WorkloadDescription(
    name="train_step",
    title="Training step",
    sentence=(
        "A small network learns from one batch: forward, backward, optimizer. With automatic "
        "mixed precision (AMP), it multiplies in 16 bits, which newer cards do several times "
        "faster."
    ),
    dtypes=("float32",),
    sizes=(32, 64, 128, 256, 512, 1024, 2048, 4096),
    throughput_unit="FLOP/s",
    source="Chapter 17: Using torch with CUDA (17.8)",
    options=(
        WorkloadOption(
            name="amp",
            title="AMP",
            sentence="Automatic mixed precision: autocast, and GradScaler for float16.",
            values=("off", "on"),
        ),
        WorkloadOption(
            name="amp_dtype",
            title="AMP computes in",
            sentence=(
                "PyTorch's default is float16 on a card and bfloat16 on the CPU; without AMP, "
                "this option has no effect."
            ),
            values=("default", "float16", "bfloat16"),
        ),
    ),
    size_title="Samples per batch",
    size_text="batch of {size}",
    refuses={
        "transfers": (
            "train_step uses a batch that is already on the device: the workload dataloader "
            "shows the cost of feeding it."
        ),
    },
)

DATALOADER = WorkloadDescription(
    name="dataloader",
    takes_turns=False,
    title="Feeding the device",
    sentence=(
        "A small network trains on a data set, batch by batch. The result splits the time into "
        "loading the batches, copying them to the device, and computing."
    ),
    dtypes=("float32",),
    sizes=(32, 64, 128, 256, 512, 1024),
    throughput_unit="samples/s",
    source=(
        "How can I switch from CPU to GPU PyTorch? and How can a PyTorch model be moved to "
        "the GPU? (2025-01-30)"
    ),
    options=(
        WorkloadOption(
            name="way",
            title="Transfer method",
            sentence="How the batches come to the device.",
            values=("batch_by_batch", "whole_set", "pinned", "pinned_non_blocking"),
            meanings={
                "batch_by_batch": "a DataLoader copies each batch.",
                "whole_set": "the whole data set is already on the device.",
                "pinned": "from pinned memory, which a card can read directly.",
                "pinned_non_blocking": "the same, without waiting for the copy.",
            },
        ),
        WorkloadOption(
            name="num_workers",
            title="Worker processes",
            sentence="The number of processes that load batches; 0 means the program itself.",
            values=("0", "1", "2", "4"),
        ),
        WorkloadOption(
            name="data_set",
            title="Data set",
            sentence="10,000 samples of 100 numbers, or 1,000 of 10: one from each document.",
            values=("10000x100", "1000x10"),
        ),
    ),
    size_title="Samples per batch",
    size_text="batch of {size}",
    refuses={
        "transfers": "dataloader always copies every batch, and times the copies separately.",
        "cold": "dataloader reads a whole data set, so its cache is neither hot nor cold.",
    },
)

COPY = WorkloadDescription(
    name="copy",
    title="Copy",
    sentence=(
        "Copies memory and computes nothing. Everything that goes to a card or back passes "
        "through the PCIe slot, which is far slower than the memory on either side."
    ),
    dtypes=("float32",),
    sizes=(1, 4, 16, 64, 256),
    throughput_unit="B/s",
    options=(
        WorkloadOption(
            name="direction",
            title="Direction",
            sentence=(
                "d2d copies within the device's memory, h2d from CPU memory to the card, d2h "
                "back. Within a memory, the bytes read and written count; over PCIe, the bytes "
                "sent."
            ),
            values=("d2d", "d2h", "h2d"),
        ),
        WorkloadOption(
            name="memory",
            title="CPU memory",
            sentence=(
                "The card can read pinned memory directly. Pageable memory, the default, is "
                "first copied to a pinned buffer."
            ),
            values=("pageable", "pinned"),
        ),
    ),
    size_title="MiB to copy",
    size_text="{size} MiB",
    refuses={"transfers": "copy already is a transfer: choose its direction instead."},
)

CONV2D = WorkloadDescription(
    name="conv2d",
    title="Convolution",
    sentence=(
        "A 3 × 3 filter over images of 56 × 56 with 64 channels, forward and "
        "backward. cuDNN chooses among several algorithms, and some of them do not give the "
        "same bits twice."
    ),
    dtypes=DTYPES,
    sizes=(1, 2, 4, 8, 16, 32, 64),
    throughput_unit="FLOP/s",
    source="Chapter 17: Using torch with CUDA (17.9)",
    options=(
        WorkloadOption(
            name="cudnn",
            title="cuDNN",
            sentence=(
                "benchmark tries the algorithms at the first call and keeps the fastest; "
                "deterministic allows only algorithms that repeat bit for bit."
            ),
            values=("default", "benchmark", "deterministic", "benchmark+deterministic"),
        ),
    ),
    size_title="Images per batch",
    size_text="batch of {size}",
)

CUSTOM_KERNEL = WorkloadDescription(
    name="custom_kernel",
    title="A CUDA kernel of your own",
    sentence=(
        "The ten lines of “Element by element” as a single program for the graphics card, "
        "compiled while you wait. The numbers go through memory once, not once per line."
    ),
    dtypes=("float32",),
    sizes=(64, 256, 512, 1024, 2048, 4096),
    throughput_unit="B/s",
    source="How can I switch from CPU to GPU PyTorch? (2025-01-30)",
    options=(
        WorkloadOption(
            name="threads",
            title="Threads per block",
            sentence="The number of elements that one block of the kernel works on at once.",
            values=("256", "64", "128", "512", "1024"),
        ),
    ),
    device_kinds=("cuda",),
    refuses={
        "transfers": (
            "custom_kernel works on matrices on the card: time the copies with the workload copy."
        ),
    },
)

DATA_PARALLEL = WorkloadDescription(
    name="data_parallel",
    takes_turns=False,
    title="One batch, several devices",
    sentence=(
        "Several cards, or several processes on the CPU, each learn from a part of the batch "
        "and then agree on what they learned: worth it when a step takes longer than the "
        "agreeing."
    ),
    dtypes=("float32",),
    sizes=(64, 128, 256, 512, 1024, 2048),
    throughput_unit="samples/s",
    source=(
        "Chapter 17: Using torch with CUDA (17.5) and How can I switch from CPU to GPU "
        "PyTorch? (2025-01-30)"
    ),
    options=(
        WorkloadOption(
            name="way",
            title="Way",
            sentence=(
                "DataParallel is one program that splits each batch; DistributedDataParallel "
                "is a process for each device, started by torchrun on this PC."
            ),
            values=("DataParallel", "DistributedDataParallel"),
        ),
        WorkloadOption(
            name="processes",
            title="Cards or processes",
            sentence="The number of cards that share the batch; on the CPU, of processes.",
            values=("1", "2", "4"),
        ),
    ),
    size_title="Samples in the whole batch",
    size_text="batch of {size}",
    refuses={
        "transfers": "data_parallel always splits and copies every batch.",
        "cold": "data_parallel uses several caches that the program cannot overwrite.",
        "naive": "data_parallel has its own clock, in processes that are already synchronized.",
    },
)

LAUNCH = WorkloadDescription(
    name="launch",
    title="Launch overhead",
    sentence=(
        "Changes the sign of a single number. The time is almost only the cost of launching an "
        "operation, which is part of every other time here."
    ),
    dtypes=DTYPES,
    sizes=(1,),
    throughput_unit=CALLS_PER_S,
    size_title="Numbers in the tensor",
    size_text="tensor of {size}",
)

WORKLOADS = (
    ELEMENTWISE,
    MATMUL,
    TINY_LINEAR,
    LINEAR,
    TRAIN_STEP,
    DATALOADER,
    COPY,
    CONV2D,
    CUSTOM_KERNEL,
    DATA_PARALLEL,
    LAUNCH,
)
"""All of them, in the order in which they are listed."""
WITHOUT_PYTORCH = ("elementwise", "matmul", "copy", "launch")
"""The names of those that `engine/quick` has as well."""
