"""How fast a language model would write, for ``gpu-studio memory fit``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import at_work, new_engine
from gpu_studio.cli.command import DONE, WrongUseError
from gpu_studio.cli.screen import note, print_json, print_line
from gpu_studio.core.device_name import CPU
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, known_network, network_of_count
from gpu_studio.core.memory.token_speed import (
    MOST_BATCH,
    Bandwidth,
    Missing,
    TokenBound,
    TokenReading,
    arithmetic,
    bandwidth_of,
    bandwidth_request,
    bound_sentence,
    ram_sentence,
    token_bound,
    token_reading,
)
from gpu_studio.core.memory.weights.model_config import LARGEST_CONTEXT
from gpu_studio.core.memory.weights.weight_types import KEPT_TYPES
from gpu_studio.core.memory.weights.weights_call import (
    LONGEST_S,
    MEMORY_BYTES,
    MODULE,
    MOST_ANSWER_BYTES,
    ask_weights,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    import argparse

    from gpu_studio.cli.answers import CommandEngine
    from gpu_studio.core.memory.fit import ModelFit
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice

_USUAL_PARAMETERS = 10**9
_WIDTH = 18


class Speed(NamedTuple):
    """The answer: fields for JSON, a sentence, and the arithmetic in rows; empty if not asked."""

    values: dict[str, Any]
    sentence: str
    rows: tuple[tuple[str, str, str], ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what decides what a language model keeps and reads."""
    parser.add_argument(
        "--config", metavar="FILE", type=Path,
        help="the model's config.json (default: the one next to a safetensors file)",
    )  # fmt: skip
    parser.add_argument(
        "--context", metavar="N", type=types.whole_number(1, LARGEST_CONTEXT),
        help="tokens of each text (default: 4096, or what the model was made for)",
    )  # fmt: skip
    parser.add_argument(
        "--batch", metavar="N", type=types.whole_number(1, MOST_BATCH), default=1,
        help="texts written at once (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=tuple(KEPT_TYPES),
        help="type of the weights (default: as they are in the file, otherwise float32)",
    )  # fmt: skip


def network_of(options: argparse.Namespace) -> Network:
    """Return the network asked about; raises `StudioError` for a file that cannot be used."""
    known = known_network(options.network) if options.network else None
    if known is not None:
        if options.config is not None:
            raise WrongUseError("--config is for --weights or --parameters.")
        return known
    count = options.parameters or _USUAL_PARAMETERS
    if options.weights is None and options.config is None:
        return network_of_count(count)
    call = ChildCall(MODULE, memory_bytes=MEMORY_BYTES)
    ask = partial(call.run, longest_s=LONGEST_S, most_bytes=MOST_ANSWER_BYTES)
    found = ask_weights(options.weights, options.config, ask)
    return found if options.weights is not None else network_of_count(count, found.config)


def kind_of(options: argparse.Namespace) -> str:
    """Return the type of the weights: `AS_IN_FILE` or a key of `KEPT_TYPES`."""
    usual = AS_IN_FILE if options.weights is not None else "float32"
    kind: str = options.dtype or usual
    return kind


def speed_on(
    card: ModelledCardChoice, fit: ModelFit, options: argparse.Namespace, log_path: Path
) -> Speed:
    """Return how fast a network would write on a card; its bandwidth is measured for that."""
    if not any((options.weights, options.config, options.parameters, options.context,
                not fit.reading.unknown_cache)):  # fmt: skip
        return Speed({}, "", ())
    room_bytes = card.free_bytes if fit.inference.fits is False else None
    bandwidth = ram = ram_bytes = None
    if not is_modelled(options.device):
        with at_work(new_engine(log_path)) as work:
            bandwidth = _measured(work, options.device)
            if room_bytes is not None:
                _, ram_bytes = _ram_sizes(work)
                ram = _measured(work, CPU)
    bound = token_bound(fit.reading, bandwidth, free_bytes=room_bytes, ram=ram, ram_bytes=ram_bytes)
    if is_modelled(options.device) and bound.missing is Missing.BANDWIDTH:
        sentence = "A simulated card has no bandwidth to measure, so its speed is not modeled."
    else:
        sentence = bound_sentence(fit.reading, bound, bandwidth, "this card")
    return _speed(fit.reading, bound, bandwidth, ram, sentence)


def show_in_ram(options: argparse.Namespace, log_path: Path) -> int:
    """Print whether a network fits into the PC's RAM, and how fast it would write there."""
    network = network_of(options)
    reading = token_reading(network, kind_of(options), options.context, options.batch)
    with at_work(new_engine(log_path)) as work:
        free_bytes, total_bytes = _ram_sizes(work)
        bandwidth = _measured(work, CPU)
    fits = ram_sentence(reading, free_bytes, total_bytes)
    bound = token_bound(reading, bandwidth)
    sentence = bound_sentence(reading, bound, bandwidth, "the CPU")
    speed = _speed(reading, bound, bandwidth, None, sentence)
    if options.json:
        print_json(
            {
                "type": "fit_finished", "device": CPU, "modelled": False, "network": network.name,
                "parameters": network.parameters, "dtype": reading.kind,
                "total_bytes": total_bytes, "free_bytes": free_bytes,
                "inference_bytes": reading.kept_bytes,
                "inference_fits": reading.kept_bytes <= free_bytes, **speed.values,
                "sentence": f"{fits} {sentence}",
            }
        )  # fmt: skip
        return DONE
    print_line(fits)
    print_speed(speed)
    return DONE


def print_speed(speed: Speed) -> None:
    """Print the sentence and the arithmetic."""
    if not speed.sentence:
        return
    print_line(speed.sentence)
    print_line()
    for what, much, how in speed.rows:
        print_line(f"  {what:<{_WIDTH}}{much:>12}  {how}")


def _speed(
    reading: TokenReading, bound: TokenBound, bandwidth: Bandwidth | None, ram: Bandwidth | None,
    sentence: str,
) -> Speed:  # fmt: skip
    values = {
        **{f"speed_{key}": value for key, value in msgspec.structs.asdict(reading).items()},
        "speed_read_bytes": reading.step_bytes,
        "bound_missing": bound.missing.value,
        "bound_tokens_per_s": bound.tokens_per_s,
        "bound_first_tokens_per_s": bound.first_tokens_per_s,
        "bound_ram_layers": bound.ram_layers,
        "bandwidth_bytes_per_s": bandwidth.bytes_per_s if bandwidth else None,
        "ram_bandwidth_bytes_per_s": ram.bytes_per_s if ram else None,
        "speed_sentence": sentence,
    }
    return Speed(values, sentence, tuple(arithmetic(reading, bound, bandwidth, ram)))


def _measured(work: CommandEngine, device: str) -> Bandwidth | None:
    """Measure a device's bandwidth; None with a note if that does not work."""
    work.progress.show(f"Measuring the bandwidth of {device}…")
    for event in work.answers(bandwidth_request(device, f"bandwidth-{device}")):
        if work.interrupt.is_asked:
            raise KeyboardInterrupt
        match event:
            case RunFinished():
                work.progress.clear()
                return bandwidth_of(event)
            case RunFailed() | RequestFailed():
                work.progress.clear()
                note(f"The bandwidth of {device} cannot be measured: {event.failure.message}")
            case EngineEnded():
                work.progress.clear()
                note(describe_exit(event.exit_code))
    return None


def _ram_sizes(work: CommandEngine) -> tuple[int, int]:
    """Return the free memory and the size of the PC's RAM, in bytes."""
    for event in work.answers(ReadMemory(device=CPU)):
        if isinstance(event, MemoryRead) and event.total_bytes and event.free_bytes is not None:
            return event.free_bytes, event.total_bytes
    raise StudioError(FailureKind.INTERNAL, "The PC's memory cannot be read.")
