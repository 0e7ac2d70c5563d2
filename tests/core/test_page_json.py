"""JSON inside a page, which comes back from strangers."""

from __future__ import annotations

import json

import pytest

from gpu_studio.core.page_json import json_element, json_in_page

KEY = "gpu-studio-standard"


def test_a_text_with_markup_comes_back_and_ends_no_element() -> None:
    value = {"name": '</template><script src="x"> & "\u202f"'}
    element = json_element(KEY, json.dumps(value, ensure_ascii=False).encode())

    inside = json_in_page(f"<p>a</p>{element}</body>".encode(), KEY)

    assert element.count("<") == 2
    assert json.loads(inside or b"") == value


def test_a_page_of_an_older_version_opens() -> None:
    page = b'<script type="application/json" id="%b">{"a": 1}</script>' % KEY.encode()
    assert json_in_page(page, KEY) == b'{"a": 1}'


@pytest.mark.parametrize(
    "page",
    [b"", b"<html></html>", b'<template id="other">{}</template>',
     b'<template id="gpu-studio-standard">{}', b' id="gpu-studio-standard"'],
)  # fmt: skip
def test_a_page_without_a_whole_element_has_none(page: bytes) -> None:
    assert json_in_page(page, KEY) is None
