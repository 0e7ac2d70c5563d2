"""The style of a record's page: light or dark as its reader's system, on a phone and on paper."""

from __future__ import annotations

# role: (light, dark), the roles of the window's theme that the page and its drawings use.
_COLOURS = {
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
    "gpu0_ink": ("#0072B2", "#56B4E9"),
    "good_soft": ("#E2F3EC", "#16352D"),
    "amber_soft": ("#FCF1DC", "#3A2E14"),
    "failure_soft": ("#FDEEE6", "#43251A"),
}


def _variables(which: int) -> str:
    return " ".join(f"--{role}: {colours[which]};" for role, colours in _COLOURS.items())


_CLASSES = "\n".join(
    f".f-{role} {{ fill: var(--{role}); }} .s-{role} {{ stroke: var(--{role}); fill: none; }}"
    for role in _COLOURS
)
RECORD_STYLE = f"""
:root {{ color-scheme: light dark; {_variables(0)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(1)} }} }}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--window);
  margin: 0; overflow-wrap: anywhere; }}
main {{ max-width: 60rem; margin: 1.5rem auto; padding: 1.5rem; background: var(--card);
  border: 1px solid var(--border); border-radius: 8px; }}
.over {{ color: var(--muted); margin: 0; }}
h1 {{ font-size: 1.5rem; margin: 0.25rem 0 0; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 0.5rem; }}
.verdict {{ font-size: 2.6rem; line-height: 1.15; font-weight: 700; margin: 0.5rem 0; }}
.chip {{ display: inline-block; font-size: 1rem; font-weight: 600; padding: 0.2rem 0.8rem;
  border-radius: 2rem; vertical-align: middle; margin-left: 0.5rem; }}
.good {{ color: var(--good); }} .failure {{ color: var(--failure_ink); }}
.amber {{ color: var(--amber); }}
.chip.good {{ background: var(--good_soft); }} .chip.failure {{ background: var(--failure_soft); }}
.chip.amber {{ background: var(--amber_soft); }}
.planted {{ background: var(--failure_soft); border: 2px solid var(--failure); padding: 0.75rem;
  font-weight: 600; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: 0.35rem 0.75rem 0.35rem 0;
  border-bottom: 1px solid var(--grid); }}
th {{ color: var(--muted); font-weight: 500; }}
.facts th {{ width: 30%; }} .across {{ overflow-x: auto; overflow-wrap: normal; }}
.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
ul {{ padding-left: 1.25rem; margin: 0.5rem 0; }} li {{ margin: 0.25rem 0; }}
.note, footer {{ color: var(--muted); font-size: 0.9rem; }} footer {{ margin-top: 2rem; }}
svg {{ display: block; width: 100%; height: auto; font-family: system-ui, sans-serif; }}
svg .thick {{ stroke-width: 2; stroke-linejoin: round; }}
.narrow {{ display: none; }}
{_CLASSES}
@media (max-width: 40rem) {{
  main {{ margin: 0; padding: 1rem; border: none; border-radius: 0; }}
  .verdict {{ font-size: 2rem; }}
  .wide {{ display: none; }} .narrow {{ display: block; }}
  .stages tr:first-child {{ display: none; }}
  .stages tr {{ display: block; padding: 0.5rem 0; border-bottom: 1px solid var(--grid); }}
  .stages td {{ display: block; border: none; padding: 0; }}
  .stages .number {{ display: inline-block; margin-right: 1rem; }}
}}
@media print {{
  :root {{ color-scheme: light; {_variables(0)} }}
  body {{ background: #FFFFFF; font-size: 12px; }}
  main {{ border: none; margin: 0; padding: 0; max-width: none; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  h2, svg, tr {{ break-inside: avoid; }} h2 {{ break-after: avoid; }}
}}
"""
