"""Random recorded lists with rules, texts and labels, and random pipelines over them."""

import random

from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cut import POLICIES
from rag_core.filters.cutoff import MinSimilarity, TopK
from rag_core.filters.query_must import QueryMust
from rag_core.filters.variety import Deduplicate
from rag_core.retrieve.requery import Requery
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

WORDS = ["armor", "class", "fighter", "level", "hit", "roll", "spell", "range", "table", "terrain", "wolf", "forest"]
RULES = [
    None,
    None,
    {"contain_one_of": [["armor class 3", "ac 3"]]},
    {"contain_one_of": [["wolf", "forest"]]},
    {"contain_all_of": ["spell"]},
    {"number_in": [{"label": ["level"], "min": 2, "max": 5}]},
]


def random_case(dice, number, longest=25):
    text = " ".join(dice.choice([*WORDS, "ac 3", "armor class 3", "level 4"]) for _ in range(dice.randint(1, 7)))
    query = Query(f"q{number}", text, tags=tuple(dice.sample(["a", "b", "c"], dice.randint(0, 2))))
    distance, hits = dice.uniform(0.1, 0.5), []
    for rank in range(1, dice.randint(0, longest) + 1):
        distance += dice.choice([0.0, 0.001, 0.02, 0.12, dice.uniform(0, 0.2)])
        body = " ".join(dice.choice(WORDS) for _ in range(dice.randint(0, 12)))
        chunk = Chunk(f"c{rank}", f"title {rank}", body, query_must=dice.choice(RULES))
        hits.append(Hit(chunk, rank, {"distance": distance}))
    grades = {f"c{at}": dice.choice([0, 0, 1, 3]) for at in range(1, longest + 4) if dice.random() < 0.6}
    start = Candidates(query, tuple(hits), metric=Metric.COSINE, recorded=True)
    return Case(query, grades, start, dice.choice([None, None, 12]))


def random_cases(seed, count=8, longest=25):
    dice = random.Random(seed)
    return [random_case(dice, number, longest) for number in range(count)]


def random_stage(dice):
    return dice.choice(
        [
            lambda: QueryMust(dice.choice(["token", "substring"])),
            lambda: AdaptiveGap(
                gap_threshold=dice.choice([0.01, 0.1, 0.3]),
                distance_offset=dice.choice([0.05, 0.4]),
                min_results=dice.randint(0, 3),
                max_results=dice.randint(3, 20),
                gap_policy=dice.choice(POLICIES),
                jumps=dice.choice([1, 1, 2]),
                worst_score=dice.choice([None, None, None, 0.6]),
                weak_top=dice.choice([None, None, None, 0.4]),
            ),
            lambda: TopK(dice.randint(1, 20)),
            lambda: MinSimilarity(dice.choice([0.2, 0.5, 0.7])),
            lambda: Deduplicate(dice.choice([0.3, 0.8])),
            lambda: Requery(k=dice.randint(1, 10), max_iterations=dice.randint(1, 3)),
        ]
    )()


def random_pipeline(dice, longest=4):
    return Pipeline(tuple(random_stage(dice) for _ in range(dice.randint(0, longest))), label=f"p{dice.randint(0, 2)}")
