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

import math
import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.answer import ENOUGH, Answer, FitVerdict, Step
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


def _activations(
    network: Network, item_bytes: int, batch: int, context: int | None
) -> tuple[int, int]:
    """Return the bytes of activations and of the attention's scores; 0 if not known."""
    config = network.config
    if config is None or not (config.layers and config.heads and config.width):
        return 0, 0
    tokens = context or network.usual_context
    if not config.vocabulary:  # a picture has as many patches as the network was made for
        tokens = config.trained_context
    kept = config.layers * tokens * batch * config.width * (16 * item_bytes + 2)
    scores = config.layers * config.heads * tokens**2 * batch * (2 * item_bytes + 1)
    return kept + 4 * tokens * batch * config.vocabulary, scores


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


class ModelFit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a network fits.

    Attributes:
        network: the network's name; empty if only its number of parameters is known.
        dtype: the type of the weights: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        inference: the memory for the weights, and for the cache if `reading` has it.
        reading: what writing text keeps and reads.
        training: the most memory during a step; None for a type in which PyTorch does not train.
        has_activations: whether that includes the activations.
    """

    card: ModelledCardChoice
    network: str
    parameters: int
    dtype: str
    inference: MemoryNeed
    reading: TokenReading
    training: MemoryNeed | None
    has_activations: bool
    plan: TrainingPlan
    steps: tuple[Step, ...] = ()

    def answer(self, *, is_ram: bool = False) -> Answer:
        """Return the answer in words; the PC's RAM is only for using the network."""
        where = " into the PC's RAM" if is_ram else ""
        is_text = self.reading.cache_bytes > 0
        what = "Inference" if is_text else "The weights"
        use = _verdict(what, self.inference, self.card, is_plural=not is_text, where=where)
        verdicts = (use,) if is_ram else (use, self._training_verdict())
        return Answer(verdicts, self._sentence(is_ram=is_ram), self.steps, self._details())

    def _training_verdict(self) -> FitVerdict:
        if self.training is None:
            kind = "these weights" if self.dtype == AS_IN_FILE else f"weights in {self.dtype}"
            no = Notice("Training is not possible", Tone.QUIET)
            return FitVerdict(no, told=f"PyTorch does not train {kind}.")
        if self.has_activations:
            return _verdict(f"Training with {self.plan.words}", self.training, self.card)
        what = f"Weights and {self.plan.words}"
        return _verdict(what, self.training, self.card, is_plural=True, rest="activations")

    def _sentence(self, *, is_ram: bool) -> str:
        kind = "as in the file" if self.dtype == AS_IN_FILE else f"in {self.dtype}"
        network = self.network or f"A network of {_count(self.parameters)} parameters"
        needs = f"{network} {kind} needs {self.inference.range_text}."
        if self.training is None or is_ram:
            return needs
        activations = "" if self.has_activations else ", and activations, which are not known"
        plan, need = self.plan.words, self.training.range_text
        return f"{needs} Training with {plan} needs {need}{activations}."

    def _details(self) -> str:
        reading = self.reading
        texts = f"{counted(reading.batch, 'text')} of {format_count(reading.context)}"
        activations = "Activations often need the most." if self.training is not None else ""
        if self.has_activations:
            activations = (
                f"The activations are those of a batch of {texts} tokens, by the formula of "
                "Korthikanti et al. 2022."
            )
        count = f"{_count(self.parameters)} parameters."
        return " ".join(filter(None, (count, reading.words, reading.unknown_cache, activations)))


def _verdict(
    what: str,
    need: MemoryNeed,
    card: ModelledCardChoice,
    *,
    is_plural: bool = False,
    where: str = "",
    rest: str = "",
) -> FitVerdict:
    """Return whether something fits; what is not known of it (``rest``) makes the answer amber."""
    fits, does = ("fit", "do") if is_plural else ("fits", "does")
    notice = Notice(f"✔ {what} {fits}{where}", Tone.GOOD)
    if need.fits is False:
        missing = format_bytes(need.least_bytes - card.free_bytes)
        notice = Notice(f"✖ {what} {does} not fit{where}: {missing} more needed", Tone.FAILURE)
    elif need.fits is None:
        notice = Notice(f"? {what} may fit{where}: nearly all of the room is needed", Tone.AMBER)
    elif rest:
        notice = Notice(f"? {what} {fits}; {rest} are not known", Tone.AMBER)
    tank = need.tank(card)
    beyond = "" if tank.card_bytes is None else " The line marks the end of the card."
    without = f", without {rest}" if rest else ""
    return FitVerdict(notice, tank, f"Needs {need.range_text}{without}.{beyond}")


def model_fit(
    card: ModelledCardChoice,
    network: Network,
    dtype: str,
    plan: TrainingPlan | None = None,
    *,
    context: int | None = None,
    batch: int = 1,
) -> ModelFit:
    """Return whether a network can be used and trained on a card, and what helps if not.

    Args:
        card: the card.
        network: the network.
        dtype: the type of weights and gradients: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        plan: how to train; if None, with Adam and PyTorch's defaults.
        context: the tokens of each text; None for the usual number.
        batch: the number of texts at once.

    Raises:
        StudioError: a type that does not suit the plan or the file.
    """
    plan = plan or TrainingPlan()
    if plan not in plans_for(dtype):
        sentence = f"{plan.words} is not for weights in {dtype}."
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, sentence)
    if network.is_packed and dtype != AS_IN_FILE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The weights of {network.name} are packed: they are known only as they are in the "
            "file.",
        )
    reading, inference = _kept(card, network, dtype, context, batch)
    training = _training(card, network, dtype, plan, context, batch)
    found = ModelFit(
        card=card,
        network=network.name,
        parameters=network.parameters,
        dtype=dtype,
        inference=inference,
        reading=reading,
        training=training,
        has_activations=training is not None and training.parts["activations"] > 0,
        plan=plan,
    )
    return msgspec.structs.replace(found, steps=tuple(_steps(found, network, context)))


def _training(
    card: ModelledCardChoice,
    network: Network,
    dtype: str,
    plan: TrainingPlan,
    context: int | None,
    batch: int,
) -> MemoryNeed | None:
    trained_as = _trained_type(network, dtype)
    if trained_as is None:
        return None
    item_bytes = 2 if plan.precision == "amp" else ITEM_BYTES[trained_as]
    activations, scores = _activations(network, item_bytes, batch, context)
    by_purpose = plan.bytes_by_purpose(trained_as)
    parts = {key: size * network.parameters for key, size in by_purpose.items()}
    return _need(card, {**parts, "activations": activations}, scores)


def _kept(
    card: ModelledCardChoice, network: Network, dtype: str, context: int | None, batch: int
) -> tuple[TokenReading, MemoryNeed]:
    reading = token_reading(network, dtype, context, batch)
    parts = {"tensors": reading.weights_bytes, "cache": reading.cache_bytes}
    return reading, _need(card, parts)


def _steps(found: ModelFit, network: Network, context: int | None) -> Iterator[Step]:
    """Yield what makes a network fit that does not, then the card that is large enough."""
    card, is_used = found.card, found.inference.fits is True
    lacks = found.training if is_used else found.inference
    if lacks is None or lacks.fits is True:
        return
    for words, dtype, plan, batch in _other_ways(found):
        if network.is_packed and dtype != found.dtype:
            continue
        _, need = _kept(card, network, dtype, context, batch)
        other = _training(card, network, dtype, plan, context, batch) if is_used else need
        if other is not None and other.most_bytes < lacks.most_bytes:
            yield Step(words, f"needs {other.range_text}", ENOUGH[other.fits])
    enough = format_bytes(lacks.most_bytes + lacks.most_bytes // 16)
    yield Step("A larger card", f"with {enough} free", ENOUGH[True])


def _other_ways(found: ModelFit) -> Iterator[tuple[str, str, TrainingPlan, int]]:
    """Yield words, type, plan and batch; some of them may need no less memory."""
    plan, dtype, batch = found.plan, found.dtype, found.reading.batch
    change = msgspec.structs.replace
    for texts in dict.fromkeys((batch // 2, 1)):
        if 0 < texts < batch:
            yield (f"A batch of {texts}", dtype, plan, texts)
    for words, other in (
        ("AMP (torch.autocast)", change(plan, precision="amp")),
        ("fused=True", change(plan, is_fused=True)),
        ("SGD with momentum", change(plan, optimizer="sgd_momentum", is_fused=False)),
    ):
        if other in plans_for(dtype):
            yield (words, dtype, other, batch)
    for kept in ("bfloat16", "8-bit", "4-bit"):
        yield (f"Weights in {kept}", kept, change(plan, precision="plain"), batch)


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


_SCALES = {
    "": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "b": 10**9, "g": 10**9,
    "billion": 10**9, "t": 10**12, "trillion": 10**12,
}  # fmt: skip
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)([a-z]*)", re.ASCII)


def parse_count(text: str) -> int | None:
    """Return a number of parameters as people write it: ``7B``, ``350 M``, ``1e9``, ``1,000``.

    None for anything else.
    """
    plain = re.sub(r"[\s,_'’]", "", text.strip().lower())
    match = _COUNT.fullmatch(plain)
    if match is None or match[2] not in _SCALES:
        return None
    count = float(match[1]) * _SCALES[match[2]]
    return round(count) if math.isfinite(count) else None
