"""What a pipeline kept as a TREC run: `query Q0 chunk rank score tag`, for trec_eval, pytrec_eval and ir_measures.

The score is minus the rank: evaluation tools sort by score and break ties in their own ways, so every score is unique.
White space in ids is percent-escaped as in our qrels. A query that kept nothing has no line, as TREC has it.
"""

from __future__ import annotations

from collections.abc import Callable

from rag_core.errors import InputError
from rag_core.measure.experiment import PipelineReport, kept_ids


def write_run(report: PipelineReport, escape: Callable[[str], str] = str, tag: str = "") -> str:
    """The run of one pipeline; `escape` makes an id one column. An InputError for an id that still has white space."""
    name = "_".join((tag or report.name).split()) or "run"
    rows = []
    for outcome in report.outcomes:
        query_id = escape(outcome.case.query.id)
        for rank, chunk_id in enumerate(kept_ids(outcome.result), 1):
            columns = (query_id, "Q0", escape(chunk_id), str(rank), str(-rank), name)
            if any(len(column.split()) != 1 for column in columns):
                raise InputError(f"query {query_id[:80]!r} has an id with white space, expected escaped ids in a run")
            rows.append(" ".join(columns) + "\n")
    return "".join(rows)
