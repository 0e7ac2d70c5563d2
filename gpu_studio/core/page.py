"""Pages (HTML) to share: one look for the check, the race and the standard run.

A page is one file. It needs no network, runs no script, and its policy forbids both. The templates
are in `resources/report`; all texts in them are escaped.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_studio.core.page_json import json_element
from gpu_studio.core.resources import MissingResourceError, resource_path

if TYPE_CHECKING:
    from jinja2 import Environment


class PageCell(NamedTuple):
    """A cell of a table; ``tone`` is a class of the style: ``failure``, ``number``."""

    text: str
    tone: str = ""


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# role: (light, dark), the roles of the window's theme that pages and their drawings use.
PAGE_COLOURS = {
    "window": ("#F3F5F7", "#13171C"),
    "card": ("#FFFFFF", "#1D2229"),
    "border": ("#D5DBE1", "#313943"),
    "grid": ("#E7EBEF", "#2A313A"),
    "text": ("#1A2027", "#E9EDF1"),
    "muted": ("#56626F", "#9DA9B5"),
    "disabled": ("#9AA4AE", "#5F6A75"),
    "track": ("#EDF0F3", "#2A313A"),
    "amber": ("#9A6200", "#E69F00"),
    "good": ("#007A59", "#19B98C"),
    "allocated": ("#009E73", "#009E73"),
    "failure": ("#D55E00", "#D55E00"),
    "failure_ink": ("#B64F00", "#F0812F"),
    "cpu": ("#E69F00", "#E69F00"),
    "gpu0": ("#56B4E9", "#56B4E9"),
    "gpu1": ("#CC79A7", "#CC79A7"),
    "gpu2": ("#F0E442", "#F0E442"),
    "other": ("#8C96A3", "#7C8794"),
    "gpu0_ink": ("#0072B2", "#56B4E9"),
    "good_soft": ("#E2F3EC", "#16352D"),
    "amber_soft": ("#FCF1DC", "#3A2E14"),
    "failure_soft": ("#FDEEE6", "#43251A"),
}


def page_of_template(name: str, values: dict[str, Any], keyword: str, content: bytes) -> bytes:
    """Return a page in UTF-8.

    Args:
        name: the template below `resources/report`.
        values: what the template shows, besides the macros of `parts.html`.
        keyword: the id of the element with the JSON, see `page_json`.
        content: the JSON from which this program opens the page again.

    Raises:
        MissingResourceError: a file of this program is missing.
    """
    environment = _environment()
    text = environment.get_template(name).render(
        values, policy=_POLICY, style=_style(), inside=json_element(keyword, content)
    )
    return f"{text}\n".encode()


@cache
def _environment() -> Environment:
    # 40 ms, which only a page needs.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _source(name: str) -> str:
    path = resource_path(f"report/{name}")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
        raise MissingResourceError(f"report/{name}", reason) from error


@cache
def _style() -> str:
    classes = "\n".join(
        f".f-{role} {{ fill: var(--{role}); }} .s-{role} {{ stroke: var(--{role}); fill: none; }}"
        for role in PAGE_COLOURS
    )
    return (
        _environment()
        .get_template("style.css")
        .render(light=_variables(0), dark=_variables(1), classes=classes)
    )


def _variables(which: int) -> str:
    return " ".join(f"--{role}: {colours[which]};" for role, colours in PAGE_COLOURS.items())
