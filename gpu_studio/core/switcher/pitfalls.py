"""The pitfalls: what goes wrong, why, and what mends it.

Each is run by a class in `engine/pitfalls`; these descriptions need no PyTorch.
"""

from __future__ import annotations

from gpu_studio.core.messages.pitfall_messages import PitfallDescription

MIXED_DEVICES = PitfallDescription(
    name="mixed_devices",
    title="Mixing CPU and GPU tensors",
    shows="the error",
    sentence="The model is on the card, but its input is still on the CPU: an error at once.",
    why=(
        "An operation runs on one device, and PyTorch never copies by itself, because a hidden "
        "copy may cost more than the work. So all tensors of an operation must be on the same "
        "device. Single numbers are the exception: a tensor without dimensions may stay on "
        "the CPU."
    ),
    remedy="Move the input as well: x = x.to(device) returns the copy.",
    source="Using torch with CUDA, 17.4 and 17.7",
)

MODEL_ON_CPU = PitfallDescription(
    name="model_on_cpu",
    title="Leaving the model on the CPU",
    shows="an idle card",
    sentence="Without model.to(device) nothing fails: the whole training runs on the CPU.",
    why=(
        "A new model is on the CPU, and so are the tensors that a data loader makes. If you "
        "move neither, they fit together: there is no error, and the card idles. If you move "
        "only the inputs, the first layer raises the mixed devices error."
    ),
    remedy="Call model.to(device) once, before you make the optimizer; move every batch.",
    source="Using torch with CUDA, 17.7",
    remark=(
        "The chapter says that the loss then never goes down. It does: the curve is measured. "
        "You may lose time, and that is measured as well."
    ),
    otherwise=(
        "This network is small: a card may need more time to start each operation than it "
        "saves. A larger model gains more."
    ),
)

OUT_OF_MEMORY = PitfallDescription(
    name="out_of_memory",
    title="Running out of memory",
    shows="a full card",
    sentence="The batch grows until the card has no free memory: OutOfMemoryError.",
    why=(
        "For the backward pass, training keeps the output of every layer. Each output grows "
        "with the batch; the weights do not. So half the batch needs nearly half the memory. "
        "The same batch fits under torch.no_grad(), because PyTorch then frees a layer's input "
        "as soon as its output exists."
    ),
    remedy="Train with a smaller batch; use torch.no_grad() when you do not train.",
    source="Using torch with CUDA, 17.7; How can I run any code on my GPU, instead on CPU?",
)

TINY_MODEL = PitfallDescription(
    name="tiny_model",
    title="A model that is too small",
    shows="a faster CPU",
    sentence="Linear(10, 10), one sample at a time: the start takes longer than the work.",
    why=(
        "Each operation costs some microseconds before it computes anything: Python, PyTorch's "
        "search for the right kernel and, on a card, the launch and the wait for its end. The "
        "two hundred multiplications and additions take nanoseconds. So you measure the "
        "overhead alone, and a card has more of it."
    ),
    remedy="Give it many samples in one call, or leave such a small model on the CPU.",
    source="Using torch with CUDA, 17.7; When to move from CPU to GPU",
)

STARVED_GPU = PitfallDescription(
    name="starved_gpu",
    title="Starving the GPU",
    shows="a waiting card",
    sentence="The data loader works inside the training loop, so the card waits for it.",
    why=(
        "Without workers, DataLoader prepares each batch in the training process, between two "
        "steps. The faster the card, the larger the share of time it waits. Worker processes "
        "prepare the next batches while the card computes. From pinned memory, PyTorch copies "
        "them without stopping the CPU."
    ),
    remedy="Use DataLoader(…, num_workers=2, pin_memory=True) and .to(…, non_blocking=True).",
    source="Using torch with CUDA, 17.7",
    otherwise=(
        "Worker processes cost time themselves. They do not help on a PC whose CPU is busy "
        "with other work."
    ),
)

NO_SYNCHRONIZE = PitfallDescription(
    name="no_synchronize",
    title="Stopping the clock too early",
    shows="wrong times",
    sentence="time.time() around CUDA calls: the numbers are impressive, but meaningless.",
    why=(
        "A CUDA call puts its work into the card's queue and returns at once. The clock then "
        "shows how long the CPU took to fill the queue. Only a call that waits for the card, "
        "such as synchronize(), .item() or .cpu(), returns when the work is done."
    ),
    remedy="Call torch.cuda.synchronize() before you start the clock and before you stop it.",
    source="How can I run any code on my GPU, instead on CPU? times without it",
    remark=(
        "The post's loop is long enough to fill the queue, so its clock waits after all, and "
        "its first call includes the start of CUDA. Short measurements suffer more."
    ),
)

FLOAT16_ON_OLD_CARD = PitfallDescription(
    name="float16_on_old_card",
    title="float16 on an old card",
    shows="no gain",
    sentence="Half the memory, but a GeForce 10-series card has few units for it.",
    why=(
        "Cards from compute capability 7.0 on have units made for float16 products. A GT 1030 "
        "or another GeForce 10-series card (6.1) gives 2 float16 results per clock, but 128 "
        "in float32 (CUDA C Programming Guide, arithmetic instructions). PyTorch may avoid "
        "that by computing in float32, with conversions. A CPU without float16 units does the "
        "same, even slower. Only a measurement on your device can tell."
    ),
    remedy="Measure both, and use float16 only if the device has units for it.",
    source="How can I run any code on my GPU, instead on CPU? crunches float16 on a GT 1030",
)

VISIBLE_DEVICES_TOO_LATE = PitfallDescription(
    name="visible_devices_too_late",
    title="CUDA_VISIBLE_DEVICES too late",
    shows="no effect",
    sentence="os.environ[…] is set after CUDA has started: it hides no card.",
    why=(
        "The driver reads the variable once, when CUDA starts in a process, at the first call "
        "that needs it. A later change has no effect. That is why “Let PyTorch see only this "
        "card” starts a new engine. In some versions of PyTorch, "
        "torch.cuda.device_count() still follows the variable and is then wrong."
    ),
    remedy="Set it before the first import of torch, or in the shell that starts Python.",
    source="When to move from CPU to GPU",
    remark=(
        "The document's switch_gpu() sets the variable after torch.cuda.is_available() and "
        "device_count() were called. The switch is done by its next line, "
        "torch.cuda.set_device()."
    ),
)

EXCEPTION_KEEPS_TENSORS = PitfallDescription(
    name="exception_keeps_tensors",
    title="An exception that keeps tensors",
    shows="memory kept",
    sentence="The script keeps the out-of-memory error, and so the memory stays in use.",
    why=(
        "An exception holds its traceback, the traceback holds frames, and each frame holds "
        "its local variables: the very tensors that did not fit. While anything refers to the "
        "exception (a list of errors, a notebook's sys.last_value), they stay on the card. "
        "empty_cache() cannot free them."
    ),
    remedy="Keep only its text, str(error), and try again outside the except block.",
    source="Common in code that retries with a smaller batch",
)

STICKY_ERROR = PitfallDescription(
    name="sticky_error",
    title="An error that stays",
    shows="a restart helps",
    sentence="An index outside its table: on a card, everything after it fails as well.",
    why=(
        "A kernel that fails on the card breaks all of CUDA in its process: every "
        "later call raises the same error, even an unrelated one. Calls are queued, so the "
        "error may appear at a later line than the mistake. Nothing in the process can repair "
        "this; the process has to end."
    ),
    remedy="Run the same lines on the CPU once: there the error names the cause and the line.",
    source="PyTorch's error “device-side assert triggered”",
)

OLD_AMP_IMPORT = PitfallDescription(
    name="old_amp_import",
    title="The old name torch.cuda.amp",
    shows="the new name",
    sentence="autocast and GradScaler from torch.cuda.amp: a FutureWarning since PyTorch 2.4.",
    why=(
        "Mixed precision is no longer for CUDA only: the classes are in torch.amp, and you "
        "tell them the device. The old names still work, warn at each use, and will be "
        "removed."
    ),
    remedy='Use torch.amp.autocast("cuda") and torch.amp.GradScaler("cuda").',
    source="Using torch with CUDA, 17.8",
    remark="The chapter imports autocast and GradScaler by their old names.",
)

FRESH_RESULTS = PitfallDescription(
    name="fresh_results",
    title="New memory for every result",
    shows="what it costs",
    sentence="y = a + b asks the system for the result's memory again and again.",
    why=(
        "On the CPU, PyTorch has no cache of its own. A large result that is no longer used "
        "goes back to the system, and the next one gets new memory: the system must clear and "
        "map each of its pages when the CPU first writes to it. That can take longer than the "
        "addition itself. Smaller results are kept or not by chance, so the same script can "
        "take several times as long in the next process. On a card, PyTorch keeps freed "
        "memory. So a comparison may measure the memory's setup, not the processors."
    ),
    remedy="Make the result once, and write into it: torch.add(a, b, out=y), or a.add_(b).",
    source="mallopt(3): M_MMAP_THRESHOLD, M_TRIM_THRESHOLD",
    otherwise=(
        "Your system hands out memory quickly, or keeps what was freed. Then both loops take "
        "the same time."
    ),
)

# The six from the book's chapter come first, then the ones that this program adds.
PITFALLS = (
    MIXED_DEVICES,
    MODEL_ON_CPU,
    OUT_OF_MEMORY,
    TINY_MODEL,
    STARVED_GPU,
    NO_SYNCHRONIZE,
    FLOAT16_ON_OLD_CARD,
    VISIBLE_DEVICES_TOO_LATE,
    EXCEPTION_KEEPS_TENSORS,
    STICKY_ERROR,
    OLD_AMP_IMPORT,
    FRESH_RESULTS,
)
