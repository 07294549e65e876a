"""Entity filter: which entities of a large structure does a query name, and only their part of it.

structure.py holds the data and how names are read, strategies.py the four ways to find them, filter.py unites them. A
plain scan among the benchmarks gives the same answers. lint.py and agreement.py: idle names, figures, new aliases.
"""

from rag_core.entities.filter import Explanation, TeamFilter, filter_teams_for_query
from rag_core.entities.strategies import EntityMatch, EntitySettings, Strategy
from rag_core.entities.structure import Entity, Structure, load_structure, parse_structure

__all__ = [
    "Entity",
    "Explanation",
    "EntityMatch",
    "EntitySettings",
    "Strategy",
    "Structure",
    "TeamFilter",
    "filter_teams_for_query",
    "load_structure",
    "parse_structure",
]
