"""How fast a language model could write on a device, at most: its memory's speed decides.

To write one token, a model reads all weights that the token uses and the whole KV cache once. So
no program is faster than the measured bandwidth divided by these bytes, whatever it computes. With
several texts at once, each step reads the weights for all of them and the cache of each.

Measured runs reach two thirds to all of this bound: a model of 7 billion weights in 4 bits (4.68
GB) over the measured bandwidth, 68 % on a GTX 1060, 82 % on an RTX 3090, 98 % on an RTX 5060 Ti
(github.com/kickstart-berlin, issue 58).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, WeightsFormat, network_of_count
from gpu_studio.core.memory.weights.weight_types import KEPT_TYPES
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.units import counted, format_bytes, format_count, format_rate, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.memory.weights.model_config import CacheLayers
    from gpu_studio.core.messages.run_messages import RunFinished

USUAL_CONTEXT = 4096
MOST_BATCH = 65_536
OTHERS_REACH = "Measured runs of others reach two thirds to all of such a bound."
_HALF_BYTES, _FLOAT_BYTES = 2, 4
# Within the device's memory, and larger than any cache.
_COPY, _COPY_MIB, _WITHIN, _MEASURING_S = "copy", 256, {"direction": "d2d"}, 1.0
_CPU_READS = 1.5


class TokenReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a model keeps in memory to write, and what it reads of that for one step.

    Attributes:
        kind: the type of the weights: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        weights_bytes: all weights.
        rows_bytes, aside_bytes, idle_expert_bytes: those of them that a step does not read.
        experts_bytes: the experts' weights, used or not.
        layers, in_layers_bytes: the numbered layers and their weights; 0 if unknown.
        cache_bytes: keys and values of all texts, at their full context.
        cache_item_bytes: of one number of the cache.
        activation_bytes: of one step, while it computes the next token of each text.
        context: the tokens of each text.
        batch: the number of texts at once.
        unknown_cache: why the cache is not modeled; empty if it is.
        unknown_experts: why the experts' reading is not modeled; empty if it is.
        is_by_number: whether only the number of parameters is known.
    """

    kind: str
    weights_bytes: int
    rows_bytes: int = 0
    aside_bytes: int = 0
    idle_expert_bytes: int = 0
    experts_bytes: int = 0
    experts: int = 0
    experts_used: int = 0
    layers: int = 0
    in_layers_bytes: int = 0
    cache_bytes: int = 0
    cache_item_bytes: int = _HALF_BYTES
    cache_words: str = ""
    activation_bytes: int = 0
    context: int
    trained_context: int = 0
    batch: int = 1
    unknown_cache: str = ""
    unknown_experts: str = ""
    is_by_number: bool = False

    @property
    def read_weights_bytes(self) -> int:
        """The weights that a step reads."""
        return self.weights_bytes - self.rows_bytes - self.aside_bytes - self.idle_expert_bytes

    @property
    def step_bytes(self) -> int:
        """The bytes that a step reads; it writes one token for each text."""
        return self.read_weights_bytes + self.cache_bytes

    @property
    def kept_bytes(self) -> int:
        """The memory of weights, cache and activations."""
        return self.weights_bytes + self.cache_bytes + self.activation_bytes


def usual_context(network: int | Network) -> int:
    """Return the context to ask for first: 4096 tokens, or less if the model was made for less."""
    config = None if isinstance(network, int) else network.config
    trained = config.trained_context if config is not None else 0
    return min(USUAL_CONTEXT, trained or USUAL_CONTEXT)


def token_reading(
    network: int | Network, kind: str, context: int | None = None, batch: int = 1
) -> TokenReading:
    """Return what a model keeps and reads to write text.

    Args:
        network: its tensors, or only its number of parameters.
        kind: the type of its weights: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        context: the tokens of each text; None for `usual_context`.
        batch: the number of texts at once.
    """
    network = network_of_count(network) if isinstance(network, int) else network
    context = context or usual_context(network)
    config = network.config
    experts_bytes = network.experts.kept_bytes(kind)
    is_mixture = bool(experts_bytes or (config is not None and config.experts > 1))
    reading = TokenReading(
        kind=kind,
        weights_bytes=network.kept_bytes(kind),
        rows_bytes=network.rows.kept_bytes(kind),
        aside_bytes=network.aside.kept_bytes(kind),
        experts_bytes=experts_bytes,
        in_layers_bytes=network.in_layers.kept_bytes(kind),
        cache_item_bytes=_FLOAT_BYTES if _is_wide(network, kind) else _HALF_BYTES,
        context=context,
        batch=batch,
        unknown_cache=_NO_CONFIG,
        unknown_experts=_UNKNOWN_EXPERTS if is_mixture else "",
        is_by_number=not network.tensors and config is None,
    )
    if config is None:
        return reading
    every, used = config.experts, config.experts_used
    if experts_bytes and 0 < used <= every:
        idle_bytes = experts_bytes - experts_bytes * used // every
        reading = msgspec.structs.replace(
            reading, idle_expert_bytes=idle_bytes, experts=every, experts_used=used,
            unknown_experts="",
        )  # fmt: skip
    item, kept = reading.cache_item_bytes, [
        one.layers * one.elements * min(one.window or context, context) for one in config.cache
    ]  # fmt: skip
    # The logits in float32; of the widest layer's vectors and of the scores one each.
    activation_bytes = batch * (
        _FLOAT_BYTES * config.vocabulary
        + item * (4 * config.width + 3 * config.inner_width)
        + _FLOAT_BYTES * config.heads * context
    )
    return msgspec.structs.replace(
        reading,
        layers=config.layers if network.in_layers.parameters else 0,
        cache_bytes=batch * item * sum(kept),
        cache_words=" + ".join(map(_words, config.cache)),
        activation_bytes=activation_bytes,
        trained_context=config.trained_context,
        unknown_cache=config.unknown_cache,
    )


_NO_CONFIG = "The KV cache is not modeled: its size is in the model's config.json."
_UNKNOWN_EXPERTS = (
    "The speed is not modeled: this is a mixture of experts, of which a token uses some. Its size "
    "is in the file of the weights, and the number of experts in the model's config.json."
)


def _is_wide(network: Network, kind: str) -> bool:
    """Return whether the weights are in float32 or float64; llama.cpp's cache never is."""
    if kind != AS_IN_FILE:
        return KEPT_TYPES[kind].bits >= 32
    wide_bytes = sum(network.types_bytes.get(name, 0) for name in ("F32", "F64"))
    is_mostly = 2 * wide_bytes > sum(network.types_bytes.values())
    return is_mostly and network.format is WeightsFormat.SAFETENSORS


def _words(kept: CacheLayers) -> str:
    last = f" of the last {format_count(kept.window)} tokens" if kept.window else ""
    return f"{counted(kept.layers, 'layer')} × {format_count(kept.elements)} numbers{last}"


class Bandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """A measured bandwidth of a device's memory.

    A copy counts the bytes that it reads and writes. A CPU also reads a line before it writes to
    it (McCalpin, STREAM: "write allocate"), so its memory moves three bytes where the copy counts
    two, and reading alone can be that much faster.

    Attributes:
        copy_bytes_per_s: of a copy that fits no cache.
        is_cpu: whether the device is a CPU.
        source: the work that measured it, in words.
    """

    copy_bytes_per_s: float
    is_cpu: bool
    source: str

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
    """Return the bandwidth that a run measured; None for other work."""
    is_copy = result.workload == _COPY and _WITHIN.items() <= result.options.items()
    if not is_copy or result.size < _COPY_MIB or result.verified is False:
        return None
    if result.throughput_unit != "B/s" or not result.throughput > 0:
        return None
    return Bandwidth(
        copy_bytes_per_s=result.throughput,
        is_cpu=is_cpu(result.device),
        source=f"a copy of {result.size} MiB",
    )


class Missing(Enum):
    """What a bound lacks."""

    NOTHING = "nothing"
    BANDWIDTH = "bandwidth"  # of the device
    RAM_BANDWIDTH = "RAM bandwidth"  # a part of the model would be there
    EXPERTS = "experts"  # the reading is not modeled
    ROOM = "room"  # card and RAM together are too small
    WEIGHTS = "weights"  # none that writing text reads


class TokenBound(msgspec.Struct, frozen=True, kw_only=True):
    """The most tokens a second.

    Attributes:
        missing: why there is no bound.
        tokens_per_s: of all texts together, at their full context; None without a bound.
        first_tokens_per_s: the same before there is any context.
        ram_share: the part of the layers in the PC's RAM, 0 if all are on the card; 1 on a CPU is
            not counted.
        ram_layers: the same in layers; None if their number is unknown.
        card_read_bytes, ram_read_bytes: what a step reads in either.
    """

    missing: Missing = Missing.NOTHING
    tokens_per_s: float | None = None
    first_tokens_per_s: float | None = None
    ram_share: float = 0.0
    ram_layers: int | None = None
    card_read_bytes: int = 0
    ram_read_bytes: int = 0


def token_bound(
    reading: TokenReading,
    bandwidth: Bandwidth | None,
    *,
    free_bytes: int | None = None,
    ram: Bandwidth | None = None,
    ram_bytes: int | None = None,
) -> TokenBound:
    """Return the most tokens a second on a device.

    Args:
        reading: what a step reads.
        bandwidth: that of the device; None if it was not measured.
        free_bytes: the room on the card, if the model does not fit; the other layers are in RAM.
        ram: the bandwidth of the PC's RAM.
        ram_bytes: the size of the PC's RAM; None if it is unknown.
    """
    if reading.unknown_experts:
        return TokenBound(missing=Missing.EXPERTS)
    if reading.read_weights_bytes <= 0:
        return TokenBound(missing=Missing.WEIGHTS)
    share, ram_layers = (0.0, 0) if free_bytes is None else _ram_share(reading, free_bytes)
    ram_kept_bytes = round(share * reading.kept_bytes)
    if share and ram_bytes is not None and ram_kept_bytes > ram_bytes:
        return TokenBound(missing=Missing.ROOM, ram_share=share, ram_layers=ram_layers)
    if bandwidth is None and share < 1:
        return TokenBound(missing=Missing.BANDWIDTH, ram_share=share, ram_layers=ram_layers)
    if share and ram is None:
        return TokenBound(missing=Missing.RAM_BANDWIDTH, ram_share=share, ram_layers=ram_layers)
    ram_weights_bytes, ram_cache_bytes = _ram_reading(reading, share)
    ram_read = ram_weights_bytes + ram_cache_bytes

    def per_s(card_bytes: float, ram_bytes: float) -> float:
        card_s = card_bytes / bandwidth.bytes_per_s if bandwidth and card_bytes else 0.0
        ram_s = ram_bytes / ram.bytes_per_s if ram and ram_bytes else 0.0
        return reading.batch / (card_s + ram_s)

    return TokenBound(
        tokens_per_s=per_s(reading.step_bytes - ram_read, ram_read),
        first_tokens_per_s=per_s(reading.read_weights_bytes - ram_weights_bytes, ram_weights_bytes),
        ram_share=share,
        ram_layers=ram_layers,
        card_read_bytes=reading.step_bytes - ram_read,
        ram_read_bytes=ram_read,
    )


def _ram_share(reading: TokenReading, free_bytes: int) -> tuple[float, int | None]:
    """Return the part of the layers that has to be in RAM, also in whole layers if they are known.

    What is in no layer stays on the card, unless there is no room for that.
    """
    if reading.kept_bytes <= free_bytes:
        return 0.0, 0
    if not reading.layers:
        return 1 - max(0, free_bytes) / reading.kept_bytes, None
    in_layers_bytes = reading.in_layers_bytes + reading.cache_bytes
    room_bytes = free_bytes - (reading.kept_bytes - in_layers_bytes)
    on_card = min(max(0, room_bytes * reading.layers // in_layers_bytes), reading.layers - 1)
    in_ram = reading.layers - on_card
    return (1.0 if room_bytes < 0 else in_ram / reading.layers), in_ram


def _ram_reading(reading: TokenReading, share: float) -> tuple[int, int]:
    """Return the bytes of weights and of the cache that a step reads in RAM."""
    if not reading.layers or share == 1:
        return round(share * reading.read_weights_bytes), round(share * reading.cache_bytes)
    read_bytes = reading.in_layers_bytes - reading.idle_expert_bytes
    return round(share * read_bytes), round(share * reading.cache_bytes)


# ── words ────────────────────────────────────────────────────────────────────────────────────


def bound_sentence(reading: TokenReading, bound: TokenBound, bandwidth: Bandwidth | None,
                   device: str) -> str:  # fmt: skip
    """Return the bound in a sentence, or why there is none.

    Args:
        reading: what a step reads.
        bound: its bound.
        bandwidth: that of the device.
        device: the device in words: ``this card``.
    """
    if bound.tokens_per_s is None:
        return _reason(reading, bound, device)
    with_context = f" with {format_count(reading.context)} tokens of context"
    context = with_context if reading.cache_bytes else ""
    speed = f"{three_digits(bound.tokens_per_s)} tokens a second"
    if reading.batch > 1:
        each = three_digits(bound.tokens_per_s / reading.batch)
        speed = f"{speed} for {format_count(reading.batch)} texts at once, {each} for each,"
    read = f"{format_rate(reading.step_bytes / reading.batch, 'B')} read per token"
    if bound.ram_share:
        shared = _in_ram(bound)
        return (
            f"At most {speed}{context}: {shared} in the PC's RAM, which is slower. {OTHERS_REACH}"
        )
    assert bandwidth is not None
    most = f"At most {speed} on {device}{context}"
    return f"{most}: its {bandwidth.words} over {read}. {OTHERS_REACH}"


def ram_sentence(reading: TokenReading, free_bytes: int, total_bytes: int) -> str:
    """Return whether a model fits into the PC's RAM, in a sentence."""
    fits = "fits" if reading.kept_bytes <= free_bytes else "does not fit"
    kept = "weights" if not reading.cache_bytes else "weights, KV cache and activations"
    return (
        f"{format_bytes(reading.kept_bytes)} for {kept}: this {fits} into the PC's RAM, of which "
        f"{format_bytes(free_bytes)} of {format_bytes(total_bytes)} are free."
    )


def _in_ram(bound: TokenBound) -> str:
    if bound.ram_layers is not None:
        are = "is" if bound.ram_layers == 1 else "are"
        return f"{counted(bound.ram_layers, 'layer')} {are}"
    return f"{three_digits(100 * bound.ram_share)} % of it is"


def _reason(reading: TokenReading, bound: TokenBound, device: str) -> str:
    match bound.missing:
        case Missing.EXPERTS:
            return reading.unknown_experts
        case Missing.WEIGHTS:
            return "These weights write no text: they are an encoder, or a part that guesses ahead."
        case Missing.ROOM:
            return "The card and the PC's RAM together are too small for this model."
        case Missing.RAM_BANDWIDTH:
            return (
                f"{_in_ram(bound)} in the PC's RAM, whose bandwidth has not been measured in this "
                "session."
            ).capitalize()
        case _:
            return f"The bandwidth of {device} has not been measured in this session."


def arithmetic(
    reading: TokenReading,
    bound: TokenBound,
    bandwidth: Bandwidth | None = None,
    ram: Bandwidth | None = None,
) -> list[tuple[str, str, str]]:
    """Return the arithmetic in rows: what, how much, and how that follows."""
    return [*_kept_rows(reading), *_bound_rows(reading, bound, bandwidth, ram)]


def kind_words(kind: str) -> str:
    """Return a type with its arithmetic: ``4-bit: 32 weights and a scale in 18 bytes``."""
    found = KEPT_TYPES.get(kind)
    if found is None:
        return "each tensor in its own type, as the header says"
    if found.block == 1:
        return f"{found.block_bytes} bytes a weight ({kind})"
    return (
        f"{kind}: {found.block} weights and their scale in {found.block_bytes} bytes, "
        f"{found.bits:g} bits a weight"
    )


def _kept_rows(reading: TokenReading) -> Iterator[tuple[str, str, str]]:
    yield "Weights", format_bytes(reading.weights_bytes), kind_words(reading.kind)
    if reading.rows_bytes:
        yield "− input table", format_bytes(reading.rows_bytes), "a token reads only its row"
    if reading.aside_bytes:
        yield "− other parts", format_bytes(reading.aside_bytes), "not used to write text"
    if reading.idle_expert_bytes:
        used = f"a token uses {reading.experts_used} of {format_count(reading.experts)} experts"
        if reading.batch > 1:
            used = f"{used}; at best all texts use the same"
        yield "− idle experts", format_bytes(reading.idle_expert_bytes), used
    texts = f"{format_count(reading.batch)} × " if reading.batch > 1 else ""
    if reading.unknown_cache:
        yield "KV cache", "not modeled", reading.unknown_cache
    else:
        yield (
            "+ KV cache",
            format_bytes(reading.cache_bytes),
            f"{texts}{format_count(reading.context)} tokens × {reading.cache_words} × "
            f"{reading.cache_item_bytes} bytes",
        )
    yield "= read per step", format_bytes(reading.step_bytes), _step_words(reading)
    if reading.activation_bytes:
        yield (
            "Activations",
            format_bytes(reading.activation_bytes),
            "kept, not counted as read: one step's logits, vectors and scores",
        )


def _step_words(reading: TokenReading) -> str:
    made = "one token" if reading.batch == 1 else f"{format_count(reading.batch)} tokens"
    counts = "; a separate input table counts, too" if reading.is_by_number else ""
    return f"{format_rate(reading.step_bytes, 'B')} for {made}{counts}"


def _bound_rows(
    reading: TokenReading, bound: TokenBound, bandwidth: Bandwidth | None, ram: Bandwidth | None
) -> Iterator[tuple[str, str, str]]:
    places = ((bandwidth, bound.card_read_bytes), (ram, bound.ram_read_bytes))
    terms = []
    for place, read_bytes in places:
        if place is None or not read_bytes or bound.tokens_per_s is None:
            continue
        rate, size = format_rate(place.bytes_per_s, "B/s"), format_rate(read_bytes, "B")
        how = f"{place.words} by {place.source} in this session; a step reads {size} there"
        yield "RAM" if place.is_cpu else "Card's memory", rate, how
        terms.append(f"{size} ÷ {rate}")
    if bound.tokens_per_s is not None and bound.first_tokens_per_s is not None:
        time = " + ".join(terms)
        yield "At most", f"{three_digits(bound.tokens_per_s)}/s", f"{reading.batch} ÷ ({time})"
        if reading.cache_bytes:
            yield (
                "Without context", f"{three_digits(bound.first_tokens_per_s)}/s",
                "the first token after an empty start",
            )  # fmt: skip
    if reading.trained_context and reading.context > reading.trained_context:
        yield (
            "Context", format_count(reading.context),
            f"more than the {format_count(reading.trained_context)} that the model was made for",
        )  # fmt: skip
