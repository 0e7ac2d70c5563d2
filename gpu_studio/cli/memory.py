"""``gpu-studio memory`` and ``explain``: the memory lab, what fits, and what an error means."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import CommandEngine, Printer, at_work
from gpu_studio.cli.command import (
    DONE,
    DOUBTFUL,
    JSON_OBJECT,
    OneOf,
    Option,
    WrongUseError,
    command,
    group,
)
from gpu_studio.cli.output import give, note, print_line
from gpu_studio.cli.pc import new_engine
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.errors.log import MOST_READ_BYTES, decoded_text
from gpu_studio.core.errors.reader import read_error
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory import fit, modelled_cards, networks
from gpu_studio.core.memory.fit import OPTIMIZERS, WITH_AMP, ModelFit
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice, is_modelled
from gpu_studio.core.memory.outcome import outcome_notice
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.memory.replay import replay_call as replay
from gpu_studio.core.memory.replay.history import NO_HISTORY
from gpu_studio.core.memory.replay.what_if import WhatIf
from gpu_studio.core.memory.replay.what_if_words import history_answer
from gpu_studio.core.memory.tank import FitAnswer
from gpu_studio.core.memory.weights_file import ask_network
from gpu_studio.core.messages import memory_messages as messages
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.tensors import DTYPES, LARGEST_SIZE
from gpu_studio.core.units import format_bytes
from gpu_studio.core.user_file import UnusableFileError, open_user_file
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from gpu_studio.process.child_call import call_child


def _answer_lines(answer: FitAnswer) -> Iterator[str]:
    """Yield the verdicts with their memory, what decides them, and what helps."""
    for verdict in answer.verdicts:
        yield verdict.notice.sentence
        tank = verdict.tank
        for part, memory, share, meaning in tank.rows() if tank is not None else ():
            yield f"  {part:<16}{memory:>12}{share:>8}  {meaning}"
        if tank is not None and tank.card_bytes is not None:
            beyond = format_bytes(tank.total_bytes - tank.card_bytes)
            yield f"  {beyond} of this is beyond {format_bytes(tank.card_bytes)}."
        if verdict.told:
            yield f"  {verdict.told}"
    yield answer.sentence
    for number, step in enumerate(answer.steps, 1):
        enough = f" ({step.enough})" if step.enough else ""
        yield f"{number}. {step.what}: {step.how}{enough}."
    if answer.details:
        yield answer.details


# ── the memory lab ───────────────────────────────────────────────────────────────────────────────

_MOST_MIB = 1 << 30
_MOST_TENSORS = 1_000_000


@command(
    Option(
        "--preset", "the experiment; see “memory experiments”",
        metavar="NAME", choices=[preset.name for preset in PRESETS], required=True,
    ),
    *types.LAB_CARD,
    OneOf(
        Option(
            "--budget-mib", "the most memory PyTorch may reserve",
            metavar="N", type=types.whole_number(1, _MOST_MIB),
        ),
        Option(
            "--whole-card", "no budget: a desktop on the card may stutter or lose windows",
            action="store_true",
        ),
    ),
    Option(
        "--size", "with --preset custom: a tensor's side (default: %(default)s)",
        metavar="N", type=types.whole_number(1, LARGEST_SIZE), default=1024,
    ),
    Option(
        "--count", "with --preset custom: number of tensors (default: until it fails)",
        metavar="N", type=types.whole_number(1, _MOST_TENSORS),
    ),
    Option(
        "--dtype", "with --preset custom: the tensors' dtype (default: %(default)s)",
        choices=DTYPES, default="float32",
    ),
)  # fmt: skip
def _run_experiment(options: argparse.Namespace, log_path: Path) -> int:
    """Run an experiment of the memory lab.

    Without --budget-mib, PyTorch may reserve three quarters of the free memory, or all of it on a
    simulated card.
    """
    request, printer = _experiment(options), _LabPrinter()
    environment = EngineEnvironment(allocator_configuration=options.conf or None)
    is_simulated = is_modelled(options.device)
    engine = ModelledEngine(environment) if is_simulated else new_engine(log_path, environment)
    with at_work(engine, is_json=options.json) as work:
        work.run([request], printer)
    return work.exit_status(is_done=printer.is_done)


def _experiment(options: argparse.Namespace) -> RunMemoryExperiment:
    """Return the experiment that the options describe."""
    plan, budget_mib = None, options.budget_mib
    if options.preset == "custom":
        plan = messages.AllocationPlan(
            size=options.size, count=options.count, dtype=options.dtype
        )  # fmt: skip
    # A budget leaves memory to the desktop and to other programs; a simulated card has neither.
    is_free = budget_mib is None and is_modelled(options.device)
    return RunMemoryExperiment(
        preset=options.preset,
        device=options.device,
        plan=plan,
        budget_bytes=None if budget_mib is None else budget_mib << 20,
        whole_card=options.whole_card or is_free,
    )


class _LabPrinter(Printer):
    """The stages of an experiment, and how it ended."""

    is_done = False

    def apply(self, event: Event) -> str:
        self.is_done = isinstance(event, messages.OomFinished)
        if not isinstance(event, messages.MemoryRead) or event.allocated_bytes is None:
            return ""
        allocated, reserved = event.allocated_bytes, event.reserved_bytes or 0
        return f"{format_bytes(allocated)} allocated, {format_bytes(reserved)} reserved"

    def as_json(self, event: Event) -> Event | None:
        return None if isinstance(event, messages.SegmentsRead) else event

    def show(self, event: Event) -> None:
        if isinstance(event, messages.StageBegan):
            print_line(event.sentence)
        elif isinstance(event, messages.OomFinished):
            for line in _end_lines(event):
                print_line(line)


def _end_lines(finished: messages.OomFinished) -> Iterator[str]:
    outcome = outcome_notice(finished)
    yield outcome.sentence + (" (simulated; no card was used)" if finished.modelled else "")
    yield outcome.detail
    yield outcome.next_step


@command(json=JSON_OBJECT)
def _list_experiments(options: argparse.Namespace, _log_path: Path) -> None:
    """List the experiments of the memory lab."""
    lines = (f"{preset.name:<16}{preset.title}: {preset.sentence}" for preset in PRESETS)
    give("presets", PRESETS, lines, options, name="presets")


@command(json=JSON_OBJECT)
def _list_cards(options: argparse.Namespace, _log_path: Path) -> None:
    """List the simulated cards with their memory and where it is from."""
    cards, table = modelled_cards.modelled_cards(), modelled_cards.modelled_card_table()
    values = [
        {"name": c.name, "device": c.address, "total_bytes": c.total_bytes,
         "context_bytes": c.context_bytes}
        for c in cards
    ]  # fmt: skip
    lines = [
        f"{c.address:<14}{c.name:<30}{format_bytes(c.total_bytes)}, context "
        f"{format_bytes(c.context_bytes)}"
        for c in cards
    ]
    lines += ["", table.source, table.context_source]
    give("modelled_cards", values, lines, options, name="cards")


# ── what fits ────────────────────────────────────────────────────────────────────────────────────

_OPTIMIZERS = dict(zip(("adam", "adam_fused", "sgd_momentum", "sgd"), OPTIMIZERS, strict=True))


def _network(text: str) -> networks.Network:
    network = networks.network_called(text)
    if network is None:
        names = ", ".join(networks.NETWORK_NAMES)
        raise ValueError(f"“{text[:20]}” is neither a number such as 7B or 1e9, nor {names}")
    return network


@command(
    *types.LAB_CARD,
    OneOf(
        Option(
            "--parameters", "number of parameters, such as 7B (default: %(default)s), or a known "
            "network: " + ", ".join(networks.NETWORK_NAMES),
            metavar="N", type=types.checked(_network), default="1B",
        ),
        Option(
            "--weights", "the network of a safetensors or GGUF file, or of any part of a split one",
            metavar="FILE", type=Path,
        ),
    ),
    Option(
        "--context", "tokens of each text (default: 4096, or what the model was made for)",
        metavar="N", type=types.whole_number(1, networks.LARGEST_CONTEXT), default=0,
    ),
    Option(
        "--batch", "texts at once (default: %(default)s)",
        metavar="N", type=types.whole_number(1, fit.MOST_BATCH), default=1,
    ),
    Option(
        "--dtype", "type of the weights of --parameters (float32)", choices=tuple(networks.BITS)
    ),
    Option("--optimizer", "default: %(default)s", choices=tuple(_OPTIMIZERS), default="adam"),
    Option("--amp", "a float32 network computes in 16 bits", action="store_true"),
    json=JSON_OBJECT,
)  # fmt: skip
def _fit(options: argparse.Namespace, log_path: Path) -> None:
    """See whether a network fits on a card.

    The network is known by its number of parameters or its file of weights. For a language model,
    see also how many tokens a second the memory's measured bandwidth allows at most, on a card or
    on the CPU.
    """
    device, bandwidth = options.device, None
    network, kind = options.parameters, options.dtype or "float32"
    if options.weights is not None:
        if options.dtype is not None:
            raise WrongUseError("--dtype is for --parameters: a file has its own types.")
        network, kind = ask_network(options.weights, call_child), networks.AS_IN_FILE
    if is_modelled(device):
        card = modelled_cards.card_at(device)
    else:
        environment = EngineEnvironment(allocator_configuration=options.conf or None)
        with at_work(new_engine(log_path, environment)) as work:
            card, bandwidth = _as_it_is(work, device), _measured(work, device)
    plan = _OPTIMIZERS[options.optimizer] + (WITH_AMP if options.amp else "")
    found = ModelFit(card, network, kind, plan, options.context, options.batch)
    answer, is_simulated = found.answer(is_ram=is_cpu(device)), is_modelled(device)
    where = "the CPU" if is_cpu(device) else "this card"
    speed = fit.speed_words(found, bandwidth, device=where, is_modelled=is_simulated)
    values = _fit_values(found) | {
        "device": device, "modelled": is_simulated,
        "sentence": ". ".join(one.notice.sentence for one in answer.verdicts),
        "bound_tokens_per_s": fit.most_tokens_per_s(found, bandwidth),
        "bandwidth_bytes_per_s": bandwidth, "speed_sentence": speed[0],
    }  # fmt: skip
    lines = [*_answer_lines(answer), *filter(None, speed)]
    if is_simulated:
        context_mib = card.context_bytes >> 20
        lines.insert(0, f"{card.name}, simulated; assumes a CUDA context of {context_mib} MiB.")
    give("fit_finished", values, lines, options)


def _fit_values(found: ModelFit) -> dict[str, object]:
    """Return the answer's fields for JSON; a need is flat, with its least and most bytes."""
    values: dict[str, object] = {
        **msgspec.structs.asdict(found.card),
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
    request: Request = messages.ReadMemory(device=CPU)
    if not is_cpu(device):  # an allocation makes the CUDA context, which takes memory, too
        plan = messages.AllocationPlan(size=1, count=1)
        request = RunMemoryExperiment(preset="custom", device=device, plan=plan)
    failed = f"{device} does not report its memory."
    read = work.answer(request, messages.MemoryRead, failed=failed)
    if read.total_bytes is None or read.free_bytes is None:
        raise StudioError(FailureKind.INTERNAL, failed)
    used = read.total_bytes - read.free_bytes
    return ModelledCardChoice(name=device, total_bytes=read.total_bytes, context_bytes=used)


def _measured(work: CommandEngine, device: str) -> float | None:
    """Measure a device's bandwidth; None with a note if that does not work."""
    work.progress.show(f"Measuring the bandwidth of {device}…")
    request = fit.bandwidth_request(device, f"bandwidth-{device}")
    try:
        return fit.bandwidth_of(work.answer(request, RunFinished))
    except StudioError as error:
        note(f"The bandwidth of {device} cannot be measured: {error}")
        return None
    finally:
        work.progress.clear()


# ── a recorded history ───────────────────────────────────────────────────────────────────────────


@command(
    Option("file", "a file of torch.cuda.memory._dump_snapshot", metavar="FILE", type=Path),
    Option("--card", "a card's memory, such as 8GiB", metavar="SIZE", type=types.memory),
    Option(
        "--other", "what other programs and CUDA's context hold of it, such as 500MiB",
        metavar="SIZE", type=types.memory,
    ),
    types.conf("other options, as in PYTORCH_CUDA_ALLOC_CONF (default: the recorded ones)", None),
    Option(
        "--index", "the card of the recorded program (default: the first one with memory)",
        metavar="N", type=types.whole_number(0, 255),
    ),
    json=JSON_OBJECT,
)  # fmt: skip
def _replay(options: argparse.Namespace, _log_path: Path) -> None:
    """Replay a recorded history of memory, and see whether it fits on another card.

    The model of PyTorch's allocator replays the history in a memory snapshot, on another card or
    with other options. Record one with torch.cuda.memory._record_memory_history() and
    _dump_snapshot(FILE).
    """
    opened = replay.ask(replay.OpenHistory(os.fsencode(options.file), options.index), call_child)
    if not isinstance(opened, replay.OpenedHistory):
        raise StudioError(FailureKind.BAD_REQUEST, NO_HISTORY)
    conf = opened.facts.conf if options.conf is None else options.conf
    found: WhatIf | None = None
    if options.card is not None or options.conf is not None:
        question = replay.AskWhatIf(
            history=opened.history, card_bytes=options.card, other_bytes=options.other or 0,
            conf=conf,
        )  # fmt: skip
        answered = replay.ask(question, call_child)
        assert isinstance(answered, replay.AnsweredWhatIf)
        found = answered.found
    value = {
        "allocations": opened.facts.allocations, "recorded_conf": opened.facts.conf,
        "peak_allocated_bytes": opened.modelled.peak_allocated_bytes,  # according to the model
        "peak_reserved_bytes": opened.facts.peak_reserved_bytes, "what_if": found,
    }  # fmt: skip
    shown = found or opened.modelled
    lines = [*_answer_lines(history_answer(opened, shown))]
    if shown.failure:
        lines.append(shown.failure)
    for one in opened.facts.at_peak:
        lines.append(f"  {format_bytes(one.size_bytes):>10}  {one.line or 'unknown line'}")
    give("memory_replay", value, lines, options)


# ── an error ─────────────────────────────────────────────────────────────────────────────────────


@command(
    Option(
        "file", "a file with the error or a whole log (default: standard input)",
        metavar="FILE", nargs="?", default="-",
    ),
    json=JSON_OBJECT,
)  # fmt: skip
def _explain(options: argparse.Namespace, _log_path: Path) -> int:
    """Explain an error of ComfyUI, vLLM, llama.cpp, whisper, PyTorch and others.

    It says what kind the error is, what it says of card and build, and what to try in that program.
    The status is 3 if the error is not known.
    """
    text = decoded_text(_content(options.file))
    if not text.strip():
        raise StudioError(FailureKind.BAD_REQUEST, "This text is empty.")
    reading = read_error(text)
    answer = reading.answer
    value = {
        "kind": reading.kind,
        "program": reading.program,
        "headline": answer.verdicts[0].notice.sentence,
        "sentence": answer.sentence,
        "facts": {fact.what: fact.value for fact in reading.facts},
        "numbers": msgspec.to_builtins(reading.numbers),
        "steps": [{"what": step.what, "how": step.how} for step in answer.steps],
        "errors": reading.errors,
        "source": reading.source,
    }
    give("error_explained", value, _answer_lines(answer), options)
    return DONE if reading.is_known else DOUBTFUL


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(MOST_READ_BYTES)
    try:
        with open_user_file(Path(name)) as file:
            return file.read(MOST_READ_BYTES)
    except UnusableFileError as error:
        raise WrongUseError(f"Cannot open “{name[:80]}”: {error}.") from error
    except OSError as error:
        raise WrongUseError(f"Cannot read “{name[:80]}”: {error.strerror or error}.") from error


COMMANDS = {
    "memory": group(
        "See where a card's memory goes: cause an out-of-memory error safely, or see what fits.",
        {
            "oom": _run_experiment, "experiments": _list_experiments, "fit": _fit,
            "replay": _replay, "cards": _list_cards,
        },
    ),
    "explain": _explain,
}  # fmt: skip
