import msgspec
import pytest

from gpu_studio.core.messages.run_messages import RunFinished, RunStarted, RunWorkload
from gpu_studio.core.parameter import parameters_of, refusal_of


def request(**changes: object) -> RunWorkload:
    asked = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    return msgspec.structs.replace(asked, **changes)


def test_a_request_has_every_setting_and_a_result_those_that_decide_it() -> None:
    names = {one.name for one in parameters_of(RunWorkload)}
    assert {"cold", "transfers", "sustained", "time", "naive", "stop_early"} <= names
    assert parameters_of(RunStarted) == parameters_of(RunWorkload)
    decisive = {one.name for one in parameters_of(RunFinished)}
    assert {"cold", "transfers", "sustained"} <= decisive < names
    assert all(one.words for one in parameters_of(RunFinished))
    assert "time" in {one.name for one in parameters_of(RunWorkload, "race")} < names


def test_a_setting_knows_its_field_and_the_field_s_default() -> None:
    for one in parameters_of(RunWorkload):
        assert getattr(request(), one.field) == one.default
        assert one.value_of(False) == one.default or not one.is_switch
        assert one.default in one.offered
        assert not one.is_on(request())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget_s": 0.0}, "“0” is out of range. Choose more than 0 and at most 3600 s."),
        ({"budget_s": float("nan")}, "nan"),
        ({"budget_s": 3601.0}, "3600"),
        ({"cache": "warm"}, "Choose hot or cold."),
    ],
)
def test_a_refusal_names_the_choice_its_value_and_what_is_allowed(
    changes: dict[str, object], words: str
) -> None:
    sentence = refusal_of(request(**changes))
    assert words in sentence
    assert sentence.startswith(("Time per run: ", "Cold cache: "))


def test_what_can_be_is_not_refused() -> None:
    assert refusal_of(request()) == ""
    assert refusal_of(request(budget_s=3600.0, cache="cold", stop_at_relative_interval=10.0)) == ""
