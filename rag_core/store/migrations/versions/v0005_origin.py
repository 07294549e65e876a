"""How each label event came into the store, and a checksum of its row; an undo can be taken back as a label can."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

COLUMNS = """position, session, seq, kind, eval_set, query_id, query_hash, chunk_id, text_hash, chunk_key,
       annotator, grade, note, batch, undoes_session, undoes_seq, at,
       author, actor, pressed_at, arrived_at, base_position, inclusion_p, sampler, checksum"""

LIVE = f"""
CREATE VIEW label_live AS
SELECT {COLUMNS}
FROM label_event AS given
WHERE given.kind = 'label' AND NOT EXISTS (
    SELECT 1 FROM label_event AS undo
    WHERE undo.kind = 'undo' AND undo.undoes_session = given.session AND undo.undoes_seq = given.seq
    AND NOT EXISTS (
        SELECT 1 FROM label_event AS back
        WHERE back.kind = 'undo' AND back.undoes_session = undo.session AND back.undoes_seq = undo.seq
    )
)
"""  # noqa: S608 - all of it stands here

CURRENT = f"""
CREATE VIEW label_current AS
SELECT {COLUMNS}
FROM (
    SELECT label_live.*, ROW_NUMBER() OVER (
        PARTITION BY eval_set, annotator, query_id, chunk_key ORDER BY position DESC
    ) AS recency
    FROM label_live
) AS ranked
WHERE recency = 1
"""  # noqa: S608


def upgrade() -> None:
    """Add the columns, empty for what is there, and make both views anew."""
    op.execute("DROP VIEW label_current")
    op.execute("DROP VIEW label_live")
    for name in ("author", "actor", "pressed_at", "arrived_at"):
        op.add_column("label_event", sa.Column(name, sa.Text))
    op.add_column("label_event", sa.Column("base_position", sa.BigInteger))
    op.add_column("label_event", sa.Column("inclusion_p", sa.Float))
    op.add_column("label_event", sa.Column("sampler", sa.Text))
    op.add_column("label_event", sa.Column("checksum", sa.Text))
    op.execute(LIVE)
    op.execute(CURRENT)


def downgrade() -> None:
    """Refuse: a back-up of the older schema stands in `backups`."""
    raise NotImplementedError
