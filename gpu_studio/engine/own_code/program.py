"""A user's code, ready to be called for a device and a size.

Either it has a function ``work``, or each of its lines is the work. See `docs/own-code.md`.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from functools import lru_cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpu_studio.core.benchmark.own_code import whole_text
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.tensors import LARGEST_SIZE
from gpu_studio.engine.device import accelerator, accelerator_of, first_card
from gpu_studio.engine.own_code import stand_in
from gpu_studio.engine.own_code.errors import explained, no_python
from gpu_studio.engine.own_code.limits import NAME, PRINTS, WATCH, threads_left
from gpu_studio.engine.own_code.rewriting import CARDS, DEVICE, Rewritten, compiled
from gpu_studio.engine.workloads.call import FunctionCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_studio.core.messages.run_messages import OwnCode

WITHOUT_SIZE = 1
_MODULE = "your_code"
_DEFAULT = "__gpu_studio_default__"  # the device that it makes tensors on without being told
_MOST_SIZES = 12
_MOST_HALVINGS, _SMALLEST_HALF = 3, 32
_DEVICE_NAMES, _SIZE_NAMES = ("device", "dev", "hw"), ("size", "n", "length", "side")


class OwnProgram:
    """The parts of a user's code.

    Args:
        code: the code.

    Attributes:
        has_work: whether its function ``work`` is called; otherwise it runs from its first line.
        takes_size: whether it can be run at several sizes.
        sizes: the ones to begin with, ascending.
        remarks: what was taken as something else than it says, as sentences.

    Raises:
        StudioError: it cannot be run; the sentence names the line.
    """

    def __init__(self, code: OwnCode) -> None:
        self.text = whole_text(code.text)
        linecache.cache[NAME] = (len(self.text), None, self.text.splitlines(True), NAME)
        try:
            self._parts = Rewritten(self.text, NAME)
        except (SyntaxError, ValueError, RecursionError) as error:  # null characters, deep nesting
            wrong = error if isinstance(error, SyntaxError) else SyntaxError(str(error))
            raise no_python(wrong, self.text) from None
        self.has_work = "work" in self._parts.functions
        self._sets_default = "set_default_device" in self.text
        if not self.has_work and not self._parts.does_something:
            self._run_once(torch.device("cpu"), None)  # an import that fails says more
            raise StudioError(FailureKind.OWN_CODE, _nothing_to_do(self._parts.functions))
        self._space: dict[str, Any] = {}
        if self.has_work:
            self._space = self._run_once(torch.device("cpu"), None)
        self._parameters = _parameters(self._space.get("work"))
        self.takes_size = self._takes_size()
        self.sizes = self._sizes()
        self.remarks = tuple(f"Line {line}: {words}" for line, words in self._parts.remarks)

    def function(self, name: str) -> Callable[..., Any] | None:
        """Return one of its functions besides ``work``; None without it."""
        found = self._space.get(name)
        return found if callable(found) else None

    def call(self, device: torch.device, size: int) -> ProgramCall:
        """Return a call of it with everything that it prepares once.

        Raises:
            StudioError: it failed; the sentence names the line.
        """
        WATCH.calls += 1
        if not self.has_work:
            return ProgramCall(self, device, self._statements(device, size))
        space = self._run_once(device, size)
        setup, made = space.get("setup"), None
        word = stand_in.DeviceWord(device)
        if callable(setup):
            arguments = _arguments(_parameters(setup), word, size, (), {})
            made = self._guarded(device, partial(setup, *arguments))
        work = space["work"]
        if _DEFAULT in space:
            work = space[_DEFAULT](work)
        given, named = (made if isinstance(made, tuple) else ()), _named(made)
        arguments = _arguments(self._parameters, word, size, (made,), named, given)
        return ProgramCall(self, device, partial(work, *arguments))

    def _run_once(self, device: torch.device, size: int | None) -> dict[str, Any]:
        """Run all lines, as an import does; return what they define."""
        space = self._new_space(device, _MODULE)
        code = compiled(self._parts.whole, NAME)
        self._guarded(device, partial(exec, code, space))
        if self._sets_default:
            space[_DEFAULT] = torch.get_default_device()
            torch.set_default_device(None)
        return space

    def _new_space(self, device: torch.device, name: str) -> dict[str, Any]:
        module = ModuleType(name)
        sys.modules[_MODULE] = module  # a dataclass looks for its module
        word = stand_in.DeviceWord(device)
        given = {DEVICE: word, CARDS: stand_in.Cards(device), "device": word, "torch": torch}
        module.__dict__.update(given, __file__=NAME)
        return module.__dict__

    def _statements(self, device: torch.device, size: int) -> Callable[[], dict[str, Any]]:
        """Return what runs the lines: all of them at first, later without the definitions."""
        space = self._new_space(device, "__main__")
        chosen = size if self._parts.size else None
        code = compiled(self._parts.whole, NAME, chosen)
        repeated = compiled(self._parts.repeated, NAME, chosen)

        def run() -> dict[str, Any]:
            nonlocal code
            try:
                exec(code, space)  # the user wants it
            except SystemExit as error:
                if error.code:
                    raise
            finally:
                if self._sets_default:
                    torch.set_default_device(None)
            code = repeated
            return space

        return run

    def _guarded(self, device: torch.device, function: Callable[[], Any]) -> Any:
        return ProgramCall(self, device, function)()

    def watched(self, device: torch.device, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its calls, and says its errors with their line."""
        is_other = accelerator().count() > 1 and device.index not in (None, first_card())

        def call(*arguments: Any) -> Any:
            WATCH.calls += 1
            try:
                if not is_other:
                    return function(*arguments)
                with accelerator_of(device).current(device):
                    return function(*arguments)
            except BaseException as error:
                reason = explained(error)
            raise reason from None

        return call

    def _takes_size(self) -> bool:
        if not self.has_work:
            return self._parts.size is not None
        setup = _parameters(self._space.get("setup"))
        names = {*self._parameters, *setup}
        has_two = len(self._parameters) > 1 and not callable(self._space.get("setup"))
        return has_two or len(setup) > 1 or bool(names & set(_SIZE_NAMES))

    def _sizes(self) -> tuple[int, ...]:
        if not self.takes_size:
            return (WITHOUT_SIZE,)
        if not self.has_work:
            assert self._parts.size is not None
            own = self._parts.size[0]
            halves = (own >> step for step in range(1, _MOST_HALVINGS + 1))
            return tuple(sorted({own, *(half for half in halves if half >= _SMALLEST_HALF)}))
        given = self._space.get("sizes", self._space.get("SIZES", (64, 256, 1024)))
        try:
            sizes = sorted({int(one) for one in ([given] if isinstance(given, int) else given)})
        except (TypeError, ValueError):
            sizes = []
        if not sizes or not 1 <= sizes[0] <= sizes[-1] <= LARGEST_SIZE:
            raise StudioError(
                FailureKind.OWN_CODE, f"“sizes” has to be whole numbers from 1 to {LARGEST_SIZE:,}."
            )
        return tuple(sizes[:_MOST_SIZES])


class ProgramCall(FunctionCall):
    """One call of a user's code; see `OwnProgram.call`.

    Args:
        program: the code.
        device: the side.
        function: does the work.

    Attributes:
        plain: the same without a look at its end, its errors and its time, which takes time.
        threads: how many threads of the code went on after its last call that `tried` made.
        printed: how many characters it printed in that call.
    """

    def __init__(
        self, program: OwnProgram, device: torch.device, function: Callable[[], object]
    ) -> None:
        super().__init__(program.watched(device, function))
        self.plain = function
        self.threads = self.printed = 0
        self._is_of_lines = not program.has_work

    def tried(self) -> list[torch.Tensor]:
        """Call it once; return the numbers of its result, or else the tensors that it leaves."""
        before = PRINTS.count
        result = self()
        self.printed = PRINTS.count - before
        self.threads = threads_left()
        return self.numbers(result)

    def numbers(self, result: object) -> list[torch.Tensor]:
        """Return the numbers of the result of a call, or else the tensors that it left."""
        if self._is_of_lines and isinstance(result, dict):
            result = [one for one in result.values() if isinstance(one, (torch.Tensor, np.ndarray))]
        return _numbers(result)


@lru_cache(maxsize=2)
def open_program(code: OwnCode) -> OwnProgram:
    """Return the program of a code; raises `StudioError` as `OwnProgram`."""
    return OwnProgram(code)


def _numbers(result: Any, depth: int = 0) -> list[torch.Tensor]:
    """Return the tensors, arrays and numbers in a result, in their order."""
    if isinstance(result, torch.Tensor):
        return [] if result.is_sparse or result.is_meta else [result.detach()]
    if isinstance(result, np.ndarray):
        return [torch.from_numpy(result)] if result.dtype.kind in "fiub" else []
    if isinstance(result, (bool, int, float, np.number)):
        return [torch.tensor(float(result), dtype=torch.float32)]
    if isinstance(result, dict):
        result = list(result.values())
    if not isinstance(result, (list, tuple)) or depth > 4:
        return []
    return [number for one in result for number in _numbers(one, depth + 1)]


def _parameters(function: Any) -> tuple[str, ...]:
    """Return the names of what a function has to be given, in their order."""
    if not callable(function):
        return ()
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(
        one.name
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        and (one.default is one.empty or one.name in (*_DEVICE_NAMES, *_SIZE_NAMES))
    )


def _arguments(
    names: tuple[str, ...],
    device: stand_in.DeviceWord,
    size: int,
    made: tuple[Any, ...],
    named: Mapping[str, Any],
    given: tuple[Any, ...] = (),
) -> list[Any]:
    """Return what a function is called with: device and size by name, and what setup made.

    Args:
        names: of its parameters.
        device: the side.
        size: of the work.
        made: the result of setup, if there is a function that wants it.
        named: the same by names.
        given: its parts, for a function that takes each of them.
    """
    known = {**dict.fromkeys(_DEVICE_NAMES, device), **dict.fromkeys(_SIZE_NAMES, size), **named}
    others = [name for name in names if name not in known]
    if made and made[0] is not None:
        rest = given if len(given) == len(others) > 1 else made
    else:
        taken = ((_DEVICE_NAMES, device), (_SIZE_NAMES, size))
        rest = tuple(value for words, value in taken if not set(words) & set(names))
    return [known.get(name, value) for name, value in _paired(names, others, rest)]


def _paired(
    names: tuple[str, ...], others: list[str], rest: tuple[Any, ...]
) -> list[tuple[str, Any]]:
    if len(others) > len(rest):
        raise StudioError(
            FailureKind.OWN_CODE,
            f"GPU Studio cannot tell what “{others[len(rest)]}” is. Write work(device), "
            "work(device, size), or a setup(device, size) whose result work takes.",
        )
    values = dict(zip(others, rest, strict=False))
    return [(name, values.get(name)) for name in names]


def _named(made: Any) -> Mapping[str, Any]:
    is_named = isinstance(made, dict) and all(isinstance(name, str) for name in made)
    return made if is_named else {}


def _nothing_to_do(functions: set[str]) -> str:
    if not functions:
        return "There is nothing to run in this code."
    name = sorted(functions)[0]
    return (
        f"This code defines functions and calls none of them. Add a line that calls one, such as "
        f"{name}(…), or name the one to be timed “work(device)”."
    )
