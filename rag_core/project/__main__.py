"""The child in which large documents are ingested; started by intake.py, by nobody else."""

from rag_core.child import answer
from rag_core.project.intake import take_in_child

answer(take_in_child)
