"""What a text says about card, build, versions and files, whatever the error is."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpu_studio.core.texts import plain_text

_TAIL = (
    r"(?:\s+(?:Ti|SUPER|Super|XT|XTX|GRE|D|Max-Q|Mobile|Ada|Generation|Laptop|GPU|\d{1,3}\s?GB)\b)*"
)
_CARD = re.compile(
    rf"(?:NVIDIA\s+)?(?:GeForce\s+)?\b(?:RTX|GTX)\s+(?:PRO\s+)?A?\d{{3,4}}{_TAIL}"
    rf"(?:\s+Blackwell(?:\s+\w{{1,12}}\s+Edition)?)?"
    rf"|(?:NVIDIA\s+)?(?:GeForce\s+(?:GT|MX)\s*\d{{3,4}}|GeForce\s+MX\d{{3}}|Quadro\s+(?:RTX\s+)?"
    rf"[A-Z]{{0,2}}\d{{3,5}}|TITAN\s+(?:RTX|Xp|X|V)|Tesla\s+[A-Z]{{1,2}}\d{{1,3}}\w?)\b{_TAIL}"
    r"|NVIDIA\s+(?:[ABHL]\d{1,3}[SX]?|GB10|GH200|GB200|T4)"
    r"(?:[- ](?:SXM\d?|PCIE?|\d{2,3}GB|HBM\d)){0,3}"
    rf"|(?:AMD\s+)?Radeon(?:\s+\(TM\))?\s+(?:RX|PRO|AI\s+PRO|VII|Vega)?\s?[RW]?\d{{2,4}}[SM]?{_TAIL}"
    r"|(?:AMD\s+)?(?:Radeon\s+)?RX\s+\d{3,4}(?:\s+(?:XTX|XT|GRE))?"
    r"|Intel(?:\(R\))?\s+Arc(?:\(TM\)|™)?\s+(?:Pro\s+)?[AB]\d{2,3}M?"
    r"|Apple\s+M\d(?:\s+(?:Pro|Max|Ultra))?",
    re.ASCII,
)  # fmt: skip
_FACTS = (
    ("Chip", re.compile(r"\b(gfx\d{3,4}[a-f]?)\b", re.ASCII)),
    ("Capability", re.compile(
        r"\bcapability:? (?:of )?(?:sm_)?(\d{1,2}\.\d|\d{2,3})\b", re.ASCII | re.IGNORECASE)),
    ("Built for", re.compile(
        r"((?:\b(?:sm|compute)_\d{2,3}[af]?\b[\s,'\"]{0,4}){2,40})", re.ASCII)),
    ("PyTorch", re.compile(
        r"\b(?:torch|pytorch)(?: version)?[ :=]{1,3}(\d{1,2}\.\d{1,2}\.\d{1,2}[\w.+]{0,30})"
        r"|\b(\d\.\d{1,2}\.\d{1,2}(?:\.dev\d{8})?\+(?:cu\d{3}|cpu|xpu|rocm[\d.]{1,8}))",
        re.ASCII | re.IGNORECASE)),
    ("CUDA", re.compile(r"\bCUDA(?: version)?[ :=]{1,3}(\d{1,2}\.\d{1,2})\b",
                        re.ASCII | re.IGNORECASE)),
    ("ROCm", re.compile(r"\bROCm(?: version)?[ :=]{1,3}(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\b",
                        re.ASCII | re.IGNORECASE)),
    ("Driver", re.compile(r"\bdriver(?: version)?[ :=]{1,3}(\d{2,3}\.\d{1,3}(?:\.\d{1,4}){0,2})\b",
                          re.ASCII | re.IGNORECASE)),
    ("Python", re.compile(r"\bPython(?: version)?[ :=]{1,3}(3\.\d{1,2}(?:\.\d{1,2})?)\b"
                          r"|\bpython(3\.\d{1,2})[/\\]", re.ASCII | re.IGNORECASE)),
)  # fmt: skip
_FRAME = re.compile(r'File "([^"\n]{1,300})", line \d{1,7}')
_LIBRARY = re.compile(
    r"(?<![\w.-])[\w.-]{1,60}\.(?:dll|so(?:\.\d{1,3}){0,3}|dylib|pyd)\b", re.ASCII
)
_ERROR_LINE = re.compile(
    r"^[ \t]{0,8}((?:[\w.]{1,80}(?:Error|Exception|Warning)|ERROR|Error|error|FATAL|fatal|panic)"
    r"\b ?[:\]][^\n]{0,300}|(?:[\w.-]{1,60}: )?(?:[Ff]ailed to|[a-z ]{1,40}error:) [^\n]{1,300})$",
    re.MULTILINE | re.ASCII,
)


class ToldFact(NamedTuple):
    """A fact that a text has: what it is, and its value."""

    what: str
    value: str


def facts_in(text: str) -> tuple[ToldFact, ...]:
    """Return what a text says of card, build, versions and its last file, each once."""
    one_line = " ".join(text.split())
    found: list[ToldFact] = []
    if (card := _CARD.search(one_line)) is not None:
        found.append(ToldFact("Card", " ".join(card[0].split())))
    for what, pattern in _FACTS:
        if (match := pattern.search(one_line)) is not None:
            value = next(group for group in match.groups() if group is not None).strip(" ,'\"")
            found.append(ToldFact(what, _capability(value) if what == "Capability" else value))
    *_, last = [None, *_FRAME.finditer(text)]
    if last is not None:
        found.append(ToldFact("File", plain_text(last[1])))
    if (library := _LIBRARY.search(one_line)) is not None:
        found.append(ToldFact("Library", library[0]))
    return tuple(found)


def last_error_line(text: str) -> str:
    """Return the last line that names an error; empty without one."""
    *_, last = [""] + [match[1] for match in _ERROR_LINE.finditer(text)]
    return plain_text(last.strip())[:200]


def _capability(value: str) -> str:
    """Return “12.0” for the 120 of sm_120."""
    return value if "." in value else f"{value[:-1]}.{value[-1]}"
