"""The recorder: what it writes is read as recorded lists, and whatever happens its caller never hears of it."""

import json
import subprocess
import sys

from rag_core.records import load_lists
from rag_core.sources import winnow_record
from rag_core.sources.winnow_record import ListRecorder

HITS = [{"id": "a", "distance": 0.1, "text": "secret"}, {"id": "b", "distance": 0.2}]


def test_lists_come_back_without_texts_unless_they_are_wanted(tmp_path):
    for texts in (False, True):
        path = tmp_path / f"{texts}.jsonl"
        recorder = ListRecorder(path, texts=texts)
        recorder.record("who?", HITS, metric="cosine", service="front")
        recorder.record("where?", [{"text": "no id, no score"}])
        assert recorder.flush()
        first, second = load_lists(path)
        assert (first.query.text, first.candidates.metric, first.query.metadata["service"]) == (
            "who?",
            "cosine",
            "front",
        )
        assert [hit.chunk.text for hit in first.candidates.hits] == (["secret", ""] if texts else ["", ""])
        assert second.candidates.hits[0].scores == {"score": 1.0}
        assert (recorder.written, recorder.dropped) == (2, 0)


def test_whatever_happens_the_caller_goes_on(tmp_path):
    recorder = ListRecorder(tmp_path / "no" / "such" / "folder.jsonl")
    recorder.record("q", HITS)
    recorder.record("q", [object()])
    recorder.record("q", None)
    assert recorder.flush()
    assert (recorder.written, recorder.dropped) == (0, 3)
    assert recorder.watch(lambda query: 7)("q") == 7
    full = ListRecorder(tmp_path / "full.jsonl", waiting=1, redact=lambda record: 1 / 0)
    for _ in range(50):
        full.record("q", HITS)
    assert full.flush()
    assert (full.written, full.dropped) == (0, 50)


def test_redaction_sampling_limits_and_turning_over(tmp_path):
    recorder = ListRecorder(
        tmp_path / "r.jsonl",
        redact=lambda record: {**record, "query": "x"} if record["query"] != "never" else None,
        most_hits=1,
        most_bytes=2000,
    )
    for number in range(40):
        recorder.record("never" if number % 2 else "mine", HITS)
    assert recorder.flush()
    kept = [
        json.loads(line) for name in ("r.jsonl", "r.jsonl.1") for line in (tmp_path / name).read_text().splitlines()
    ]
    assert {row["query"] for row in kept} == {"x"}
    assert {len(row["candidates"]) for row in kept} == {1}
    assert (tmp_path / "r.jsonl").stat().st_size <= 2000
    none = ListRecorder(tmp_path / "none.jsonl", sample=0.0)
    none.record("q", HITS)
    assert none.flush()
    assert not (tmp_path / "none.jsonl").exists()


def test_a_watched_function_answers_as_before(tmp_path):
    recorder = ListRecorder(tmp_path / "w.jsonl")

    @recorder.watch
    def search(query, k=2):
        return [("one text", 0.9), ("two text", 0.5)][:k]

    assert search("who?", k=1) == [("one text", 0.9)]
    assert recorder.flush()
    (case,) = load_lists(tmp_path / "w.jsonl")
    assert case.candidates.hits[0].scores == {"score": 0.9}


def test_the_file_needs_nothing_installed(tmp_path):
    code = (
        "import runpy, sys; m = runpy.run_path(sys.argv[1]); r = m['ListRecorder'](sys.argv[2]);"
        "r.record('q', [{'id': 'a', 'score': 1}]); assert r.flush()"
    )
    out = tmp_path / "bare.jsonl"
    subprocess.run([sys.executable, "-I", "-S", "-c", code, winnow_record.__file__, out], check=True)
    assert load_lists(out)[0].query.text == "q"
