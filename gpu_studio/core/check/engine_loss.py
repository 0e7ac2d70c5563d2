"""A check's engine that died, failed or fell silent, as a finding: that is a result as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.check.stages import stage_title
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.check_messages import CheckFinding
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.check_messages import Severity, StageName

# Python itself ends with these: a mistake in this program, and no fault of the device.
_OWN_MISTAKES = (1, 2)
# The system's signal for a process that took too much memory, as Python and as a shell report it.
_KILLED = (-9, 137)
_LOST_SIGNS = ("GPU is lost", "fallen off the bus", "no CUDA-capable device", "device unavailable")


def loss_finding(
    event: RequestFailed | EngineEnded,
    stage: StageName,
    at_s: float,
    *,
    is_silent: bool,
    has_begun: bool = True,
    step: str = "",
    address: str = "cuda:0",
) -> CheckFinding:
    """Return the finding of an engine that ended during a stage.

    Args:
        event: its last event.
        stage: the stage that was running, or was to run next.
        at_s: seconds since the start of the check.
        is_silent: whether the engine was abandoned because it did not answer.
        has_begun: whether any stage has begun.
        step: what was running, in words; empty if unknown.
        address: PyTorch's name for the device.
    """
    title, is_card = stage_title(stage, address), not is_cpu(address)
    severity: Severity
    if is_silent:
        subject = "card" if is_card else "CPU's check"
        severity, sentence = "error", f"The {subject} stopped answering during “{title}”."
    elif isinstance(event, EngineEnded):
        severity, sentence = _of_process(event, title, is_card=is_card)
    else:
        severity, sentence = _of_failure(event.failure, title, has_begun=has_begun)
    if step:
        sentence = f"{sentence} It was at: {step}."
    is_lost = severity == "error"
    return CheckFinding(
        kind="card_lost" if is_lost else "could_not_run",
        severity=severity, stage=stage, sentence=sentence[:1000], count=int(is_lost), at_s=at_s,
    )  # fmt: skip


def failure_finding(failure: Failure, stage: StageName, at_s: float, address: str) -> CheckFinding:
    """Return the finding of a stage that failed while the engine goes on; see `loss_finding`."""
    event = RequestFailed(failure=failure)
    return loss_finding(event, stage, at_s, is_silent=False, address=address)


def _of_failure(failure: Failure, title: str, *, has_begun: bool) -> tuple[Severity, str]:
    cause = failure.cause or failure.message
    if failure.kind is FailureKind.CUDA_ERROR:
        if any(sign in cause for sign in _LOST_SIGNS):
            return "error", f"The card was lost during “{title}”. {cause}"
        return "error", f"The card failed during “{title}”. {cause}"
    return "doubt", f"“{title}” stopped early. {cause}" if has_begun else cause


def _of_process(event: EngineEnded, title: str, *, is_card: bool) -> tuple[Severity, str]:
    if event.exit_code in _KILLED:
        return "doubt", (
            f"The system ended the check during “{title}”, usually because the PC ran out of "
            "memory (RAM)."
        )
    if event.exit_code in _OWN_MISTAKES:
        return (
            "doubt",
            f"The check's own program ended during “{title}” because of a mistake in it.",
        )
    subject = "The card's driver or a library" if is_card else "A library"
    code = "" if event.exit_code is None else f" (exit code {event.exit_code})"
    return "error", f"{subject} ended the check during “{title}”{code}."
