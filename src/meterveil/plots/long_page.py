"""A long page: one of `page` with a table of contents, verdicts in colour, and dark where readers like it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from meterveil.plots.page import LONG_ROWS, Section, page

_HEADING = re.compile(r"<section><h2>(.*?)</h2>")


def long_page(
    title: str,
    sections: Sequence[Section],
    intro: str,
    verdicts: Mapping[str, str],
    pictures: Mapping[str, str] | None = None,
) -> str:
    """Write a page whose headings can be jumped to; `verdicts` are cells, or their first sign -> a colour.

    `pictures` is heading -> what stands at the end of its section, as HTML.
    """
    head, mark, body = page(title, sections).partition("</h1>")
    names = [section.heading for section in sections if section.heading]
    lead, seam, rest = body.partition("<section>")
    anchored = _HEADING.sub(lambda found: _anchor(found.group(1)), seam + rest)
    styled = head.replace("</style>", f"{_LONG_TABLE}{_STYLE}{_colours(verdicts)}</style>", 1)
    return (
        styled
        + mark
        + _lead(intro)
        + lead
        + _contents(names)
        + _illustrated(_marked(anchored, verdicts), pictures or {})
    )


def _lead(intro: str) -> str:
    """Write the lines of an introduction as a list, one line as a paragraph."""
    lines = [escape(line) for line in intro.splitlines()]
    if len(lines) < 2:
        return "".join(f"\n<p>{line}</p>\n" for line in lines)
    return '\n<ul class="lead">' + "".join(f"<li>{line}</li>" for line in lines) + "</ul>\n"


def _anchor(heading: str) -> str:
    return f'<section id="{_slug(heading)}"><h2>{heading}</h2>'


def _contents(names: Sequence[str]) -> str:
    links = "".join(f'<li><a href="#{_slug(escape(name))}">{escape(name)}</a></li>' for name in names)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _marked(body: str, verdicts: Mapping[str, str]) -> str:
    """Give cells that are a verdict, or begin with its sign, a class of their own."""
    for number, word in enumerate(verdicts):
        end, kind = ("</td>", " words") if word.isascii() else ("", "")
        cell = re.compile(rf'<td(?: class="words")?>({re.escape(escape(word))}){end}')
        body = cell.sub(rf'<td class="v{number}{kind}">\1{end}', body)
    return body


def _illustrated(body: str, pictures: Mapping[str, str]) -> str:
    for heading, html in pictures.items():
        before, found, rest = body.partition(f"<h2>{escape(heading)}</h2>")
        section, end, after = rest.partition("</section>")
        body = before + found + section + (html if found else "") + end + after
    return body


def _colours(verdicts: Mapping[str, str]) -> str:
    return "".join(
        f"td.v{number} {{ color: {colour}; }}\n" for number, colour in enumerate(verdicts.values()) if colour
    )


_LONG_TABLE = f"\n.wide:has(tr:nth-child({LONG_ROWS + 1})) {{ max-height: 85vh; }}"
_STYLE = """
body { --page: #fff; --shade: #9aa0a6; background: var(--page); }
ul.lead { max-width: 46rem; margin: 4px 0 12px; padding-left: 1.2rem; }
ul.lead li { margin: 4px 0; }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 14px; list-style: none; margin: 8px 0 0; padding: 8px 0;
  border-top: 1px solid #e8eaed; border-bottom: 1px solid #e8eaed; font-size: 0.9rem; }
a { color: #0072B2; text-decoration: none; }
a:hover { text-decoration: underline; }
section { scroll-margin-top: 8px; }
figure { margin: 0; }
figure img { display: block; width: 100%; max-width: 1000px; height: auto; }
section > div { max-width: 100%; overflow-x: auto; }
.wide { overflow: auto; margin: 8px 0 12px; background:
  linear-gradient(to left, var(--page) 40%, transparent) right / 40px 100% no-repeat local,
  linear-gradient(to top, var(--page) 40%, transparent) bottom / 100% 40px no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 14px 100% no-repeat scroll,
  linear-gradient(to top, var(--shade), transparent) bottom / 100% 14px no-repeat scroll; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--page); white-space: normal;
  vertical-align: bottom; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--page); white-space: normal;
  min-width: 6.5rem; max-width: 20rem; z-index: 1; }
thead th:first-child { z-index: 2; }
td.words { white-space: normal; }
td.words:last-child { white-space: normal; min-width: 17rem; }
.stacked td:first-child { min-width: 19rem; max-width: 26rem; }
.stacked td small { font-family: ui-monospace, monospace; font-size: 0.75rem; }
@media (max-width: 600px) {
  table { font-size: 0.82rem; }
  th, td { padding: 4px 5px; }
  td { white-space: normal; }
  th:first-child, td:first-child { max-width: 8rem; }
  td.words:first-child { min-width: 8rem; }
  .stacked table, .stacked tbody, .stacked thead { display: block; }
  .stacked tr { display: grid; grid-template-columns: 6.5rem 5rem 1fr; padding: 6px 0;
    border-bottom: 1px solid var(--shade); }
  .stacked th, .stacked td { border: 0; }
  .stacked th:nth-child(2), .stacked td:nth-child(2) { text-align: left; }
  .stacked th:first-child, .stacked th:last-child { display: none; }
  .stacked td:first-child, .stacked td:last-child { grid-column: 1 / -1; max-width: none; min-width: 0; }
  .stacked td:first-child { position: static; font-weight: 600; }
  .stacked td:first-child small { font-weight: 400; }
  .stacked td:empty { display: none; }
  nav ul { flex-wrap: nowrap; overflow-x: auto; white-space: nowrap; }
}
@media (prefers-color-scheme: dark) {
  body { --page: #1f1f1f; --shade: #80868b; color: #e3e3e3; }
  td small, .count { color: #9aa0a6; }
  nav ul, th, td { border-color: #3c4043; }
  a { color: #8ab4f8; }
  .plotly-graph-div, figure img { filter: invert(0.88) hue-rotate(180deg); }
  td[class^="v"] { filter: brightness(1.5); }
}
"""
