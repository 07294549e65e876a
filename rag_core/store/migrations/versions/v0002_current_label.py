"""Two views: the labels that were not undone, and of these the newest per annotator, query and chunk."""

from alembic import op

revision = "0002"
down_revision = "0001"

LIVE = """
CREATE VIEW label_live AS
SELECT position, session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key,
       annotator, grade, note, batch, undoes_session, undoes_seq, at
FROM label_event AS given
WHERE given.kind = 'label' AND NOT EXISTS (
    SELECT 1 FROM label_event AS undo
    WHERE undo.kind = 'undo' AND undo.undoes_session = given.session AND undo.undoes_seq = given.seq
)
"""

CURRENT = """
CREATE VIEW label_current AS
SELECT position, session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key,
       annotator, grade, note, batch, undoes_session, undoes_seq, at
FROM (
    SELECT label_live.*, ROW_NUMBER() OVER (
        PARTITION BY eval_set, annotator, query_id, chunk_key ORDER BY position DESC
    ) AS recency
    FROM label_live
) AS ranked
WHERE recency = 1
"""


def upgrade() -> None:
    """Make both views."""
    op.execute(LIVE)
    op.execute(CURRENT)


def downgrade() -> None:
    """Refuse: a back-up of the older schema stands in `backups`."""
    raise NotImplementedError
