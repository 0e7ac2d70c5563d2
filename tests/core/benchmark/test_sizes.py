import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark.sizes import MOST_SIZES, parse_sizes, parse_sweep
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.tensors import LARGEST_SIZE


@given(
    st.lists(st.integers(1, LARGEST_SIZE), min_size=1, max_size=MOST_SIZES, unique=True),
    st.sampled_from([",", " ", ", ", ";", " ; ", "\n"]),
)
def test_what_is_written_is_read_in_its_order(sizes: list[int], separator: str) -> None:
    assert parse_sizes(separator.join(map(str, sizes))) == sizes


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    refusal, sizes = None, [1]
    try:
        sizes = parse_sizes(text)
    except StudioError as error:
        refusal = error
    if refusal is not None:
        assert refusal.kind is FailureKind.BAD_REQUEST
        assert str(refusal).endswith(".")
        assert len(str(refusal)) < 160
    assert 1 <= len(sizes) <= MOST_SIZES
    assert len(set(sizes)) == len(sizes)
    assert all(1 <= size <= LARGEST_SIZE for size in sizes)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("512", [512]),
        ("512, 512, 64", [512, 64]),
        ("64..512", [64, 128, 256, 512]),
        ("64…500", [64, 128, 256]),
        ("100..100", [100]),
        ("3, 64..256, 128, 1000", [3, 64, 128, 256, 1000]),
    ],
)
def test_sizes(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "at least one size"),
        (" , ;", "at least one size"),
        ("0", "The size 0 is out of range"),
        ("-512", "“-512” is not a size"),
        ("12.5", "“12.5” is not a size"),
        ("big", "“big” is not a size"),
        ("512, ²", "“²” is not a size"),
        ("9999999", f"from 1 to {LARGEST_SIZE}"),
        ("9" * 5000, "99999999999999999… is out of range"),
        ("512..64", "The range 512..64 is empty"),
        ("..64", "“..64” is not a size"),
        ("64..", "“64..” is not a size"),
        (" ".join(str(size) for size in range(1, MOST_SIZES + 2)), f"at most {MOST_SIZES}"),
    ],
)
def test_mistakes_are_named(text: str, sentence: str) -> None:
    with pytest.raises(StudioError) as caught:
        parse_sizes(text)
    assert sentence in str(caught.value)
    assert caught.value.kind is FailureKind.BAD_REQUEST


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("64:512", [64, 128, 256, 512]),
        ("100:1000", [100, 128, 256, 512, 1000]),
        (" 1 : 3 ", [1, 2, 3]),
        ("64:65", [64, 65]),
        ("7:7", [7]),
        ("512, 100 64", [64, 100, 512]),
        ("64..256", [64, 128, 256]),
    ],
)
def test_a_sweep_is_both_ends_and_the_powers_of_two_between(text: str, sizes: list[int]) -> None:
    assert parse_sweep(text) == sizes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("64", "64 is a single size, not a range"),
        ("64,64", "64 is a single size, not a range"),
        ("", "Enter at least one size"),
        ("64:", "“” is not a size"),
        (":64", "“” is not a size"),
        ("64:128:256", "“128:256” is not a size"),
        ("512:64", "The range 512:64 is empty"),
        ("0:64", "The size 0 is out of range"),
        ("x" * 50, "“xxxxxxxxxxxxxxxxx…” is not a size"),
    ],
)
def test_mistakes_in_a_sweep_are_named(text: str, sentence: str) -> None:
    with pytest.raises(StudioError) as caught:
        parse_sweep(text)
    assert sentence in str(caught.value)
    assert caught.value.kind is FailureKind.BAD_REQUEST
