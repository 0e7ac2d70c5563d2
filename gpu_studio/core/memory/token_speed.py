"""How fast a language model could write on a device, at most: its memory's speed decides.

To write one token, a plain model reads all its weights and the whole KV cache once. So no program
is faster than the measured bandwidth divided by these bytes, whatever it computes, as long as a
step makes one token for each text. With several texts at once, each step reads the weights for all
of them and the cache of each.
"""

from __future__ import annotations

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.memory.networks import AS_IN_FILE, KEPT_TYPES, Network
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.units import counted, format_bytes, format_count, format_rate, three_digits

MOST_BATCH = 65_536
_HALF_BYTES, _FLOAT_BYTES = 2, 4
# Within the device's memory, and larger than any cache.
_COPY, _COPY_MIB, _WITHIN, _MEASURING_S = "copy", 256, {"direction": "d2d"}, 1.0
_CPU_READS = 1.5
_NO_CONFIG = "The KV cache is not modeled: its size is in the model's config.json."
_UNKNOWN_EXPERTS = (
    "The speed is not known: this is a mixture of experts, and no configuration says which part of "
    "the weights a token uses."
)
_OFTEN_HALF = (
    "This is for one token a step, without guessing ahead. Programs often reach half of it; small "
    "models and mixtures of experts less."
)


class TokenReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a model keeps in memory to write, and what it reads of that for one step.

    Attributes:
        kind: the type of the weights: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        weights_bytes: all weights.
        idle_bytes: those of them that a step does not read: the input table if the output has its
            own, and the experts that are not used.
        cache_bytes: keys and values of all texts, at their full context; 0 if not modeled.
        context: the tokens of each text.
        batch: the number of texts at once.
        unknown_cache: why the cache is not modeled; empty if it is.
        unknown_experts: why the reading is not known; empty if it is.
        words: what a step reads, in a sentence.
    """

    kind: str
    weights_bytes: int
    idle_bytes: int = 0
    cache_bytes: int = 0
    context: int
    batch: int = 1
    unknown_cache: str = ""
    unknown_experts: str = ""
    words: str = ""

    @property
    def step_bytes(self) -> int:
        """The bytes that a step reads; it writes one token for each text."""
        return self.weights_bytes - self.idle_bytes + self.cache_bytes


def token_reading(
    network: Network, kind: str, context: int | None = None, batch: int = 1
) -> TokenReading:
    """Return what a model keeps and reads to write text.

    Args:
        network: the model.
        kind: the type of its weights: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        context: the tokens of each text; None for the usual number.
        batch: the number of texts at once.
    """
    context = context or network.usual_context
    config = network.config
    weights_bytes = network.kept_bytes(kind)
    idle, is_known = _idle_parameters(network)
    idle_bytes = weights_bytes * idle // max(1, network.parameters)
    cache_bytes, cache_words = 0, ""
    if config is not None and config.cache_numbers:
        item = _cache_item_bytes(network, kind)
        cache_bytes = batch * context * config.layers * config.cache_numbers * item
        cache_words = (
            f", and {format_bytes(cache_bytes)} of KV cache: {counted(batch, 'text')} × "
            f"{format_count(context)} tokens × {counted(config.layers, 'layer')} × "
            f"{format_count(config.cache_numbers)} numbers × {item} bytes"
        )
    used = f"{format_bytes(weights_bytes - idle_bytes)} of {format_bytes(weights_bytes)}"
    return TokenReading(
        kind=kind,
        weights_bytes=weights_bytes,
        idle_bytes=idle_bytes,
        cache_bytes=cache_bytes,
        context=context,
        batch=batch,
        unknown_cache=_NO_CONFIG if config is None else config.unknown_cache,
        unknown_experts="" if is_known else _UNKNOWN_EXPERTS,
        words=f"A step reads {used if idle else format_bytes(weights_bytes)} of weights"
        f"{cache_words}.",
    )


def _idle_parameters(network: Network) -> tuple[int, bool]:
    """Return the parameters that a step does not read, and whether that is known."""
    config = network.config
    if config is None:
        return 0, not network.has_experts
    # Of the input table, a token reads its row; if the output has the same, all of it.
    idle = 0 if config.is_tied else config.vocabulary * config.width
    if network.has_experts or config.experts > 1:
        if not 0 < config.experts_used <= config.experts or not config.inner_width:
            return 0, False
        # Three matrices each, as in Mixtral and all that followed it.
        expert = 3 * config.width * config.inner_width
        idle += config.layers * (config.experts - config.experts_used) * expert
    return (idle, True) if idle < network.parameters else (0, not config.experts)


def _cache_item_bytes(network: Network, kind: str) -> int:
    """Return the bytes of a number in the cache: 4 beside weights in 32 bits or more."""
    wide_bytes = sum(network.types_bytes.get(name, 0) for name in ("F32", "F64"))
    is_wide = 2 * wide_bytes > network.size_bytes
    if kind != AS_IN_FILE:
        is_wide = KEPT_TYPES[kind].bits >= 32
    return _FLOAT_BYTES if is_wide else _HALF_BYTES


class Bandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """A measured bandwidth of a device's memory.

    A copy counts the bytes that it reads and writes. A CPU also reads a line before it writes to
    it (McCalpin, STREAM: "write allocate"), so its memory moves three bytes where the copy counts
    two, and reading alone can be that much faster.

    Attributes:
        copy_bytes_per_s: of a copy that fits no cache.
        is_cpu: whether the device is a CPU.
    """

    copy_bytes_per_s: float
    is_cpu: bool

    @property
    def bytes_per_s(self) -> float:
        """The most that reading alone may reach."""
        return self.copy_bytes_per_s * (_CPU_READS if self.is_cpu else 1.0)

    @property
    def words(self) -> str:
        """The bandwidth in words."""
        measured = f"measured {format_rate(self.copy_bytes_per_s, 'B/s')}"
        return f"{measured} × 3/2" if self.is_cpu else measured


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


def bandwidth_of(result: RunFinished) -> Bandwidth | None:
    """Return the bandwidth that such a run measured; None if its copies were wrong."""
    if result.verified is False or not result.throughput > 0:
        return None
    return Bandwidth(copy_bytes_per_s=result.throughput, is_cpu=is_cpu(result.device))


def most_tokens_per_s(reading: TokenReading, bandwidth: Bandwidth | None) -> float | None:
    """Return the most tokens a second of all texts together, at their full context.

    None if the bandwidth was not measured, or if it is not known what a step reads.
    """
    if reading.unknown_experts or bandwidth is None:
        return None
    return reading.batch * bandwidth.bytes_per_s / reading.step_bytes


def speed_words(
    reading: TokenReading,
    bandwidth: Bandwidth | None,
    *,
    device: str,
    is_modelled: bool = False,
    is_too_large: bool = False,
) -> tuple[str, str]:
    """Return the bound in a sentence, or why there is none, and what it follows from.

    Args:
        reading: what a step reads.
        bandwidth: that of the device; None if it was not measured.
        device: the device in words: ``this card``.
        is_modelled: whether it is a simulated card.
        is_too_large: whether the model does not fit on it.
    """
    if reading.unknown_experts:
        return reading.unknown_experts, ""
    if is_modelled:
        return "A simulated card has no bandwidth to measure, so its speed is not modeled.", ""
    tokens_per_s = most_tokens_per_s(reading, bandwidth)
    if bandwidth is None or tokens_per_s is None:
        return f"The bandwidth of {device} has not been measured in this session.", ""
    speed = f"At most {three_digits(tokens_per_s)} tokens a second on {device}"
    if reading.batch > 1:
        speed = f"{speed} for {format_count(reading.batch)} texts at once"
    if is_too_large:
        speed = f"{speed}. What does not fit is read from the PC's RAM, which is slower"
    read = f"{format_rate(reading.step_bytes / reading.batch, 'B')} read per token"
    if reading.cache_bytes:
        read = f"{read} with {format_count(reading.context)} tokens of context"
    return f"{speed}.", f"The {bandwidth.words} over {read}. {_OFTEN_HALF}"
