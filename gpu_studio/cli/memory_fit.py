"""``gpu-studio memory fit``: what fits on a device, and how fast a model would write there."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import CommandEngine, at_work
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, OneOf, Option, WrongUseError
from gpu_studio.cli.engines import new_engine
from gpu_studio.cli.memory_answer import print_answer
from gpu_studio.cli.screen import note, print_json, print_line
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.fit import OPTIMIZERS, WITH_AMP, ModelFit
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice, card_at, is_modelled
from gpu_studio.core.memory.networks import (
    AS_IN_FILE,
    BITS,
    LARGEST_CONTEXT,
    NETWORK_NAMES,
    Network,
    network_called,
)
from gpu_studio.core.memory.token_speed import (
    MOST_BATCH,
    bandwidth_of,
    bandwidth_request,
    most_tokens_per_s,
    speed_words,
)
from gpu_studio.core.memory.weights_file import ask_network
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    MemoryRead,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.message import Request
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.process.child_call import call_child

_OPTIMIZERS = dict(zip(("adam", "adam_fused", "sgd_momentum", "sgd"), OPTIMIZERS, strict=True))


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Print what fits on a device, and how fast a model would write; return the exit status."""
    device = options.device
    network, kind = options.parameters, options.dtype or "float32"
    if options.weights is not None:
        if options.dtype is not None:
            raise WrongUseError("--dtype is for --parameters: a file has its own types.")
        network, kind = ask_network(options.weights, call_child), AS_IN_FILE
    plan = _OPTIMIZERS[options.optimizer] + (WITH_AMP if options.amp else "")

    def found_on(card: ModelledCardChoice) -> ModelFit:
        return ModelFit(card, network, kind, plan, options.context, options.batch)

    if is_modelled(device):
        return _print(options, found_on(card_at(device)), None)
    environment = EngineEnvironment(allocator_configuration=options.conf or None)
    with at_work(new_engine(log_path, environment)) as work:
        found = found_on(_as_it_is(work, device))
        bandwidth = _measured(work, device)
    return _print(options, found, bandwidth)


def _print(options: argparse.Namespace, found: ModelFit, bandwidth: float | None) -> int:
    device, card = options.device, found.card
    answer = found.answer(is_ram=is_cpu(device))
    where, is_simulated = "the CPU" if is_cpu(device) else "this card", is_modelled(device)
    speed = speed_words(found, bandwidth, device=where, is_modelled=is_simulated)
    if options.json:
        values = _values(found) | {
            "device": device, "modelled": is_simulated,
            "sentence": ". ".join(one.notice.sentence for one in answer.verdicts),
            "bound_tokens_per_s": most_tokens_per_s(found, bandwidth),
            "bandwidth_bytes_per_s": bandwidth, "speed_sentence": speed[0],
        }  # fmt: skip
        print_json("memory_fit", values)
        return DONE
    if is_simulated:
        context_mib = card.context_bytes >> 20
        print_line(f"{card.name}, simulated; assumes a CUDA context of {context_mib} MiB.")
    print_answer(answer)
    for line in filter(None, speed):
        print_line(line)
    return DONE


def _values(found: ModelFit) -> dict[str, object]:
    """Return the answer's fields for JSON; a need is flat, with its least and most bytes."""
    values: dict[str, object] = {
        "type": "fit_finished", **msgspec.structs.asdict(found.card),
        "free_bytes": found.card.free_bytes, "taken_bytes": found.card.context_bytes,
        "network": found.network.name, "parameters": found.network.parameters,
        "dtype": found.kind, "plan": found.plan, "context": found.tokens, "batch": found.batch,
        "weights_bytes": found.weights_bytes, "cache_bytes": found.cache_bytes,
        "has_activations": found.has_activations,
    }  # fmt: skip
    for key, need in (("inference", found.inference), ("training", found.training)):
        values[f"{key}_bytes"] = need.least_bytes if need else None
        values[f"{key}_most_bytes"] = need.most_bytes if need else None
        values[f"{key}_fits"] = need.fits if need else None
    if not found.has_activations and values["training_fits"]:
        values["training_fits"] = None  # without its activations nobody knows
    return values


def _as_it_is(work: CommandEngine, device: str) -> ModelledCardChoice:
    """Return a device's present state: its size, and the memory already in use."""
    request: Request = ReadMemory(device=CPU)
    if not is_cpu(device):  # an allocation makes the CUDA context, which takes memory, too
        plan = AllocationPlan(size=1, count=1)
        request = RunMemoryExperiment(preset="custom", device=device, plan=plan)
    failed = f"{device} does not report its memory."
    read = work.answer(request, MemoryRead, failed=failed)
    if read.total_bytes is None or read.free_bytes is None:
        raise StudioError(FailureKind.INTERNAL, failed)
    used = read.total_bytes - read.free_bytes
    return ModelledCardChoice(name=device, total_bytes=read.total_bytes, context_bytes=used)


def _measured(work: CommandEngine, device: str) -> float | None:
    """Measure a device's bandwidth; None with a note if that does not work."""
    work.progress.show(f"Measuring the bandwidth of {device}…")
    request = bandwidth_request(device, f"bandwidth-{device}")
    try:
        result = work.answer(request, RunFinished)
    except StudioError as error:
        note(f"The bandwidth of {device} cannot be measured: {error}")
        return None
    finally:
        work.progress.clear()
    return bandwidth_of(result)


def _network(text: str) -> Network:
    network = network_called(text)
    if network is None:
        names = ", ".join(NETWORK_NAMES)
        raise ValueError(f"“{text[:20]}” is neither a number such as 7B or 1e9, nor {names}")
    return network


_OPTIONS = (
    *types.LAB_CARD,
    OneOf(
        Option(
            "--parameters", "number of parameters, such as 7B (default: %(default)s), or a known "
            "network: " + ", ".join(NETWORK_NAMES),
            metavar="N", type=types.checked(_network), default="1B",
        ),
        Option(
            "--weights", "the network of a safetensors or GGUF file, or of any part of a split one",
            metavar="FILE", type=Path,
        ),
    ),
    Option(
        "--context", "tokens of each text (default: 4096, or what the model was made for)",
        metavar="N", type=types.whole_number(1, LARGEST_CONTEXT), default=0,
    ),
    Option(
        "--batch", "texts at once (default: %(default)s)",
        metavar="N", type=types.whole_number(1, MOST_BATCH), default=1,
    ),
    Option("--dtype", "type of the weights of --parameters (float32)", choices=tuple(BITS)),
    Option("--optimizer", "default: %(default)s", choices=tuple(_OPTIMIZERS), default="adam"),
    Option("--amp", "a float32 network computes in 16 bits", action="store_true"),
)  # fmt: skip
COMMAND = Command(
    help="see what fits on a card",
    about="See whether a network fits on a card, by its number of parameters or its file of "
    "weights. For a language model, see also how many tokens a second the memory's measured "
    "bandwidth allows at most, on a card or on the CPU.",
    run=_run,
    options=_OPTIONS,
    json=JSON_OBJECT,
)
