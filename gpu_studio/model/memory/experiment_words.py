"""What to say of an experiment that came to no outcome of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.oom_words import Outcome

if TYPE_CHECKING:
    from gpu_studio.core.protocol import EngineEnded, RequestFailed


def explain_failure(event: RequestFailed) -> Outcome:
    """Return why the engine refused, and what next."""
    failure = event.failure
    next_step = {
        FailureKind.NO_CUDA: "The Devices tab says what is missing.",
        FailureKind.NO_SUCH_DEVICE: "Choose another card above.",
        FailureKind.TOO_LARGE: "Take smaller tensors or a smaller budget.",
        FailureKind.DTYPE_UNSUPPORTED: "Choose another type.",
    }.get(failure.kind, "The details are in the log; try it once more.")
    return Outcome(
        headline="It could not be done.",
        sentence=failure.message,
        next_step=next_step,
        tone="failure",
    )


def explain_end(event: EngineEnded, *, has_begun: bool) -> Outcome:
    """Return how the lab's engine ended in the middle; ``has_begun``: it had read something."""
    if event.stopped and not has_begun:
        return Outcome(headline="Stopped.", sentence="It had not begun.")
    if event.stopped:
        return Outcome(
            headline="Stopped.",
            sentence="It was in the middle of a call, so the lab's engine was ended.",
        )
    return Outcome(
        headline="The engine died.",
        sentence=f"{describe_exit(event.exit_code)} Its readings are kept, its memory is freed.",
        next_step="It was the lab's own: the program's engine lives. Try a smaller budget.",
        tone="failure",
    )
