"""Runs that are not long in warming up, and not long in timing their parts."""

from collections.abc import Iterator

import pytest

from tests.engine.quick_runs import make_quick


@pytest.fixture(autouse=True, scope="package")
def short_runs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch.setattr)
        yield
