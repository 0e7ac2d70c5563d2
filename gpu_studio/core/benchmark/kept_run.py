"""A finished run as a file of the history, which may also come from another PC.

A file is JSON with a schema version. Its samples are base64 of little-endian float64, which keeps
every bit, and a million of them under 11 MB. A checksum tells a damaged file from a valid one.
Reading a file runs nothing and follows no name in it. The result is either a run with plausible
numbers, or a sentence that says why not.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.message import LONGEST_S, SHORTEST_S, Message
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.record_json import decode_results
from gpu_studio.core.statistics import quantile
from gpu_studio.core.texts import plain_text
from gpu_studio.core.user_file import UnusableFileError, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


SCHEMA = 1
LARGEST_FILE_BYTES = 32 << 20  # 2.9 million samples: more than an hour at 2 ms each
LONGEST_NAME = 120
LONGEST_IDENTITY = 200
_LONGEST_TEXT = 2000
_MOST_ENTRIES = 256
_MOST_POINTS = 100_000
_LARGEST_SIZE = 1 << 40
# The text of a `msgspec.ValidationError` about a range: Expected `int` >= 1 - at `$.samples`
_BOUND = re.compile(r"Expected `(int|float)` [<>]=? ")
# How far a file's median may differ from that of its own samples: only by rounding.
_MEDIAN_WITHIN = 1e-3
# The factor between two times of one run that a file may claim: a card's own clock leaves out what
# the race's clock has between two batches. Half of the steps take at least the median.
TIMES_WITHIN = 3.0
# In the other direction, a few stalled steps may take most of a race.
_STALLED_WITHIN = 100.0


class KeptTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a run that a file has beside its result."""

    budget_s: float

    def check_time(self) -> None:
        """Raise `StudioError` unless it is one."""
        if not 0 < self.budget_s <= LONGEST_S:
            raise refused("its time budget is invalid")


class KeptHeader(KeptTime, frozen=True, kw_only=True):
    """A kept run without its samples, for lists; ``name`` is empty until the user gives one.

    ``kept_at`` is the time in ISO 8601. ``card`` is the `Device.identity` of the run's device on
    this PC; it does not leave the PC. Empty for a run from elsewhere or of an older version, which
    is known by its device's name only. ``sha256`` is that of the file with this field empty.
    ``is_unchecked``: it was read from a file without a checksum, and says so for good.
    """

    schema: int = SCHEMA
    sha256: str = ""
    is_unchecked: bool = False
    card: Annotated[str, msgspec.Meta(max_length=LONGEST_IDENTITY)] = ""
    name: str = ""
    kept_at: str
    result: RunFinished


class KeptRun(KeptHeader, frozen=True, kw_only=True):
    """A kept run; ``samples`` are its timings in seconds per call, little-endian float64."""

    samples: bytes = b""


_T = TypeVar("_T")
_Header = TypeVar("_Header", bound=KeptHeader)
_Message = TypeVar("_Message", bound=Message)


class _Probe(msgspec.Struct):
    schema: int
    sha256: str = ""


def kept_of(run: Run, kept_at: str, name: str = "") -> KeptRun:
    """Return a finished run in its kept form.

    Args:
        run: a run with a result.
        kept_at: the present time in ISO 8601.
        name: the user's name for it.
    """
    assert run.result is not None, "only finished runs are kept"
    return KeptRun(
        name=name,
        kept_at=kept_at,
        budget_s=run.request.budget_s,
        result=run.result,
        card=run.card[:LONGEST_IDENTITY],
        samples=run.series.values.astype("<f8").tobytes(),
    )


def run_of(kept: KeptRun) -> Run:
    """Return a kept run as a finished one with its samples, to be drawn."""
    import numpy as np  # 80 ms

    run, samples_s = finished_run(kept.result), np.frombuffer(kept.samples, "<f8")
    run.series.append(samples_s, samples_s.cumsum() * run.calls_per_sample)
    return run


def finished_run(result: RunFinished) -> Run:
    """Return a result from elsewhere as a run that is finished; it has no samples."""
    is_naive = result.details.naive is not None
    run = Run(RunWorkload(run_id=result.run_id, **result.parameters, naive=is_naive))
    run.calls_per_sample = result.calls_per_sample
    run.recording, run.size_text = result.recording, result.size_text
    run.state, run.result = RunState.FINISHED, result
    return run


def encode_kept(kept: KeptRun) -> bytes:
    """Return the file contents for a kept run, with their checksum."""
    content = msgspec.json.encode(msgspec.structs.replace(kept, sha256=""))
    return _with_sum(content, "", hashlib.sha256(content).hexdigest()) + b"\n"


def without_card(kept: KeptRun) -> KeptRun:
    """Return a run as it leaves this PC, or comes from another one: without a card's UUID."""
    return msgspec.structs.replace(kept, card="")


def decode_header(content: bytes) -> KeptHeader:
    """Return the header from a file's contents; it refuses the same files as `decode_kept`."""
    return _checked(_decoded(content, KeptHeader))


def decode_kept(content: bytes) -> KeptRun:
    """Return the run from a file's contents.

    Raises:
        StudioError: the contents have another form, a later schema or implausible numbers; the
            sentence says which.
    """
    kept = _checked(_decoded(content, KeptRun))
    check_samples(kept.result, kept.samples)
    return kept


def check_result(result: RunFinished) -> RunFinished:
    """Return a foreign result with displayable texts: one line, no control characters.

    Its type holds the range of every other number (`core.messages.message`).

    Raises:
        StudioError: its numbers contradict each other, or a text is too long.
    """
    low, high = result.ci95_s
    if not low <= result.median_s <= high:
        raise refused("its interval does not contain its median")
    if not 1 <= result.size <= _LARGEST_SIZE:
        raise refused("its size is invalid")
    if sum(map(len, result.details.curves.values())) > _MOST_POINTS:
        raise refused("it has a curve that is too long")
    _check_race(result)
    return check_texts(result)


def _check_race(result: RunFinished) -> None:
    """Raise `StudioError` if the times of a race's run contradict each other.

    Such a run is raced against, so it must not be faster than its own steps.
    """
    outcome, timed_s = result.outcome, result.times.timed_s
    if outcome is None:
        return
    if outcome.reached and outcome.progress < 1:
        raise refused("its race says that it finished, and that it did not")
    steps_s = outcome.steps * result.median_s
    if not steps_s / TIMES_WITHIN <= outcome.seconds <= _STALLED_WITHIN * steps_s:
        raise refused("the seconds of its race contradict the steps and their median")
    if timed_s is not None and not are_alike(timed_s, outcome.seconds):
        raise refused("the seconds of its race contradict its timed seconds")
    check_way(result.details.curves.get("seconds", ()), outcome.seconds)


def check_way(elapsed_s: Sequence[float], seconds: float) -> None:
    """Raise `StudioError` unless a run's way ends when its race does; no way is fine.

    Args:
        elapsed_s: the time of each of its moments by the race's clock.
        seconds: those of its outcome.
    """
    if elapsed_s and (
        list(elapsed_s) != sorted(elapsed_s) or not are_alike(elapsed_s[-1], seconds)
    ):
        raise refused("the way to the finish line contradicts the seconds of its race")


def are_alike(one_s: float, other_s: float) -> bool:
    """Return whether two times of one run differ by at most `TIMES_WITHIN`."""
    return max(one_s, other_s) <= TIMES_WITHIN * min(one_s, other_s)


def check_texts(message: _Message) -> _Message:
    """Return a foreign message with every text in one line.

    Raises:
        StudioError: a text or a list in it is too long.
    """
    return msgspec.convert(_cleaned(msgspec.to_builtins(message)), type(message))


def check_samples(result: RunFinished, samples: bytes) -> None:
    """Raise `StudioError` unless the samples match a result; no samples are fine."""
    import numpy as np  # 80 ms

    if len(samples) % 8:
        raise refused("its samples are cut off")
    values = np.frombuffer(samples, "<f8")
    if not len(values):
        return
    if not ((values >= SHORTEST_S) & (values <= LONGEST_S)).all():
        raise refused("it has a sample that is not a time")
    if len(values) != result.samples:
        raise refused(f"it has {len(values)} samples instead of {result.samples}")
    # np.median would import numpy.ma: in the window, 4 MiB for ever.
    if not math.isclose(
        quantile(np.sort(values).tolist(), 0.5), result.median_s, rel_tol=_MEDIAN_WITHIN
    ):
        raise refused("its samples contradict its median")
    is_raced = result.outcome is not None
    sampled_s = float(values.sum()) * result.calls_per_sample
    if (
        is_raced
        and result.times.timed_s is not None
        and not are_alike(sampled_s, result.times.timed_s)
    ):
        raise refused("its samples contradict its timed seconds")


def clean_name(text: str) -> str:
    """Return a name in its kept form: one line without control characters, not too long."""
    return " ".join(plain_text(text).split())[:LONGEST_NAME]


def refused(reason: str) -> StudioError:
    """Return the error that refuses a file."""
    return StudioError(FailureKind.FILE_REFUSED, f"This file is refused: {reason}.")


def read_results(path: Path, is_over: Callable[[], bool] = lambda: False) -> bytes:
    """Return the contents of a file with results from elsewhere.

    Raises:
        StudioError: it cannot be read, is not an ordinary file, or is larger than any result.
    """
    try:
        return read_user_file(path, LARGEST_FILE_BYTES, is_over)
    except UnusableFileError as error:
        raise refused(str(error)) from error


def decode_json(content: bytes, kind: type[_T]) -> _T:
    """Return JSON as a type; unknown fields are skipped.

    Raises:
        StudioError: it is not of that type, or is nested deeper than this program's files.
    """
    try:
        return decode_results(content, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = number_trouble(error) or "it is damaged, or not a GPU Studio result"
        raise refused(reason) from error
    except RecursionError as error:
        raise refused("it is nested too deeply") from error


def number_trouble(error: Exception) -> str:
    """Return the reason if msgspec refused a number by its range; otherwise nothing."""
    return "it has a number out of range" if _BOUND.match(str(error)) else ""


def _decoded(content: bytes, kind: type[_Header]) -> _Header:
    probe = decode_json(content, _Probe)
    if probe.schema > SCHEMA:
        raise refused(f"a newer GPU Studio wrote it (schema {probe.schema})")
    if probe.schema < 1:
        raise refused("its schema number is invalid")
    if probe.sha256:
        summed = _with_sum(content.strip(), probe.sha256, "")
        if hashlib.sha256(summed).hexdigest() != probe.sha256:
            raise refused("it was damaged or changed after it was written")
    kept = decode_json(content, kind)
    is_unchecked = kept.is_unchecked or not probe.sha256
    return msgspec.structs.replace(kept, sha256="", is_unchecked=is_unchecked)


def _with_sum(content: bytes, old: str, new: str) -> bytes:
    """Return a file's contents with another checksum in its field, which is the first so called."""
    return content.replace(b'"sha256":"%s"' % old.encode(), b'"sha256":"%s"' % new.encode(), 1)


def _checked(kept: _Header) -> _Header:
    kept.check_time()
    return msgspec.structs.replace(
        kept,
        result=check_result(kept.result),
        name=clean_name(kept.name),
        kept_at=plain_text(kept.kept_at)[:40],
        card=plain_text(kept.card),
    )


def _cleaned(value: Any) -> Any:
    """Return plain JSON values with every text in one line; refuse texts that are too long."""
    if isinstance(value, str):
        if len(value) > _LONGEST_TEXT:
            raise refused("it has a text that is too long")
        return plain_text(value)
    if isinstance(value, dict):
        _refuse_many(value)
        return {_cleaned(name): _cleaned(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        # `check_result` counts the points of a curve, the only list of floats that may be long.
        if value and not isinstance(value[0], float):
            _refuse_many(value)
        return [_cleaned(entry) for entry in value]
    return value


def _refuse_many(entries: Sequence[Any] | dict[Any, Any]) -> None:
    if len(entries) > _MOST_ENTRIES:
        raise refused("it has a list that is too long")
