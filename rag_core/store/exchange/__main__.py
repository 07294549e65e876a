"""The child that stores many labels; started by planning.py, by nobody else."""

from rag_core.child import answer
from rag_core.store.exchange.planning import import_child

answer(import_child)
