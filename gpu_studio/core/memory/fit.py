"""What fits on a card: a network's inference and training.

A network's need is the sum of its parts. PyTorch's allocator rounds and packs tensors, and a step
needs some memory of its own, so within a sixteenth of the room the answer is neither yes nor no.

Training, from torch 2.13's torch/optim: Adam and AdamW keep two numbers per weight. On a card they
compute the square roots of one of them for all weights at once, a whole additional copy, which
``fused=True`` does without. SGD needs nothing more; with momentum it keeps one number per weight.
Activations are those of Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
Transformer Models", section 4: sbh (34 + 5 as/h) bytes a layer in 16 bits, and 4sbv for the loss.
The term with s² is the attention's scores, which fused attention does not keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice  # noqa: TC001
from gpu_studio.core.memory.networks import AS_IN_FILE, Network
from gpu_studio.core.memory.tank import ENOUGH, FitAnswer, FitVerdict, Step, Tank, TankPart
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import counted, format_bytes, format_count, format_rate, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator


class TrainingPlan(NamedTuple):
    """How a network is trained.

    Attributes:
        moments: the numbers that the optimizer keeps for each weight.
        roots: the further ones that its step takes for a moment.
        is_amp: whether a float32 network computes in 16 bits (torch.autocast).
    """

    moments: int = 0
    roots: int = 0
    is_amp: bool = False


OPTIMIZERS = {
    "Adam": TrainingPlan(2, 1),
    "Adam (fused=True)": TrainingPlan(2),
    "SGD with momentum": TrainingPlan(1),
    "SGD": TrainingPlan(),
}
"""The optimizers by their names, PyTorch's default for Adam first."""
WITH_AMP = " and AMP"
PLANS = {
    f"{name}{amp}": plan._replace(is_amp=bool(amp))
    for amp in ("", WITH_AMP)
    for name, plan in OPTIMIZERS.items()
}
"""The ways to train by their names: without AMP, and with it."""
_TRAINED_BYTES = {"float32": 4, "16-bit": 2}
_PARTS = {
    "context": ("In use", "by CUDA itself and by other programs"),
    "tensors": ("Weights", "the network itself"),
    "cache": ("Texts", "what the network keeps of each text's tokens"),
    "gradients": ("Gradients", "one number per weight, in the same type"),
    "copies": ("Copies", "of the weights in 16 bits, for AMP"),
    "moments": ("Optimizer state", "the numbers that the optimizer keeps for each weight"),
    "step": ("Step", "one more copy during step(): the square roots for all weights at once"),
    "activations": ("Activations", "what the forward pass keeps for the backward pass"),
    "free": ("Free", "left for everything that is not included"),
}
_NO_CACHE = (
    "The KV cache is not included: nothing says that every layer keeps the keys and values of the "
    "whole context. The config.json beside a safetensors file does."
)


class MemoryNeed(msgspec.Struct, frozen=True, kw_only=True):
    """The memory for a purpose: a range if the scores of the attention may be kept or not.

    Attributes:
        fits: whether a card has room for it; None if that is not certain.
        parts: the bytes by purpose, in the order of the tank.
    """

    least_bytes: int
    most_bytes: int
    fits: bool | None
    parts: dict[str, int]

    @property
    def range_text(self) -> str:
        """The need in words: ``9.31 GiB to 14.0 GiB``."""
        least, most = format_bytes(self.least_bytes), format_bytes(self.most_bytes)
        return least if least == most else f"{least} to {most}"

    def tank(self, card: ModelledCardChoice) -> Tank:
        """Return the memory on a card, with the card's end if it needs more than there is."""
        sizes = {"context": card.context_bytes, **self.parts}
        needed = sum(sizes.values())
        is_over = needed > card.total_bytes
        if not is_over:
            sizes["free"] = card.total_bytes - needed
        parts = [
            TankPart(key=key, label=_PARTS[key][0], size_bytes=size, explanation=_PARTS[key][1])
            for key, size in sizes.items()
            if size or key in ("context", "free")
        ]
        return Tank(
            total_bytes=max(needed, card.total_bytes),
            parts=tuple(parts),
            card_bytes=card.total_bytes if is_over else None,
        )


class ModelFit(msgspec.Struct, frozen=True):
    """A network on a card: what it needs there, and whether that fits.

    Attributes:
        card: the card.
        network: the network.
        kind: the type of weights and gradients: `AS_IN_FILE` or a key of `BITS`.
        plan: how to train: a key of `PLANS`.
        asked_tokens: of each text; 0 for the usual number.
        batch: the number of texts at once.
    """

    card: ModelledCardChoice
    network: Network
    kind: str
    plan: str = "Adam"
    asked_tokens: int = 0
    batch: int = 1

    @property
    def tokens(self) -> int:
        """The tokens of each text."""
        return self.asked_tokens or self.network.usual_context

    @property
    def weights_bytes(self) -> int:
        """All weights."""
        return self.network.kept_bytes(self.kind)

    @property
    def cache_bytes(self) -> int:
        """Keys and values of all texts, as wide as the weights in 16 or 32 bits; 0 if unknown."""
        config = self.network.config
        numbers = config.cache_numbers(self.tokens) if config is not None else 0
        return self.batch * numbers * _TRAINED_BYTES.get(self._own_kind, 2)

    @property
    def _own_kind(self) -> str:
        return self.network.own_type if self.kind == AS_IN_FILE else self.kind

    @property
    def inference(self) -> MemoryNeed:
        """The memory for the weights, and for the cache if that is known."""
        return self._need({"tensors": self.weights_bytes, "cache": self.cache_bytes})

    @property
    def training(self) -> MemoryNeed | None:
        """The most memory during a step; None for a type in which PyTorch does not train."""
        own = _TRAINED_BYTES.get(self._own_kind)
        if own is None:
            return None
        plan, count = PLANS[self.plan], self.network.parameters
        activations, scores = self._activations(2 if plan.is_amp else own)
        parts = {
            "tensors": own * count,
            "gradients": own * count,
            "copies": 2 * count if plan.is_amp and own > 2 else 0,
            "moments": plan.moments * own * count,
            "step": plan.roots * own * count,
            "activations": activations,
        }
        return self._need(parts, scores)

    @property
    def has_activations(self) -> bool:
        """Whether the memory for training includes the activations."""
        return self.training is not None and self.training.parts["activations"] > 0

    def _activations(self, item_bytes: int) -> tuple[int, int]:
        """Return the bytes of activations and of the attention's scores; 0 if not known."""
        config = self.network.config
        if config is None or not (config.layers and config.heads and config.width):
            return 0, 0
        tokens = self.tokens * self.batch
        kept = config.layers * tokens * config.width * (16 * item_bytes + 2)
        scores = config.layers * config.heads * self.tokens * tokens * (2 * item_bytes + 1)
        return kept + 4 * tokens * config.vocabulary, scores

    def _need(self, parts: dict[str, int], scores_bytes: int = 0) -> MemoryNeed:
        least, free_bytes = sum(parts.values()), self.card.free_bytes
        most = least + scores_bytes
        fits = False if least > free_bytes else None
        if most + most // 16 <= free_bytes:
            fits = True
        if fits is not False and scores_bytes:  # the bar shows what decides
            parts = parts | {"activations": parts["activations"] + scores_bytes}
        return MemoryNeed(least_bytes=least, most_bytes=most, fits=fits, parts=parts)

    # ── in words ─────────────────────────────────────────────────────────────────────────────

    def answer(self, *, is_ram: bool = False) -> FitAnswer:
        """Return the answer in words; the PC's RAM is only for using the network."""
        kind = AS_IN_FILE if self.kind == AS_IN_FILE else f"in {self.kind}"
        network = self.network.name or f"A network of {_count(self.network.parameters)} parameters"
        where = " into the PC's RAM" if is_ram else ""
        of = "" if self.cache_bytes else " for its weights"
        verdicts = [self._verdict(f"The model{{}}{where}", self.inference, of)]
        if not is_ram and not self.network.note:
            verdicts.append(self._training_verdict())
        sentence = self.network.note or f"{network} {kind}."
        return FitAnswer(tuple(verdicts), sentence, tuple(self._steps()), self._details())

    def _training_verdict(self) -> FitVerdict:
        need, what = self.training, f"Training with {self.plan}"
        if need is None:
            no = Notice("Training is not possible", Tone.QUIET)
            return FitVerdict(no, told="It needs weights in float32 or 16 bits.")
        of = "" if self.has_activations else ", without activations"
        found = self._verdict(f"{what}{{}}", need, of)
        if self.has_activations or not need.fits:
            return found
        notice = Notice(f"? {what}: the activations are not known", Tone.AMBER)
        return found._replace(notice=notice)

    def _verdict(self, what: str, need: MemoryNeed, of: str) -> FitVerdict:
        """Return whether ``what`` fits, which has a place for that; ``of`` ends what it needs."""
        notice = Notice(f"✔ {what.format(' fits')}", Tone.GOOD)
        if need.fits is False:
            missing = format_bytes(need.least_bytes - self.card.free_bytes)
            lacks = f"✖ {what.format(' does not fit')}: {missing} more needed"
            notice = Notice(lacks, Tone.FAILURE)
        elif need.fits is None:
            may = f"? {what.format(' may fit')}: nearly all of the room is needed"
            notice = Notice(may, Tone.AMBER)
        return FitVerdict(notice, need.tank(self.card), f"Needs {need.range_text}{of}.")

    def _details(self) -> str:
        config, cache = self.network.config, _NO_CACHE
        texts = f"{counted(self.batch, 'text')} of {format_count(self.tokens)} tokens"
        if self.cache_bytes and config is not None:
            cache = f"KV cache: {format_bytes(self.cache_bytes)}. {config.cache_words}."
            if config.state_numbers:
                state = format_bytes(4 * self.batch * config.state_numbers)
                cache += f" The state of the other layers is not included: about {state}."
        formula = "Activations often need the most."
        if self.has_activations:
            formula = f"Activations of {texts} by the formula of Korthikanti et al. 2022."
        count = f"{_count(self.network.parameters)} parameters, {texts}."
        if not self.network.parameters:
            return f"The number of parameters is not known. {texts}. {cache}"
        return f"{count} A line marks the end of the card. {cache} {formula}"

    def _steps(self) -> Iterator[Step]:
        """Yield what makes a network fit that does not, then the card that is large enough."""
        is_used = self.inference.fits is True
        lacks = self.training if is_used else self.inference
        if lacks is None or lacks.fits is True:
            return
        for words, other in self._others():
            need = other.training if is_used else other.inference
            if need is not None and need.most_bytes < lacks.most_bytes:
                yield Step(words, f"needs {need.range_text}", ENOUGH[need.fits])
        enough = format_bytes(lacks.most_bytes + lacks.most_bytes // 16)
        yield Step("A larger card", f"with {enough} free", ENOUGH[True])

    def _others(self) -> Iterator[tuple[str, ModelFit]]:
        """Yield other ways to use the network; some of them may need no less memory."""
        change, amp = msgspec.structs.replace, WITH_AMP if PLANS[self.plan].is_amp else ""
        if not self.network.parameters:
            return
        for texts in dict.fromkeys((self.batch // 2, 1)):
            if 0 < texts < self.batch:
                yield f"A batch of {texts}", change(self, batch=texts)
        if not amp:
            yield "AMP (torch.autocast)", change(self, plan=self.plan + WITH_AMP)
        for optimizer in ("Adam (fused=True)", "SGD with momentum"):
            yield optimizer, change(self, plan=optimizer + amp)
        for kind in () if self.network.is_packed else ("16-bit", "8-bit", "4-bit"):
            yield f"Weights in {kind}", change(self, kind=kind)


def _count(number: int) -> str:
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:g} {word}"
    return str(number)


# ── how fast ─────────────────────────────────────────────────────────────────────────────────────

# To write one token, a plain model reads all its weights and the whole KV cache once. So no program
# is faster than the measured bandwidth divided by these bytes, whatever it computes, as long as a
# step makes one token for each text. With several texts at once, each step reads the weights for
# all of them and the cache of each.
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
