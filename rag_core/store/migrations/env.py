"""Run the steps on the connection that opened the store, inside its transaction: a step happens whole or not at all."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
