"""Calibrating a stranger's project: what is proposed pays on dev, is taken or left, and what has no use is said."""

import json

import pytest

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.index.embed import BundledEmbedder
from rag_core.measure.measures import SET_MEASURES, parse_measure
from rag_core.project.calibrate import calibrate, language_of
from rag_core.project.choosing import best_on_dev
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.records import dump_lists
from rag_core.spec import parse_pipeline
from tests.tune.test_learned_training import worded

ANIMALS = ["otter", "badger", "heron", "falcon", "lizard", "beetle", "salmon", "weasel", "magpie", "hornet"]
RANKED = (*SET_MEASURES, parse_measure("nDCG@10"), parse_measure("R@100"))
PIPELINE = [{"Lexical": {"depth": 20}}, {"TopK": {"k": 5}}]


def words_project(tmp_path, texts, questions, model="none"):
    """A project searched by words alone: texts by id, and questions by the id of the text that answers them."""
    rows = [{"id": id_, "text": text} for id_, text in texts.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = [{"id": f"q-{id_}", "query": text} for id_, text in questions.items()]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    (tmp_path / "labels.qrels").write_text("".join(f"q-{id_} 0 {id_} 1\n" for id_ in questions))
    options = ["--questions", tmp_path / "questions.jsonl", "--labels", tmp_path / "labels.qrels", "--model", model]
    made = ["init", "garden", "--from", tmp_path / "corpus.jsonl", *options, "--workspace", tmp_path / "ws"]
    assert main(list(map(str, made))) == 0
    return tmp_path / "ws"


QUESTIONS = {one: f"What is the habit of a hunted {one}?" for one in ANIMALS}
NOISE = {f"noise-{n}": f"What is the habit of number {n}, and how is it kept by you?" for n in range(9)}


@pytest.fixture
def garden(tmp_path):
    """Chunks in the plural, questions in the singular among words that stand in every other chunk; words alone."""
    texts = {one: f"About {one}s: they are hunting at night." for one in ANIMALS}
    return words_project(tmp_path, {**texts, **NOISE}, QUESTIONS)


def test_an_analyzer_that_no_longer_finds_a_relevant_chunk_is_not_proposed_though_it_ranks_better(tmp_path):
    small = {"he": "Who was he?", "they": "Where are they?", "she": "Why did she?", "we": "When were we?"}
    texts = {one: f"About {one}s: they are hunting at the night." for one in ANIMALS}
    questions = {**QUESTIONS, **small}
    session = Session(open_project("garden", words_project(tmp_path, {**texts, **NOISE, **small}, questions)))
    assert any(case.query.text in small.values() for case in session.dev)
    made = calibrate(session, session.pipeline('[{"Lexical": {"depth": 100}}, {"TopK": {"k": 5}}]'))
    tallies = [
        session.measure([parse_pipeline([{"Lexical": {"depth": 100, "analyzer": one}}])], session.dev, measures=RANKED)[
            0
        ]
        for one in ("plain", "english")
    ]
    plain, english = (tally.summary.means for tally in tallies)
    assert english["nDCG@10"] > plain["nDCG@10"]
    assert english["R@100"] < plain["R@100"]
    assert "finds as much" in made.left["analyzer"]


def test_analyzer_and_cut_are_proposed_taken_and_measured(garden, capsys):
    capsys.readouterr()
    options = ["--project", "garden", "--workspace", str(garden), "--take", "all", "--save", "mine", "--json"]
    assert main(["calibrate", "--pipeline", json.dumps(PIPELINE), *options]) == 0
    made = json.loads(capsys.readouterr().out)
    by_name = {one["name"]: one for one in made["proposals"]}
    assert by_name["analyzer"]["changes"] == {"analyzer": {"now": "plain", "proposed": "english"}}
    assert by_name["cut"]["after"]["SetF"] > by_name["cut"]["before"]["SetF"]
    assert set(made["left"]) == {"search", "floor", "plurals"}
    assert made["taken"]["dev"]["SetF"] > by_name["analyzer"]["before"]["SetF"]
    assert "mine" in Session(open_project("garden", garden)).pipeline_names()


def test_words_are_proposed_where_they_rank_better_by_more_than_chance_and_nothing_where_they_do_not(tmp_path):
    """What a chunk is about stands behind what the model reads of it: words find it, vectors do not."""
    start = "The report of the year says what was seen in the woods. " * 40
    texts = {one: f"{start} Then a {one} came." for one in ANIMALS}
    questions = {one: f"When did the {one} come?" for one in ANIMALS}
    bundled = BundledEmbedder().name
    session = Session(open_project("garden", words_project(tmp_path, texts, questions, bundled)))
    made = calibrate(session, session.pipeline('[{"Dense": {"depth": 50}}, {"TopK": {"k": 3}}]'))
    (search,) = [one for one in made.proposals if one.name == "search"]
    assert (search.before.name, search.after.settings()["depth"]) == ("Dense", 50)
    assert search.after.name in ("Lexical", "Hybrid")
    assert search.gain > 0
    assert made.taken(["search"]).stages[0] == search.after
    again = calibrate(session, made.taken([one.name for one in made.proposals]))
    assert "none ranks better by more than a standard error" in again.left["search"]


def test_where_the_best_fixed_k_beats_all_that_is_proposed_that_is_said_with_it(garden, capsys):
    session = Session(open_project("garden", garden))
    pipeline = session.pipeline('[{"Lexical": {"depth": 20}}]')  # it keeps everything, and has no cut to choose
    made = calibrate(session, pipeline)
    assert made.rival.label.startswith("best fixed k = ")
    assert "take that instead" in made.to_text()
    assert made.to_json()["rival"]["stages"][-1] == {"TopK": made.rival.stages[-1].settings()}
    assert calibrate(session, made.rival).rival is None


@pytest.mark.parametrize("depth", [20, 2])
def test_with_few_labels_the_learned_filter_stands_as_it_is_where_it_beats_the_best_fixed_k(garden, depth):
    session = Session(open_project("garden", garden))
    pipeline = parse_pipeline([{"Lexical": {"depth": depth}}, "LearnedFilter"])
    best = best_on_dev(session, pipeline, 1)
    (as_it_is,) = session.measure([pipeline], session.dev)
    assert best.value == pytest.approx(max(best.fixed_value, as_it_is.summary.means["SetF"]))
    assert best.pipeline.stages[1].name == ("TopK" if best.fixed_wins else "LearnedFilter")


def test_each_proposal_is_taken_alone_and_an_unknown_one_is_refused(garden):
    session = Session(open_project("garden", garden))
    pipeline = session.pipeline(json.dumps(PIPELINE))
    made = calibrate(session, pipeline)
    taken = made.taken(["analyzer"])
    assert [stage.settings() for stage in taken.stages[1:]] == [stage.settings() for stage in pipeline.stages[1:]]
    (tally,) = session.measure([taken], session.dev)
    proposal = next(one for one in made.proposals if one.name == "analyzer")
    assert tally.summary.means["SetF"] == pytest.approx(proposal.figures[1]["SetF"])
    assert made.taken([]).stages == pipeline.stages
    with pytest.raises(InputError, match="nonsense is not proposed, expected one of analyzer, cut"):
        made.taken(["nonsense"])


def test_a_floor_is_proposed_from_distances_and_no_model_is_asked(tmp_path):
    place = tmp_path / "eval_sets" / "mine"
    place.mkdir(parents=True)
    (place / "meta.yaml").write_text("version: 1\nname: mine\n")
    far = [{"id": "a", "distance": 0.8, "relevant": 3}, {"id": "b", "distance": 0.95, "relevant": 0}]
    rows = [{"version": 1, "id": f"q{at}", "query": f"question {name}", "metric": "cosine", "split": "dev", "candidates": far}
            for at, name in enumerate("abc")]  # fmt: skip
    (place / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))

    class Silent:
        name = model = "silent"

        def __getattr__(self, name):
            pytest.fail(f"the judge was asked ({name})")

    session = Session(open_project("mine", tmp_path), judge=Silent())
    made = calibrate(session, session.pipeline('[{"LLMFilter": {}}, {"TopK": {"k": 5}}]'))
    (floor,) = made.proposals
    assert floor.changes["min_relevance_threshold"][1] == pytest.approx(0.2, abs=0.002)
    assert (floor.figures[0]["SetR"], floor.figures[1]["SetR"]) == (0, 1)
    assert "asks a model" in made.left["cut"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The wizard is in the tower and it is his.", "english"),
        ("Der Zauberer ist in dem Turm und er gehört ihm nicht.", "german"),
        ("AC 6, HP 12, XP 30", ""),
    ],
)
def test_the_language_is_read_off_the_texts(text, language):
    assert language_of([text]) == language


def test_where_the_chunks_are_code_the_language_is_that_of_the_questions(tmp_path):
    texts = {one: f"def hunt(): return [{one}s, hunting, night]" for one in ANIMALS}
    noise = {f"noise-{n}": f"def habit{n}(): return [habit, number, {n}, what, the]" for n in range(9)}
    assert language_of([*texts.values(), *noise.values()]) == ""
    session = Session(open_project("garden", words_project(tmp_path, {**texts, **noise}, QUESTIONS)))
    made = calibrate(session, session.pipeline(json.dumps(PIPELINE)))
    assert made.proposals[0].changes["analyzer"] == ("plain", "english")


def test_the_learned_filter_is_proposed_for_a_cut_where_it_gains_more_on_questions_left_out(tmp_path):
    folder = tmp_path / "ws" / "eval_sets" / "coffee"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: coffee\n")
    lists = worded(1, 60)  # what is relevant stands anywhere in them
    (folder / "lists.jsonl").write_text("\n".join(dump_lists(lists)))
    session = Session(open_project("coffee", tmp_path / "ws"))
    made = calibrate(session, parse_pipeline(["AdaptiveGap"]))
    (cut,) = made.proposals
    assert (cut.name, cut.after.name) == ("cut", "LearnedFilter")
    assert cut.gain > 0.2
    assert "fold by fold the learned filter gains" in cut.why
    assert "learned from" in cut.to_text()
    assert "signals" not in cut.to_text()
    taken, fixed = made.taken(["cut"]), session.baseline(made.pipeline)
    held = [tally.summary.means["SetF"] for tally in session.measure([taken, fixed], session.held_out)]
    assert held[0] > held[1] + 0.2
