"""Entity filter: which entities of a large structure does a query name, and only their part of it.

structure.py holds the data (entities, members, abilities, aliases, synonyms, role and stop words). operative.py,
alias.py and team_name.py are strategies; filter.py holds the fourth, ability, and unites them. A plain scan among the
benchmarks gives the same answers. lint.py, suggest.py and agreement.py: idle names, new aliases, agreement.
"""

from rag_core.entities.filter import Explanation, TeamFilter, filter_teams_for_query
from rag_core.entities.match import EntityMatch, EntitySettings, Strategy
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
