"""The history of questions asked: settings, result and times of each, deletable for good."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table and its indexes."""
    op.create_table(
        "query_history",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("asked_by", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
        sa.Column("hops", sa.Text, nullable=False),
        sa.Column("milliseconds", sa.Float, nullable=False),
        sa.Column("tokens", sa.BigInteger),
        sa.Column("cost", sa.Float),
    )
    op.create_index("query_history_about", "query_history", ["collection", "at"])


def downgrade() -> None:
    """Refuse: a back-up of the older schema stands in `backups`."""
    raise NotImplementedError
