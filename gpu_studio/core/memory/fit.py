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

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.answer import ENOUGH, FitAnswer, FitVerdict, Step
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice  # noqa: TC001
from gpu_studio.core.memory.networks import AS_IN_FILE, Network
from gpu_studio.core.memory.tank import Tank, TankPart
from gpu_studio.core.memory.token_speed import TokenReading, token_reading
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.core.units import counted, format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "sgd_momentum": "SGD with momentum"}
"""The optimizers, with their display names."""
_STATES = {"adam": 2, "adamw": 2, "sgd": 0, "sgd_momentum": 1}
PRECISIONS = {"plain": "", "amp": "AMP", "masters": "float32 masters"}
"""Whether a float32 network computes in 16 bits, or a network in 16 bits has float32 copies."""
HALF_TYPES = ("float16", "bfloat16")
_MOSTLY = 0.9
_TRAINED_TYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
_PARTS = {
    "context": ("In use", "by CUDA itself and by other programs"),
    "tensors": ("Weights", "the network itself"),
    "cache": ("Texts", "what the network keeps of each text's tokens"),
    "gradients": ("Gradients", "one number per weight, in the same type"),
    "masters": ("Copies", "float32 masters with their gradients, or AMP's 16-bit copies"),
    "moments": ("Optimizer state", "the numbers that the optimizer keeps for each weight"),
    "step": ("Step", "one more copy during step(): the square roots for all weights at once"),
    "activations": ("Activations", "what the forward pass keeps for the backward pass"),
    "free": ("Free", "left for everything that is not included"),
}


class TrainingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a network is trained: keys of `OPTIMIZERS` and `PRECISIONS`, and ``fused=True``."""

    optimizer: str = "adam"
    is_fused: bool = False
    precision: str = "plain"

    @property
    def words(self) -> str:
        """The plan in words: ``Adam (fused=True) and AMP``."""
        precision = PRECISIONS[self.precision]
        return (
            f"{OPTIMIZERS[self.optimizer]}{' (fused=True)' if self.is_fused else ''}"
            f"{f' and {precision}' if precision else ''}"
        )

    def bytes_by_purpose(self, dtype: str) -> dict[str, int]:
        """Return the bytes per parameter for each purpose, without activations."""
        own = ITEM_BYTES[dtype]
        optimized = 4 if self.precision == "masters" else own
        has_roots = self.optimizer in ("adam", "adamw") and not self.is_fused
        return {
            "tensors": own,
            "gradients": own,
            "masters": {"plain": 0, "amp": 2, "masters": 8}[self.precision],
            "moments": _STATES[self.optimizer] * optimized,
            "step": optimized if has_roots else 0,
        }


def plans_for(dtype: str) -> list[TrainingPlan]:
    """Return the plans to offer for a network's type, PyTorch's default for Adam first."""
    others = {"float32": ("amp",), **dict.fromkeys(HALF_TYPES, ("masters",))}
    return [
        TrainingPlan(optimizer=optimizer, is_fused=is_fused, precision=precision)
        for precision in ("plain", *others.get(dtype, ()))
        for optimizer in OPTIMIZERS
        for is_fused in ((False, True) if _STATES[optimizer] == 2 else (False,))
    ]


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


def _need(card: ModelledCardChoice, parts: dict[str, int], scores_bytes: int = 0) -> MemoryNeed:
    least = sum(parts.values())
    most = least + scores_bytes
    fits = False if least > card.free_bytes else None
    if most + most // 16 <= card.free_bytes:
        fits = True
    if fits is not False and scores_bytes:  # the bar shows what decides
        parts = parts | {"activations": parts["activations"] + scores_bytes}
    return MemoryNeed(least_bytes=least, most_bytes=most, fits=fits, parts=parts)


class ModelFit(msgspec.Struct, frozen=True):
    """A network on a card: what it needs there, and whether that fits.

    Attributes:
        card: the card.
        network: the network.
        dtype: the type of weights and gradients: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        plan: how to train.
        context: the tokens of each text; None for the usual number.
        batch: the number of texts at once.

    Raises:
        StudioError: a type that does not suit the plan or the file.
    """

    card: ModelledCardChoice
    network: Network
    dtype: str
    plan: TrainingPlan = TrainingPlan()
    context: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if self.plan not in plans_for(self.dtype):
            sentence = f"{self.plan.words} is not for weights in {self.dtype}."
            raise StudioError(FailureKind.DTYPE_UNSUPPORTED, sentence)
        if self.network.is_packed and self.dtype != AS_IN_FILE:
            sentence = (
                f"The weights of {self.network.name} are packed: they are known only as they are "
                "in the file."
            )
            raise StudioError(FailureKind.BAD_REQUEST, sentence)

    @property
    def reading(self) -> TokenReading:
        """What writing text keeps and reads."""
        return token_reading(self.network, self.dtype, self.context, self.batch)

    @property
    def inference(self) -> MemoryNeed:
        """The memory for the weights, and for the cache if that is known."""
        reading = self.reading
        return _need(self.card, {"tensors": reading.weights_bytes, "cache": reading.cache_bytes})

    @property
    def training(self) -> MemoryNeed | None:
        """The most memory during a step; None for a type in which PyTorch does not train."""
        trained_as = _trained_type(self.network, self.dtype)
        if trained_as is None:
            return None
        by_purpose = self.plan.bytes_by_purpose(trained_as)
        parts = {key: size * self.network.parameters for key, size in by_purpose.items()}
        activations, scores = self._activations(ITEM_BYTES[trained_as])
        return _need(self.card, {**parts, "activations": activations}, scores)

    @property
    def has_activations(self) -> bool:
        """Whether the memory for training includes the activations."""
        return self.training is not None and self.training.parts["activations"] > 0

    def _activations(self, item_bytes: int) -> tuple[int, int]:
        """Return the bytes of activations and of the attention's scores; 0 if not known."""
        config = self.network.config
        if config is None or not (config.layers and config.heads and config.width):
            return 0, 0
        item_bytes = 2 if self.plan.precision == "amp" else item_bytes
        tokens = self.context or self.network.usual_context
        if not config.vocabulary:  # a picture has as many patches as the network was made for
            tokens = config.trained_context
        kept = config.layers * tokens * self.batch * config.width * (16 * item_bytes + 2)
        scores = config.layers * config.heads * tokens**2 * self.batch * (2 * item_bytes + 1)
        return kept + 4 * tokens * self.batch * config.vocabulary, scores

    # ── in words ─────────────────────────────────────────────────────────────────────────────

    def answer(self, *, is_ram: bool = False) -> FitAnswer:
        """Return the answer in words; the PC's RAM is only for using the network."""
        kind = "as in the file" if self.dtype == AS_IN_FILE else f"in {self.dtype}"
        network = self.network.name or f"A network of {_count(self.network.parameters)} parameters"
        where = " into the PC's RAM" if is_ram else ""
        of = "" if self.reading.cache_bytes else " for its weights"
        verdicts = [_verdict(f"The model{{}}{where}", self.inference, self.card, of)]
        training = self.training
        if training is not None and not is_ram:
            verdicts.append(self._training_verdict(training))
        elif not is_ram:
            no = Notice("Training is not possible", Tone.QUIET)
            verdicts.append(FitVerdict(no, told=f"PyTorch does not train it {kind}."))
        steps = tuple(self._steps())
        return FitAnswer(tuple(verdicts), f"{network} {kind}.", steps, self._details())

    def _training_verdict(self, need: MemoryNeed) -> FitVerdict:
        what = f"Training with {self.plan.words}"
        of = "" if self.has_activations else ", without activations"
        found = _verdict(f"{what}{{}}", need, self.card, of)
        if self.has_activations or not need.fits:
            return found
        notice = Notice(f"? {what}: the activations are not known", Tone.AMBER)
        return found._replace(notice=notice)

    def _details(self) -> str:
        reading = self.reading
        texts = f"{counted(reading.batch, 'text')} of {format_count(reading.context)}"
        activations = "Activations often need the most."
        if self.has_activations:
            activations = (
                f"The activations are those of a batch of {texts} tokens, by the formula of "
                "Korthikanti et al. 2022."
            )
        count = f"{_count(self.network.parameters)} parameters. A line marks the end of the card."
        return " ".join(filter(None, (count, reading.words, reading.unknown_cache, activations)))

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
        change, plan = msgspec.structs.replace, self.plan
        for texts in dict.fromkeys((self.batch // 2, 1)):
            if 0 < texts < self.batch:
                yield f"A batch of {texts}", change(self, batch=texts)
        for words, other in (
            ("AMP (torch.autocast)", change(plan, precision="amp")),
            ("fused=True", change(plan, is_fused=True)),
            ("SGD with momentum", change(plan, optimizer="sgd_momentum", is_fused=False)),
        ):
            if other in plans_for(self.dtype):
                yield words, change(self, plan=other)
        for kept in () if self.network.is_packed else ("bfloat16", "8-bit", "4-bit"):
            plain = change(plan, precision="plain")
            yield f"Weights in {kept}", change(self, dtype=kept, plan=plain)


def _verdict(what: str, need: MemoryNeed, card: ModelledCardChoice, of: str) -> FitVerdict:
    """Return whether ``what`` fits, which has a place for that; ``of`` ends what it needs."""
    notice = Notice(f"✔ {what.format(' fits')}", Tone.GOOD)
    if need.fits is False:
        missing = format_bytes(need.least_bytes - card.free_bytes)
        lacks = f"✖ {what.format(' does not fit')}: {missing} more needed"
        notice = Notice(lacks, Tone.FAILURE)
    elif need.fits is None:
        may = f"? {what.format(' may fit')}: nearly all of the room is needed"
        notice = Notice(may, Tone.AMBER)
    return FitVerdict(notice, need.tank(card), f"Needs {need.range_text}{of}.")


def _trained_type(network: Network, dtype: str) -> str | None:
    """Return the type to train in; None if PyTorch does not train in it."""
    if dtype in ITEM_BYTES:
        return dtype
    types = network.types_bytes
    if dtype != AS_IN_FILE or network.is_packed or not types:
        return None
    main = max(types, key=lambda name: types[name])
    return _TRAINED_TYPES.get(main) if types[main] > _MOSTLY * network.size_bytes else None


def _count(number: int) -> str:
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:g} {word}"
    return str(number)
