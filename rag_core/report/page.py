"""The report as one HTML text. Everything is escaped by the template engine; nothing in it is fetched or run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_core.compare.run_file import Run
from rag_core.files import read_text
from rag_core.report import figures
from rag_core.report.content import content_of

TEMPLATE = Path(__file__).with_name("page.html")


def report_html(run: Run, notes: Sequence[tuple[str, str, str]] = ()) -> str:
    """The report of a run, with (at, author, note) for each note on it: one self-contained page without scripts."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["figure"] = figure
    environment.filters["chance"] = lambda p: "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
    environment.filters["signed"] = lambda value: "-" if value is None else f"{value:+.3f}"
    template = environment.from_string(read_text(TEMPLATE))
    content = content_of(run, notes)
    return template.render(
        content=content,
        run=run,
        document=run.document,
        dots=figures.dots([row.estimates["SetF"] for row in content.rows] if "SetF" in content.measures else []),
        strips=[(found, figures.strip(values)) for found, values in content.differences],
        falls=[(one, figures.fall(one.steps)) for one in content.falls],
        size=figures,
    )


def figure(value: float | None) -> str:
    """A measure with three digits, a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"
