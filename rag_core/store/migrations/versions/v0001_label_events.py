"""The append-only table of label events; triggers hold that nothing is changed or deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table, its indexes and the guards."""
    op.create_table(
        "label_event",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("eval_set", sa.Text, nullable=False),
        sa.Column("query_id", sa.Text, nullable=False),
        sa.Column("query_hash", sa.Text, nullable=False),
        sa.Column("chunk_id", sa.Text, nullable=False),
        sa.Column("text_hash", sa.Text, nullable=False),
        sa.Column("chunk_key", sa.Text, nullable=False),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("grade", sa.Integer),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("batch", sa.Text, nullable=False),
        sa.Column("undoes_session", sa.Text),
        sa.Column("undoes_seq", sa.BigInteger),
        sa.Column("at", sa.Text, nullable=False),
        sa.UniqueConstraint("session", "seq", name="label_event_key"),
        sa.CheckConstraint("kind IN ('label', 'undo')", name="label_event_kind"),
        sa.CheckConstraint("grade BETWEEN 0 AND 3", name="label_event_grade"),
        sqlite_autoincrement=True,
    )
    op.create_index("label_event_about", "label_event", ["eval_set", "annotator", "query_id", "chunk_key"])
    op.create_index("label_event_undoes", "label_event", ["undoes_session", "undoes_seq"])
    op.create_index("label_event_batch", "label_event", ["batch"])
    if op.get_bind().dialect.name == "sqlite":
        for deed in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER label_event_no_{deed.lower()} BEFORE {deed} ON label_event "
                "BEGIN SELECT RAISE(ABORT, 'label events are only ever added'); END"
            )
    else:
        op.execute(
            "CREATE OR REPLACE FUNCTION label_event_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'label events are only ever added'; END $$"
        )
        op.execute(
            "CREATE TRIGGER label_event_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON label_event "
            "FOR EACH STATEMENT EXECUTE FUNCTION label_event_refuse()"
        )


def downgrade() -> None:
    """Refuse: going back would lose labels; a back-up of the older schema stands in `backups`."""
    raise NotImplementedError
