"""The code of strangers, and the engines of the tests that run it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_studio.core.benchmark.own_code import own_code
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    OpenOwnCode,
    OwnCode,
    OwnCodePrinted,
    RunInTurns,
    RunWorkload,
)
from tests.engine.engine_child import EngineChild

QUICK = "from tests.engine.quick_runs import make_quick; make_quick()"
STAND_IN = "from tests.engine.accelerators.stand_in import stand_in; stand_in('amd')"
CARD = "amd:1"


def codes_of(name: str) -> dict[str, OwnCode]:
    """Return the pieces of a text file here: each after its title."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    pieces = (piece.partition("\n") for piece in text.split("### ")[1:])
    return {title: own_code(code) for title, _, code in pieces}


@contextmanager
def engine(log: Path, *preludes: str) -> Iterator[EngineChild]:
    child = EngineChild(log, "\n".join((QUICK, *preludes)))
    yield child
    child.kill()


def opened(child: EngineChild, code: OwnCode) -> Event:
    """Return how opening some code ended."""
    return child.ask(OpenOwnCode(code=code))[-1]


def run_of(code: OwnCode, device: str = "cpu", **changes) -> RunWorkload:
    """Return a short run of a code that has one size."""
    parameters = {"size": 1, "dtype": "float32", "budget_s": 0.01, **changes}
    return RunWorkload(run_id=device, workload=code.name, device=device, code=code, **parameters)


def in_turns(code: OwnCode, **changes) -> RunInTurns:
    return RunInTurns(runs=tuple(run_of(code, device, **changes) for device in ("cpu", CARD)))


def printed(events: list[Event]) -> str:
    return "".join(one.text for one in events if isinstance(one, OwnCodePrinted))
