"""``gpu-studio memory`` and ``explain``: the memory lab, what fits, and what an error means."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import CommandEngine, Printer, at_work
from gpu_studio.cli.command import (
    DONE,
    DOUBTFUL,
    JSON_OBJECT,
    Command,
    OneOf,
    Option,
    WrongUseError,
)
from gpu_studio.cli.output import note, print_json, print_line, print_list
from gpu_studio.cli.pc import new_engine
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.engine import Engine, EngineEnvironment
from gpu_studio.core.errors.log import MOST_READ_BYTES, decoded_text
from gpu_studio.core.errors.reader import ErrorReading, read_error
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.experiment import check_experiment
from gpu_studio.core.memory.fit import OPTIMIZERS, WITH_AMP, ModelFit
from gpu_studio.core.memory.modelled_cards import (
    ModelledCardChoice,
    card_at,
    is_modelled,
    modelled_card_table,
    modelled_cards,
    needs_budget,
)
from gpu_studio.core.memory.networks import (
    AS_IN_FILE,
    BITS,
    LARGEST_CONTEXT,
    NETWORK_NAMES,
    Network,
    network_called,
)
from gpu_studio.core.memory.outcome import outcome_notice
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.memory.replay.history import NO_HISTORY
from gpu_studio.core.memory.replay.replay_call import (
    AnsweredSmallest,
    AnsweredWhatIf,
    AskSmallest,
    AskWhatIf,
    OpenedHistory,
    OpenHistory,
    ask,
)
from gpu_studio.core.memory.replay.what_if import WhatIf
from gpu_studio.core.memory.replay.what_if_words import history_answer
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
    OomFinished,
    ReadMemory,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.tensors import DTYPES, LARGEST_SIZE
from gpu_studio.core.units import format_bytes
from gpu_studio.core.user_file import UnusableFileError, open_user_file
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from gpu_studio.process.child_call import call_child

if TYPE_CHECKING:
    from gpu_studio.core.memory.answer import FitAnswer, FitVerdict


def print_answer(answer: FitAnswer) -> None:
    """Print the verdicts with their memory, what decides them, and what helps."""
    for verdict in answer.verdicts:
        _print_verdict(verdict)
    print_line(answer.sentence)
    for number, step in enumerate(answer.steps, 1):
        enough = f" ({step.enough})" if step.enough else ""
        print_line(f"{number}. {step.what}: {step.how}{enough}.")
    if answer.details:
        print_line(answer.details)


def _print_verdict(verdict: FitVerdict) -> None:
    print_line(verdict.notice.sentence)
    tank = verdict.tank
    for part, memory, share, meaning in tank.rows() if tank is not None else ():
        print_line(f"  {part:<16}{memory:>12}{share:>8}  {meaning}")
    if tank is not None and tank.card_bytes is not None:
        beyond = format_bytes(tank.total_bytes - tank.card_bytes)
        print_line(f"  {beyond} of this is beyond {format_bytes(tank.card_bytes)}.")
    if verdict.told:
        print_line(f"  {verdict.told}")


_OPTIMIZERS = dict(zip(("adam", "adam_fused", "sgd_momentum", "sgd"), OPTIMIZERS, strict=True))


def _fit(options: argparse.Namespace, log_path: Path) -> int:
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
        return _print_fit(options, found_on(card_at(device)), None)
    environment = EngineEnvironment(allocator_configuration=options.conf or None)
    with at_work(new_engine(log_path, environment)) as work:
        found = found_on(_as_it_is(work, device))
        bandwidth = _measured(work, device)
    return _print_fit(options, found, bandwidth)


def _print_fit(options: argparse.Namespace, found: ModelFit, bandwidth: float | None) -> int:
    device, card = options.device, found.card
    answer = found.answer(is_ram=is_cpu(device))
    where, is_simulated = "the CPU" if is_cpu(device) else "this card", is_modelled(device)
    speed = speed_words(found, bandwidth, device=where, is_modelled=is_simulated)
    if options.json:
        values = _fit_values(found) | {
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


def _fit_values(found: ModelFit) -> dict[str, object]:
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


_FIT_OPTIONS = (
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
_FIT = Command(
    help="see what fits on a card",
    about="See whether a network fits on a card, by its number of parameters or its file of "
    "weights. For a language model, see also how many tokens a second the memory's measured "
    "bandwidth allows at most, on a card or on the CPU.",
    run=_fit,
    options=_FIT_OPTIONS,
    json=JSON_OBJECT,
)


class ReplayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What ``memory replay --json`` prints; sizes in bytes.

    Attributes:
        allocations: how many tensors the recorded program made.
        peak_allocated_bytes: the most that tensors held, according to the model.
        peak_reserved_bytes: the most that the recorded program reserved.
        what_if: on the card and with the options of the command; None if none were given.
        fits_from_bytes: with ``--smallest``; None if it fits on no card.
    """

    allocations: int
    recorded_conf: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    what_if: WhatIf | None
    fits_from_bytes: int | None


def _replay(options: argparse.Namespace, _log_path: Path) -> int:
    """Replay a history; return the exit status."""
    opened = ask(OpenHistory(os.fsencode(options.file), options.index), call_child)
    if not isinstance(opened, OpenedHistory):
        raise StudioError(FailureKind.BAD_REQUEST, NO_HISTORY)
    conf = opened.conf if options.conf is None else options.conf
    found = _what_if(opened, options, conf)
    smallest = _smallest(opened, options, conf)
    if options.json:
        print_json(
            "memory_replay",
            ReplayAnswer(
                allocations=opened.allocations,
                recorded_conf=opened.conf,
                peak_allocated_bytes=opened.modelled.peak_allocated_bytes,
                peak_reserved_bytes=opened.peak_reserved_bytes,
                what_if=found,
                fits_from_bytes=None if smallest is None else smallest.card_bytes,
            ),
        )
        return DONE
    shown = found or opened.modelled
    print_answer(history_answer(opened, shown, smallest))
    if shown.failure:
        print_line(shown.failure)
    for one in opened.at_peak:
        print_line(f"  {format_bytes(one.size_bytes):>10}  {one.line or 'unknown line'}")
    return DONE


def _what_if(opened: OpenedHistory, options: argparse.Namespace, conf: str) -> WhatIf | None:
    if options.card is None and options.conf is None:
        return None
    question = AskWhatIf(
        history=opened.history, card_bytes=options.card, other_bytes=options.other or 0, conf=conf
    )
    answered = ask(question, call_child)
    assert isinstance(answered, AnsweredWhatIf)
    return answered.found


def _smallest(
    opened: OpenedHistory, options: argparse.Namespace, conf: str
) -> AnsweredSmallest | None:
    if not options.smallest:
        return None
    question = AskSmallest(history=opened.history, other_bytes=options.other or 0, conf=conf)
    answered = ask(question, call_child)
    assert isinstance(answered, AnsweredSmallest)
    return answered


_REPLAY_OPTIONS = (
    Option("file", "a file of torch.cuda.memory._dump_snapshot", metavar="FILE", type=Path),
    Option("--card", "a card's memory, such as 8GiB", metavar="SIZE", type=types.memory),
    Option(
        "--other", "what other programs and CUDA's context hold of it, such as 500MiB",
        metavar="SIZE", type=types.memory,
    ),
    types.conf("other options, as in PYTORCH_CUDA_ALLOC_CONF (default: the recorded ones)", None),
    Option("--smallest", "find the smallest card on which it fits", action="store_true"),
    Option(
        "--index", "the card of the recorded program (default: the first one with memory)",
        metavar="N", type=types.whole_number(0, 255),
    ),
)  # fmt: skip
_REPLAY = Command(
    help="replay a recorded history of memory, and see whether it fits on another card",
    about="Replay the history in a memory snapshot with the model of PyTorch's allocator, and see "
    "what it would take on another card or with other options. Record one with "
    "torch.cuda.memory._record_memory_history() and _dump_snapshot(FILE).",
    run=_replay,
    options=_REPLAY_OPTIONS,
    json=JSON_OBJECT,
)


def _explain(options: argparse.Namespace, _log_path: Path) -> int:
    text = decoded_text(_content(options.file))
    if not text.strip():
        raise StudioError(FailureKind.BAD_REQUEST, "This text is empty.")
    reading = read_error(text)
    if options.json:
        print_json("error_explained", _reading_values(reading))
    else:
        print_answer(reading.answer)
    return DONE if reading.is_known else DOUBTFUL


def _reading_values(reading: ErrorReading) -> dict[str, object]:
    answer = reading.answer
    return {
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


_ERROR_FILE = Option(
    "file", "a file with the error or a whole log (default: standard input)",
    metavar="FILE", nargs="?", default="-",
)  # fmt: skip
_EXPLAIN = Command(
    about="Explain an error of ComfyUI, vLLM, llama.cpp, whisper, PyTorch and others: what kind it "
    "is, what it says of card and build, and what to try in that program. The status is 3 if the "
    "error is not known.",
    run=_explain,
    options=(_ERROR_FILE,),
    json=JSON_OBJECT,
)


_MOST_MIB = 1 << 30
_MOST_TENSORS = 1_000_000


def _list_experiments(options: argparse.Namespace, _log_path: Path) -> int:
    lines = (f"{preset.name:<16}{preset.title}: {preset.sentence}" for preset in PRESETS)
    print_list("presets", PRESETS, lines, as_json=options.json)
    return DONE


def _engine_for(device: str, conf: str, log_path: Path) -> Engine:
    """Return an engine for a device; it starts with these allocator options."""
    environment = EngineEnvironment(allocator_configuration=conf or None)
    if is_modelled(device):
        return ModelledEngine(environment)
    return new_engine(log_path, environment)


def _run_experiment(options: argparse.Namespace, log_path: Path) -> int:
    request, printer = _experiment(options), _Printer()
    engine = _engine_for(options.device, options.conf, log_path)
    with at_work(engine, is_json=options.json) as work:
        work.run([request], printer)
    return work.exit_status(is_done=printer.is_done)


class _Printer(Printer):
    """The stages of an experiment, and how it ended."""

    is_done = False

    def apply(self, event: Event) -> str:
        self.is_done = isinstance(event, OomFinished)
        if not isinstance(event, MemoryRead) or event.allocated_bytes is None:
            return ""
        allocated, reserved = event.allocated_bytes, event.reserved_bytes or 0
        return f"{format_bytes(allocated)} allocated, {format_bytes(reserved)} reserved"

    def as_json(self, event: Event) -> Event | None:
        return None if isinstance(event, SegmentsRead) else event

    def show(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            print_line(event.sentence)
        elif isinstance(event, OomFinished):
            _print_end(event)


def _experiment(options: argparse.Namespace) -> RunMemoryExperiment:
    """Return the experiment that the options describe."""
    plan = None
    if options.preset == "custom":
        plan = AllocationPlan(
            size=options.size,
            count=options.count,
            dtype=options.dtype,
        )
    budget_mib = options.budget_mib
    request = RunMemoryExperiment(
        preset=options.preset,
        device=options.device,
        plan=plan,
        budget_bytes=None if budget_mib is None else budget_mib << 20,
        whole_card=options.whole_card or (budget_mib is None and not needs_budget(options.device)),
        snapshot_path=str(options.save or ""),
    )
    try:
        check_experiment(request)
    except StudioError as error:
        raise WrongUseError(str(error)) from error
    return request


def _print_end(finished: OomFinished) -> None:
    outcome = outcome_notice(finished)
    modelled = " (simulated; no card was used)" if finished.modelled else ""
    for stage in finished.stages:
        print_line(f"  {stage.stage}: {stage.sentence}")
    print_line(f"{outcome.sentence}{modelled}")
    print_line(outcome.detail)
    print_line(outcome.next_step)
    if finished.snapshot_path:
        print_line(f"The snapshot is in {finished.snapshot_path}.")


def _list_cards(options: argparse.Namespace, _log_path: Path) -> int:
    cards, table = modelled_cards(), modelled_card_table()
    if options.json:
        values = [
            {"name": c.name, "device": c.address, "total_bytes": c.total_bytes,
             "context_bytes": c.context_bytes}
            for c in cards
        ]  # fmt: skip
        print_json("modelled_cards", {"cards": values})
        return DONE
    for card in cards:
        context = format_bytes(card.context_bytes)
        print_line(
            f"{card.address:<14}{card.name:<30}{format_bytes(card.total_bytes)}, context {context}"
        )
    print_line()
    print_line(table.source)
    print_line(table.context_source)
    return DONE


_OOM = (
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
    types.save("write a memory snapshot", ".pickle"),
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
_MEMORY = Command(
    about="See where a card's memory goes: cause an out-of-memory error safely, or see what fits.",
    parts={
        "oom": Command(
            help="run an experiment of the memory lab",
            about="Run an experiment of the memory lab. Without --budget-mib, PyTorch may reserve "
            "three quarters of the free memory, or all of it on a simulated card.",
            run=_run_experiment,
            options=_OOM,
        ),
        "experiments": Command(
            help="list the experiments",
            about="List the experiments of the memory lab.",
            run=_list_experiments,
            json=JSON_OBJECT,
        ),
        "fit": _FIT,
        "replay": _REPLAY,
        "cards": Command(
            help="list the simulated cards",
            about="List the simulated cards with their memory and where it is from.",
            run=_list_cards,
            json=JSON_OBJECT,
        ),
    },
)
COMMANDS = {"memory": _MEMORY, "explain": _EXPLAIN}
