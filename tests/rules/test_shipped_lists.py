from rag_core.eval_sets.reading import load_set
from rag_core.rules.templates import propose


def test_the_templates_write_exactly_the_rules_of_the_shipped_combat_lists():
    for case in load_set("recorded-combat").cases:
        for hit in case.candidates.hits:
            proposal = propose(hit.chunk.title)
            assert hit.chunk.query_must == (proposal.rule.as_mapping() if proposal else None), hit.chunk.title
