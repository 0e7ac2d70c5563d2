"""How fast a language model could write on a device, at most: its memory's speed decides.

To write one token, a plain model reads all its weights and the whole KV cache once. So no program
is faster than the measured bandwidth divided by these bytes, whatever it computes, as long as a
step makes one token for each text. With several texts at once, each step reads the weights for all
of them and the cache of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.units import format_count, format_rate, three_digits

if TYPE_CHECKING:
    from gpu_studio.core.memory.fit import ModelFit
    from gpu_studio.core.memory.networks import Network

MOST_BATCH = 65_536
# Within the device's memory, and larger than any cache.
_COPY, _COPY_MIB, _WITHIN, _MEASURING_S = "copy", 256, {"direction": "d2d"}, 1.0
# A CPU also reads a line before it writes to it (McCalpin, STREAM: "write allocate"): its memory
# moves three bytes where a copy counts two, and reading alone can be that much faster.
_CPU_READS = 1.5
_UNKNOWN = "The speed is not known: nothing here says which part of the weights a token uses."
_AHEAD = ", without guessing ahead (MTP, a draft model)"
_OFTEN_HALF = "Programs often reach half of it; small models and mixtures of experts less."


def bandwidth_request(device: str, run_id: str) -> RunWorkload:
    """Return the run that measures a device's bandwidth, in about two seconds."""
    return RunWorkload(
        run_id=run_id,
        workload=_COPY,
        device=device,
        size=_COPY_MIB,
        dtype="float32",
        options=dict(_WITHIN),
        budget_s=_MEASURING_S,
    )


def bandwidth_of(result: RunFinished) -> float | None:
    """Return the most bytes a second that reading may reach; None if the run's copies were wrong.

    A copy counts the bytes that it reads and writes.
    """
    if result.verified is False or not result.throughput > 0:
        return None
    return result.throughput * (_CPU_READS if is_cpu(result.device) else 1.0)


def step_bytes(fit: ModelFit) -> int | None:
    """Return the bytes that are read to write a token of each text; None if that is not known."""
    idle = _idle_parameters(fit.network)
    if idle is None or not fit.network.parameters:
        return None
    used = fit.network.parameters - idle
    return fit.weights_bytes * used // fit.network.parameters + fit.cache_bytes


def _idle_parameters(network: Network) -> int | None:
    """Return the parameters that a step does not read; None if that is not known."""
    config = network.config
    if config is None:
        return None if network.has_experts else 0
    # Of the input table, a token reads its row; if the output has the same, all of it.
    idle = 0 if config.is_tied else config.vocabulary * config.width
    if network.has_experts or config.experts > 1:
        if not 0 < config.experts_used <= config.experts or not config.inner_width:
            return None
        # Three matrices each, as in Mixtral and all that followed it.
        expert = 3 * config.width * config.inner_width
        idle += config.layers * (config.experts - config.experts_used) * expert
    return idle if idle < network.parameters else None


def most_tokens_per_s(fit: ModelFit, bandwidth: float | None) -> float | None:
    """Return the most tokens a second of all texts together, at their full length.

    None if the bandwidth was not measured, or if it is not known what a step reads.
    """
    read_bytes = step_bytes(fit)
    return fit.batch * bandwidth / read_bytes if bandwidth and read_bytes else None


def speed_words(
    fit: ModelFit, bandwidth: float | None, *, device: str, is_modelled: bool = False
) -> tuple[str, str]:
    """Return the bound in a sentence, or why there is none, and what it follows from.

    Args:
        fit: the model on the device.
        bandwidth: that of the device; None if it was not measured.
        device: the device in words: ``this card``.
        is_modelled: whether it is a simulated card.
    """
    read_bytes = step_bytes(fit)
    if read_bytes is None:
        return _UNKNOWN, ""
    if is_modelled:
        return "A simulated card has no bandwidth to measure, so its speed is not modeled.", ""
    if not bandwidth:
        return f"The bandwidth of {device} has not been measured in this session.", ""
    speed = (
        f"At most {three_digits(fit.batch * bandwidth / read_bytes)} tokens a second on {device}"
    )
    if fit.batch > 1:
        speed = f"{speed} for {format_count(fit.batch)} texts at once"
    speed += _AHEAD
    if fit.inference.fits is False:
        speed = f"{speed}. What does not fit is read from the PC's RAM, which is slower"
    read = f"{format_rate(read_bytes / fit.batch, 'B')} read per token"
    if fit.cache_bytes:
        read = f"{read} with {format_count(fit.tokens)} tokens of context"
    return f"{speed}.", f"{format_rate(bandwidth, 'B/s')} over {read}. {_OFTEN_HALF}"
