from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.benchmark.comparison_words import compare, findings_of, label_of
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.messages.pitfall_messages import Figure
from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadOption
from gpu_studio.core.switching.pitfall_words import format_figure
from tests.fakes.descriptions import elementwise
from tests.fakes.run_answers import finished


def plain(text):
    return text.replace("\u202f", " ")


def result(median_s, **changes):
    request = RunWorkload(run_id="r", workload="x", device="cpu", size=8, dtype="float32")
    return finished(request, (median_s,) * 20, **changes)


def test_options_are_told_with_the_title_they_need():
    options = (
        WorkloadOption(name="amp", title="AMP", sentence="", values=("off", "on")),
        WorkloadOption(name="feed", title="The batches come", sentence="", values=("pinned",)),
    )
    workload = msgspec.structs.replace(elementwise(), options=options)
    assert label_of({"amp": "on", "feed": "pinned"}, workload) == "AMP on, pinned"
    assert label_of({}, workload) == workload.title


def test_the_fastest_and_the_smallest_are_named():
    results = {
        "AMP off": result(0.02, peak_allocated_bytes=4 << 20),
        "AMP on": result(0.01, peak_allocated_bytes=3 << 20),
    }
    assert plain(compare(results)) == (
        "The fastest is “AMP on”, 10.0 ms a call: 2.0 × as fast as “AMP off”. The least memory "
        "takes “AMP on”, 3 MiB at its peak; the most “AMP off”, 4 MiB."
    )


def test_what_is_not_known_of_all_is_not_compared():
    results = {"a": result(0.02, peak_allocated_bytes=4 << 20), "b": result(0.01)}
    assert "memory" not in compare(results)
    assert compare({"a": result(0.02)}) == ""
    for median_s in (0.02, 0.0202):
        said = compare({"a": result(0.02), "b": result(median_s)})
        assert plain(said) == "All ways take about the same time, 20.0 ms a call."
    assert "The fastest" in compare({"a": result(0.02), "b": result(0.021)})


def test_a_run_in_doubt_is_not_praised_without_saying_so():
    results = {"a": result(0.02), "b": result(0.01, verified=False)}
    doubt = stamp_of(results["b"]).doubts[0]
    assert compare(results).endswith(f"Not all of it is beyond doubt: {doubt} (b).")
    both = {"a": result(0.02, verified=False), "b": result(0.01, verified=False)}
    assert compare(both).endswith(f"Not all of it is beyond doubt: {doubt}.")


def test_findings_are_told_once_with_whom_they_are_about():
    results = {
        "a": result(1, findings=("Both.", "A alone.")), "b": result(1, findings=("Both.",)),
    }  # fmt: skip
    assert list(findings_of(results)) == ["Both.", "a: A alone."]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0021, "s", "2.10 ms"), (1 << 20, "bytes", "1 MiB"), (0.4, "share", "40 %"),
        (2.0, "×", "2.0 ×"), (65536.0, "", "65536"), (0.0073, "", "0.00730"),
    ],
)  # fmt: skip
def test_a_figure_has_its_unit(value, unit, text):
    figure = Figure(name="x", title="X", value=value, unit=unit)
    assert plain(format_figure(figure)) == text
