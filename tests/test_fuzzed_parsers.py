"""Whatever stands in a file or an address is read or refused in one sentence, and quickly; nothing else comes out.

Texts are valid ones with pieces put in, taken out and repeated. What is counted is the processor's time of the one
thread; a text over the bound is tried again, so that a pause of the garbage collector is not held against it.
"""

import json
import random
from time import thread_time

import pytest

from pages import state
from rag_core.compare.run_file import FORMAT, VERSION, read_run
from rag_core.corpus.jsonl import chunks_of, cleaned, list_records, read_jsonl
from rag_core.corpus.tables import read_csv
from rag_core.errors import WinnowError
from rag_core.files import parse_json, parse_yaml
from rag_core.records import load_lists
from rag_core.spec import parse_pipeline
from rag_core.store.exchange.formats import read_labels

BOUND = 0.050  # seconds of the processor that one text may take
SIGNS = """{ } [ ] , : ; " ' | & * ! % @ ` # - . + = > < ? / \\ ~ $ 0 1 -1 1e999 007 NaN null true Infinity"""
ODD = "\x00 \ud800 \ufeff \u2028 \u0085 \u202e ﷺ １ 🧙 e\u0301 --- ... !!python/object:os.system &a *a <<: __proto__"
WORDS = '"id" "text" "query" "candidates" "distance" "query_must" "relevant" stages TopK k QueryMust name'
LONG = ("[" * 300, '{"a":' * 300, "9" * 400, "a" * 1000)
SPACE = ("\n", "\r", "\t", "\r\n", " ", "", '""', "'''", "\n- ", "\n  ")
PIECES = (*SIGNS.split(" "), *ODD.split(" "), *WORDS.split(" "), *LONG, *SPACE)


def lists(text):
    load_lists(text.encode("utf-8", "surrogatepass"), "a.jsonl")


def documents(text):
    read_jsonl(cleaned(text), "a.jsonl")


def record_list(text):
    chunks_of(list_records(cleaned(text), "a.json"), "a.json")


def table(text):
    chunks_of(read_csv(cleaned(text), "a.csv"), "a.csv")


def yaml_spec(text):
    parse_pipeline(parse_yaml(text, "a.yaml"))


def json_spec(text):
    parse_pipeline(parse_json(text, "a.json"))


def run_file(text):
    read_run(parse_json(text, "a.json"), "a.json")


def labels(format_name):
    def read(text):
        read_labels(text, format_name, "a.file")

    return read


def parameters(text):
    """Every line of the text is a parameter."""
    return dict(line.split("=", 1) for line in text.split("\n") if "=" in line)


def link(text):
    known = set(state.PARAMETERS.values())
    state.checked({name: value for name, value in parameters(text).items() if name in known})


def older_link(text):
    state.older(parameters(text))


LISTS = '{"id": "q1", "query": "ac 6", "candidates": [{"id": "a", "distance": 0.5, "relevant": 1, "query_must": {}}]}\n'
PIPELINE = "name: mine\nstages:\n  - Dense: {depth: 200}\n  - AdaptiveGap: {gap_threshold: 0.1}\n  - TopK: {k: 15}\n"
RUN = {
    **{"format": FORMAT, "version": VERSION, "id": "r1", "at": "2026-01-01", "name": "run", "eval_set": "set"},
    **{"min_grade": 1, "seed": 0, "fingerprints": {"queries": "1", "labels": "l", "corpus": "c", "code": "1"}},
    **{"models": {}, "platform": {}, "queries": [], "labels": {"q0": {"good": 1}}, "chunks": {}},
    "pipelines": [
        {
            **{"name": "a", "spec": [], "means": {"queries_fallback": 0}},
            "queries": [{"id": "q0", "values": {"SetF": 0.5}, "kept": ["good"], "reasons": []}],
        }
    ],
}
TOP = state.encode(parse_pipeline([{"TopK": {"k": 5}}]))
PARSERS = {
    "recorded lists": (lists, LISTS + LISTS.replace("q1", "q2")),
    "documents in JSON lines": (
        documents,
        '{"id": "a", "title": "T", "text": "x", "ref_ids": ["b"]}\n{"text": "y", "page": 7}\n',
    ),
    "documents in a JSON list": (record_list, '[{"id": "a", "title": "T", "text": "x", "ref_ids": ["b"]}, "y"]'),
    "documents in CSV": (table, 'id,title,text,page\na,"T, u",first,7\nb,,"second\nline",8\n'),
    "pipelines in YAML": (yaml_spec, PIPELINE),
    "pipelines in JSON": (json_spec, '{"name": "p", "stages": [{"TopK": {"k": 15}}, "QueryMust"]}'),
    "run files": (run_file, json.dumps(RUN)),
    "qrels of TREC": (labels("trec"), "q1 0 d1 1\nq1 0 d2 0\n"),
    "qrels of BEIR": (labels("beir"), "query-id\tcorpus-id\tscore\nq1\td1\t1\n"),
    "labels in CSV": (labels("csv"), "query_id,chunk_id,grade,annotator\nq1,d1,1,me\n"),
    "labels in JSON lines": (labels("jsonl"), '{"query_id": "q1", "chunk_id": "d1", "grade": 1}\n'),
    "labels of Quepid": (labels("quepid"), "query,docid,rating\nq1,d1,1\n"),
    "labels of SRW": (labels("srw"), '{"name": "n", "type": "IMPORT_JUDGMENT", "judgmentRatings": []}'),
    "links": (
        link,
        f"project=rulebook\nquestion=q1\nzoom=all\na=fixed-15\nb={TOP}\nlens=losses",
    ),
    "links of the first version": (older_link, 'set=c\nquery=q1\npipeline=[{"TopK":{"k":5}}]\ncollection=c\nchunk=a'),
    "links to a comparison": (
        older_link,
        'set=rulebook\npipelines=["bm25","hybrid"]\nshow=Queries\nmeasure=SetF\nbaseline=1',
    ),
}


def mutated(dice, text):
    """The text with some pieces put in, taken out, repeated or moved."""
    for _ in range(dice.randint(1, 6)):
        at = dice.randint(0, len(text))
        end = min(len(text), at + dice.randint(0, 12))
        how = dice.random()
        if how < 0.6:
            text = text[:at] + dice.choice(PIECES) + text[at:]
        elif how < 0.8:
            text = text[:at] + text[end:]
        else:
            text = text[:at] + text[at:end] * dice.randint(2, 40) + text[end:]
    return text


def fuzz(name, count, seed, bound=float("inf")):
    """How many of the texts were read, and the longest any took."""
    parse, sample = PARSERS[name]
    parse(sample)
    dice, read, longest = random.Random(f"{name} {seed}"), 0, 0.0
    for _ in range(count):
        text = mutated(dice, sample)
        taken = min_seconds(parse, text)
        read += taken[0]
        longest = max(longest, taken[1])
        assert taken[1] < bound, text[:300]
    return read, longest


def min_seconds(parse, text):
    """Whether the text was read, and the seconds of the fastest of at most five tries."""
    taken = []
    while len(taken) < 5 and (not taken or min(taken) >= BOUND):
        began = thread_time()
        sentence = refusal(parse, text)
        taken.append(thread_time() - began)
    assert "\n" not in sentence, text[:300]
    assert len(sentence) < 1000, text[:300]
    return not sentence, min(taken)


def refusal(parse, text):
    """Why the text is refused; nothing where it is read."""
    try:
        parse(text)
    except WinnowError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", PARSERS)
def test_a_thousand_fuzzed_texts_are_read_or_refused_in_one_sentence(name):
    read, _ = fuzz(name, 1000, 1)
    assert read < 1000


def test_a_column_whose_name_holds_a_line_break_is_refused_in_one_line():
    assert refusal(table, 'id,"first\nsecond"\na,b\n').startswith("a.csv has no column text but id, first second; say")


@pytest.mark.parametrize("where", ["name: {}", "version: {}", "stages: {{a: {}}}", "stages: [TopK: {}]"])
def test_a_long_word_in_a_pipeline_is_cut_short_in_the_sentence(where):
    assert "expected" in refusal(yaml_spec, where.format("[" + "a" * 5000 + "]"))
    assert len(refusal(yaml_spec, where.format("[" + "a" * 5000 + "]"))) < 300


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", PARSERS)
def test_a_hundred_thousand_fuzzed_texts_are_read_or_refused_in_one_sentence(name):
    read, longest = fuzz(name, 100_000, 2, BOUND)
    assert read < 100_000
    assert longest < BOUND
