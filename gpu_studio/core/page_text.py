"""What a page (HTML) says, as plain text: a preview of exactly the bytes that are written."""

from __future__ import annotations

from html.parser import HTMLParser

_LINES = frozenset({"p", "h1", "h2", "h3", "li", "tr", "title", "footer", "template", "svg"})
_CELLS = frozenset({"td", "th"})
_GAPS = frozenset({"h1", "h2", "h3", "table", "footer", "template"})


def text_of_page(page: bytes) -> str:
    """Return the texts of a page in their order, a line for each row and paragraph.

    A chart is its description, because its numbers are in the table below it. The JSON inside is
    at the end.
    """
    reader = _Reader()
    reader.feed(page.decode("utf-8", "replace"))
    reader.close()
    return "\n".join(reader.lines).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._cells: list[str] = []
        self._is_hidden = False
        self._charts: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _GAPS:
            self._end_line()
            self.lines.append("")
        if tag == "template":
            self.lines.append("The data inside, for GPU Studio:")
        if tag == "svg":
            self._add_chart(dict(attrs).get("aria-label") or "")
        elif tag in _CELLS:
            self._cells.append("")
        if tag in ("style", "svg"):
            self._is_hidden = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("style", "svg"):
            self._is_hidden = False
        if tag in _LINES:
            self._end_line()

    def handle_data(self, data: str) -> None:
        # Spaces between a number and its unit stay.
        text = " ".join(data.replace("\n", " ").split(" ")).strip(" ")
        if self._is_hidden or not text:
            return
        if not self._cells:
            self._cells.append("")
        self._cells[-1] = f"{self._cells[-1]} {text}".strip(" ")

    def _add_chart(self, description: str) -> None:
        """Add a chart, which stands there in two widths, once."""
        if description not in self._charts:
            self._charts.add(description)
            self.lines.append(f"[Chart: {description}]")

    def _end_line(self) -> None:
        if self._cells:
            self.lines.append("  |  ".join(self._cells))
            self._cells.clear()
