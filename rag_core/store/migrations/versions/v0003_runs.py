"""Evaluation runs: whole snapshots that are never changed, and notes on them that are only ever added."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make both tables and the guard of the snapshots."""
    op.create_table(
        "run",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("eval_set", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("snapshot", sa.Text, nullable=False),
    )
    op.create_index("run_about", "run", ["eval_set", "at"])
    op.create_table(
        "run_note",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("run_note_about", "run_note", ["run"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE TRIGGER run_no_update BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'a run is never changed'); END"
        )
    else:
        op.execute(
            "CREATE OR REPLACE FUNCTION run_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'a run is never changed'; END $$"
        )
        op.execute("CREATE TRIGGER run_no_update BEFORE UPDATE ON run FOR EACH STATEMENT EXECUTE FUNCTION run_refuse()")


def downgrade() -> None:
    """Refuse: a back-up of the older schema stands in `backups`."""
    raise NotImplementedError
