"""The report as one self-contained HTML page: inline style and SVG, nothing fetched, readable at phone width."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from ..results import AuditReport
from .text import Section, headline, number, sections, source_line, summary_line, title, tone
from .verdict import NONE

STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#5f6368;--line:#dadce0;--back:#fff;--card:#f6f7f9}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#9aa0a6;--line:#3c4043;--back:#17181a;--card:#202226}}
*{box-sizing:border-box}body{margin:0 auto;max-width:68rem;padding:1.25rem;background:var(--back);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.source{color:var(--soft);margin:0 0 1rem;overflow-wrap:anywhere}
.verdict{display:inline-block;padding:.35rem .75rem;border-radius:.4rem;background:var(--card);border-left:.35rem solid var(--mark)}
.holds{--mark:#188038}.refuted{--mark:#c5221f}.undecided{--mark:#e37400}.none{--mark:#5f6368}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;margin:1.25rem 0}
.card{background:var(--card);border-radius:.5rem;padding:.75rem}.card b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums}
.card span{color:var(--soft);font-size:.85rem}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.5rem}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{padding:.4rem .65rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
tr:last-child td{border-bottom:0}th{color:var(--soft);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child{text-align:left}th.long,td.long{white-space:normal;min-width:12rem;text-align:left;overflow-wrap:anywhere}
.note{color:var(--soft);font-size:.85rem;margin:.4rem 0}
figure{margin:1.25rem 0;background:#fff;border:1px solid var(--line);border-radius:.5rem;padding:.75rem;text-align:center}
figure svg{width:100%;height:auto;max-width:46rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(19rem,100%),1fr));gap:1rem;align-items:start}
.figures figure{margin:0}.figures .wide{grid-column:1/-1}
"""


def page(report: AuditReport, images: Sequence[str] = ()) -> str:
    """The whole page; `images` are SVG documents."""
    name = escape(title(report))
    body = [
        f"<h1>{name}</h1>",
        f'<p class="source">{escape(source_line(report))}</p>',
        f"<p>{escape(summary_line(report))}</p>",
        _verdict(report),
        _cards(report),
        _figures(images),
        *(_section(s) for s in sections(report)),
        f'<p class="note">spectheory {escape(report.spectheory_version)}, report schema {report.schema_version}</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{name}: spectheory audit</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _verdict(report: AuditReport) -> str:
    if report.verdict == NONE:
        return ""
    kind = tone(report)
    return f'<p class="verdict {kind}">{escape(headline(report))}</p>'


def _cards(report: AuditReport) -> str:
    """The four numbers that most readers came for."""
    labels = {
        "deviation": "mean deviation from the target (TV)",
        "acceptance": "acceptance rate",
        "tokens_per_call": "expected tokens per target call",
        "gap": "gap to the optimal line",
    }
    cards = []
    for key, label in labels.items():
        entry = report.summary.get(key)
        mean = entry.get("on_data") if isinstance(entry, dict) else None
        if mean is not None:
            value = number(mean.upper) if mean.lower == mean.upper else f"{number(mean.lower)} to {number(mean.upper)}"
            cards.append(f'<div class="card"><b>{escape(value)}</b><span>{label}</span></div>')
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


def _figures(images: Sequence[str]) -> str:
    drawn = [f"<figure{_wide(svg)}>{_inline(svg, f'f{i}-')}</figure>" for i, svg in enumerate(images)]
    return f'<div class="figures">{"".join(drawn)}</div>' if drawn else ""


def _wide(svg: str) -> str:
    """Figures of page width take the whole row."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    return ' class="wide"' if size and float(size[1]) > 1.8 * float(size[2]) else ""


def _inline(svg: str, prefix: str) -> str:
    """An SVG document as an element: no prologue, no fixed size, ids made unique on the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    svg = f"{head}>{rest}"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'(xlink:href="|url\()#', rf"\1#{prefix}", svg)
    return svg.strip()


# The class of a cell that holds words rather than a number.
LEFT = ' class="long"'


def _section(section: Section) -> str:
    prose = [c in section.get("prose", []) for c in section["columns"]]
    head = "".join(f"<th{LEFT * left}>{escape(c)}</th>" for c, left in zip(section["columns"], prose))
    cells = ("".join(_cell(number(x), left) for x, left in zip(row, prose)) for row in section["rows"])
    rows = "".join(f"<tr>{row}</tr>" for row in cells)
    notes = "".join(f'<p class="note">{escape(n)}</p>' for n in section.get("notes", []))
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<h2>{escape(section['title'])}</h2>{table}{notes}"


def _cell(text: str, left: bool = False) -> str:
    return f"<td{LEFT * (left or len(text) > 40)}>{escape(text)}</td>"
