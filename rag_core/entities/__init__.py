"""Entity filter: which entities of a large structure does a query name, and only their part of it.

    structure.py   the data: entities, members, abilities, aliases, synonyms, role and stop words
    operative.py ability.py alias.py team_name.py   the four strategies, each `match(query_lower, query_words)`
    filter.py      TeamFilter: the union of what they find, the filtered structure, the tokens saved
    plain.py       the same answers by a plain scan: the twin that tests compare with
    lint.py suggest.py agreement.py   names that tell nothing; new aliases; precision and recall over labelled queries
"""

from rag_core.entities.filter import Explanation, TeamFilter, filter_teams_for_query
from rag_core.entities.match import Match, Settings, Strategy
from rag_core.entities.structure import Entity, Structure, load_structure, parse_structure

__all__ = [
    "Entity",
    "Explanation",
    "Match",
    "Settings",
    "Strategy",
    "Structure",
    "TeamFilter",
    "filter_teams_for_query",
    "load_structure",
    "parse_structure",
]
