"""The child that reads documents apart; started by apart.py, by nobody else."""

from rag_core.corpus.apart import answer
from rag_core.corpus.load import answers

answer(answers)
