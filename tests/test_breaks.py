import pytest

from tests.breaks import ROOT, breaks, is_found


@pytest.mark.parametrize("one", breaks(), ids=lambda one: f"{one.file}: {one.text.split()[0]}")
def test_each_break_still_has_its_place_and_its_tests(one) -> None:
    assert is_found(one)
    assert one.text != one.change
    assert all((ROOT / name.partition("::")[0]).exists() for name in one.tests)
    assert len(breaks()) >= 40
