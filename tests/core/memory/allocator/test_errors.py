import pickle

import pytest

from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory, format_size
from gpu_studio.core.memory.allocator.model import AllocatorModel

MIB = 1 << 20
CONTEXT_MIB = 60


def model_of() -> AllocatorModel:
    """A GT 1030 with a context and nothing else on it."""
    return AllocatorModel(1996 * MIB, CONTEXT_MIB * MIB)


HINT = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation"
    " for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


def test_a_full_card_is_reported_in_pytorchs_words():
    model = model_of()
    for _ in range(7):
        model.allocate(8192 * 8192 * 4)
    with pytest.raises(ModelledOutOfMemory) as caught:
        model.allocate(8192 * 8192 * 4)
    assert str(caught.value) == (
        "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB"
        " of which 144.00 MiB is free. Of the allocated memory 1.75 GiB is allocated by PyTorch,"
        " and 0 bytes is reserved by PyTorch but unallocated." + HINT
    )
    error = caught.value
    assert (error.tried_bytes, error.free_bytes) == (256 * MIB, 144 * MIB)
    assert (error.total_bytes, error.limit_bytes) == (1996 * MIB, None)
    assert (error.allocated_bytes, error.unallocated_bytes) == (1792 * MIB, 0)


def test_a_rejected_request_flushes_nothing():
    model = AllocatorModel(
        1024 * MIB, conf="throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0"
    )
    model.free(model.allocate(600 * MIB))
    with pytest.raises(ModelledOutOfMemory) as caught:
        model.allocate(601 * MIB)
    assert str(caught.value) == (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed"
        " per_process_memory_fraction limit. Requested size: 601.00 MiB"
    )
    stats = model.stats()
    assert (stats["num_oom_rejections"], stats["num_ooms"]) == (1, 0)
    assert stats["reserved_bytes.all.current"] == 600 * MIB


def test_the_error_can_be_sent_to_another_process():
    with pytest.raises(ModelledOutOfMemory) as caught:
        AllocatorModel(MIB).allocate(1)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert vars(copy) == vars(caught.value)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1024, "1024 bytes"),
        (1025, "1.00 KiB"),
        (MIB, "1024.00 KiB"),
        (MIB + 1, "1.00 MiB"),
        (1 << 30, "1024.00 MiB"),
        ((1 << 30) + 1, "1.00 GiB"),
        (10 << 40, "10240.00 GiB"),
    ],
)
def test_sizes_are_written_as_pytorchs_errors_do(size_bytes, text):
    assert format_size(size_bytes) == text


def test_others_may_hold_more_than_the_card():
    model = AllocatorModel(MIB, 2 * MIB)
    assert model.card.free_bytes == 0
    with pytest.raises(ModelledOutOfMemory, match="of which 0 bytes is free"):
        model.allocate(1)


def test_another_process_can_take_what_was_free():
    model = AllocatorModel(100 * MIB)
    saved = model.allocate(40 * MIB)
    model.card.other_bytes = 50 * MIB
    with pytest.raises(ModelledOutOfMemory, match=r"of which 10\.00 MiB is free"):
        model.allocate(20 * MIB)
    model.card.other_bytes = 0
    assert model.allocate(20 * MIB).address > saved.address
