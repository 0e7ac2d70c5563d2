"""Code as strangers write it, on the CPU and on a card that Python stands in for."""

import pytest

from gpu_studio.core.benchmark.own_code import EXAMPLES, example, own_code
from gpu_studio.core.messages.run_messages import OwnCodeOpened, RunFailed, RunFinished
from tests.engine.accelerators import test_makers
from tests.engine.answers import only
from tests.engine.own_code.codes import STAND_IN, codes_of, engine, in_turns, opened, run_of

STRANGERS = codes_of("strangers.txt")
FAULTS = codes_of("faults.txt")
# Python's card has no autocast, and each of its tensors says that it is on the first one.
ONLY_ON_CPU = ("mixed precision", "DataParallel")


@pytest.fixture(scope="module")
def two_sides(tmp_path_factory):
    with engine(tmp_path_factory.mktemp("log") / "log", STAND_IN) as child:
        yield child


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    with engine(tmp_path_factory.mktemp("log") / "log") as child:
        yield child


def choices(code, child):
    event = opened(child, code)
    assert isinstance(event, OwnCodeOpened), event
    return {"size": event.workload.sizes[0], "dtype": event.workload.dtypes[0]}


@test_makers.pytestmark
@pytest.mark.parametrize("title", STRANGERS)
def test_both_sides_do_the_same_work(two_sides, title):
    code = STRANGERS[title]
    events = two_sides.ask(in_turns(code, **choices(code, two_sides)))
    failures = [one for one in only(RunFailed, events) if title not in ONLY_ON_CPU]
    assert failures == []
    sides = only(RunFinished, events)
    assert [one.device for one in sides if one.verified] == [one.device for one in sides]
    assert not any("not on the card" in one.doubts for one in sides)


@pytest.mark.parametrize("title", ONLY_ON_CPU)
def test_what_no_stand_in_can_do_runs_on_the_cpu(cpu, title):
    code = STRANGERS[title]
    finished = cpu.ask(run_of(code, **choices(code, cpu)))[-1]
    assert isinstance(finished, RunFinished), finished


@pytest.mark.parametrize(("title", "name"), EXAMPLES, ids=[name for _, name in EXAMPLES])
def test_each_example_runs(cpu, title, name):
    code = own_code(example(name))
    finished = cpu.ask(run_of(code, **choices(code, cpu)))[-1]
    assert isinstance(finished, RunFinished), finished
    assert finished.verified


@pytest.mark.parametrize("title", FAULTS)
def test_a_fault_is_said_with_its_line(cpu, title):
    event = opened(cpu, FAULTS[title])
    assert title.partition(" | ")[2] in event.failure.message
    assert not event.failure.fatal
