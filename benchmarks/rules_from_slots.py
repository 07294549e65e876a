"""Rules and questions from slots alone, no template and no model: on the demo, and on two rulebooks never seen before.

    python -m benchmarks.rules_from_slots [--list]

Per set: chunks, families, rules; how many are right by the titles (its own title satisfies a rule, and of its siblings'
titles at most one in ten); what they drop wrongly on labelled questions, strict slots (numbers, codes, lists) and slots
of words apart, as they stand and asked in the other number; and how many labels of made questions are right by the
titles. The rulebooks are the files under WINNOW_SHARED (or ../shared), skipped without them; their questions are
written by hand (benchmarks/questions).
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from time import process_time

from benchmarks.parts.real_lists import DATA
from benchmarks.parts.rulebooks import RULEBOOKS, rulebook
from rag_core.eval_sets.reading import SHIPPED, load_set
from rag_core.rules.match import decide, forms
from rag_core.rules.questions import ANSWERS, MadeQuestion, make_questions
from rag_core.rules.rule import Rule, read_rule
from rag_core.rules.slots import SlotFamily, phrase_forms, propose
from rag_core.text import STOP_WORDS, words
from rag_core.types import Chunk

MADE = 100


def demo() -> list[Chunk]:
    lines = (SHIPPED / "rulebook" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Chunk(row["id"], row["title"], row["text"], query_must=row.get("query_must")) for row in rows]


def right_by_titles(families: Sequence[SlotFamily]) -> tuple[int, int]:
    """(rules that are right, rules): its own title satisfies a rule, and at most a tenth of its siblings' titles."""
    right = total = 0
    for family in families:
        members = [one for one in family.members if one.chunk_id in family.rules]
        for member in members:
            rule = family.rules[member.chunk_id]
            others = [one.title for one in members if one.title != member.title and one.values != member.values][:200]
            admitted = sum(decide(rule, title).satisfied for title in others)
            right += decide(rule, member.title).satisfied and admitted <= 0.1 * len(others)
            total += 1
    return right, total


def told_apart(question: MadeQuestion, titles: dict[str, str]) -> Iterator[bool]:
    """For each label whether the titles bear it out: a title answers where the question holds all it has of its own.

    Its own are the words that not all labelled titles hold; of "and" lists one part, of a range any number within.
    """
    labelled = {chunk: titles[chunk] for chunk in question.grades}
    shared = set.intersection(*(set(words(title)) for title in labelled.values()))
    asked = {form for word in words(question.query.text) for form in (*forms(word), *phrase_forms([word]))}
    for chunk, grade in question.grades.items():
        title = re.sub(r"\([^)]*\)|\[[^]]*\]|^\s*[IVX]+\.(?:[A-Z]\.)?", " ", labelled[chunk])
        span = re.search(r"(?<![\d-])(-?\d+)\s*-\s*(\d+)", title)
        numbers = [float(word) for word in asked if re.fullmatch(r"-?\d+", word)]
        held = [span is None or any(float(span[1]) <= number <= float(span[2]) for number in numbers)]
        own = False
        for segment in re.split(r":|\s-\s", title.replace(span[0], " ") if span else title):
            listed = re.search(r"\s(?:and|or)\s", segment, re.IGNORECASE)
            pieces = re.split(r",\s*|\s+and\s+|\s+or\s+", segment, flags=re.IGNORECASE) if listed else [segment]
            left = [words_left for piece in pieces if (words_left := set(words(piece)) - shared - STOP_WORDS)]
            own = own or bool(left)
            held.append(not left or any(one <= asked for one in left))
        yield (all(held) and (own or span is not None)) == (grade >= ANSWERS)


def other_number(question: str, families: Sequence[SlotFamily]) -> str:
    """The question with every word that stands in a member's title in its other number, as far as it has one."""
    known = {word for family in families for member in family.members for word in words(member.title)}
    found = []
    for word in question.split():
        bare = word.strip("?.,!:;").casefold()
        others = (*phrase_forms([bare])[1:], *reversed(forms(bare)))
        other = others[0] if bare.isalpha() and len(bare) > 3 and known & {bare, *others} else bare
        found.append(word.casefold().replace(bare, other) if other != bare else word)
    return " ".join(found)


def measured(name: str, chunks: Sequence[Chunk], questions: Sequence[tuple[str, set[str]]], in_full: bool) -> None:
    """The rows of one set: `questions` are questions with the ids of their relevant chunks."""
    started = process_time()
    families = propose(chunks)
    seconds = process_time() - started
    rules: dict[str, tuple[Rule, str]] = {}
    for family in families:
        kind = "words" if family.policy == "named" else "strict"
        rules |= {chunk: (rule, kind) for chunk, rule in family.rules.items()}
    right, total = right_by_titles(families)
    print(f"\n{name}: {len(chunks)} chunks, {len(families)} families, {total} rules in {seconds:.1f} s")
    print(f"  right by titles {right} of {total}")
    titles = {chunk.id: chunk.title for chunk in chunks}
    for how in ("as asked", "in the other number"):
        pairs, wrong, dropped = Counter[str](), Counter[str](), 0
        for question, relevant in questions:
            text = question if how == "as asked" else other_number(question, families)
            dropped += sum(not decide(rule, text).satisfied for rule, _ in rules.values())
            for chunk in relevant & rules.keys():
                rule, kind = rules[chunk]
                pairs[kind] += 1
                if not decide(rule, text).satisfied:
                    wrong[kind] += 1
                    if in_full:
                        print(f"    wrong: {text} | {titles[chunk]}")
        if questions:
            parts = ", ".join(f"{wrong[kind]} of {pairs[kind]} ({kind})" for kind in ("strict", "words"))
            each = dropped / len(questions)
            print(f"  {len(questions)} questions {how}: wrong drops {parts}; {each:.0f} rules drop a question")
    made = make_questions(families, chunks, MADE)
    borne = [ok for question in made for ok in told_apart(question, titles)]
    whole = sum(all(told_apart(question, titles)) for question in made)
    print(f"  {len(made)} questions made: labels right {sum(borne)} of {len(borne)}, questions wholly right {whole}")
    if in_full:
        for question in made:
            mark = "  " if all(told_apart(question, titles)) else "✕ "
            print(f"    {mark}{question.query.text} → {question.title}")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    eval_set, chunks = load_set("rulebook"), demo()
    relevant = [
        (case.query.text, {chunk for chunk, grade in case.grades.items() if grade >= eval_set.min_grade})
        for case in eval_set.cases
    ]
    measured("demo rulebook", chunks, relevant, options.list)
    from rag_core.rules.slots import settled

    shipped = {chunk.id: rule for chunk in chunks if isinstance(rule := read_rule(chunk.query_must), Rule)}
    families = [settled(family, eval_set.cases, eval_set.min_grade) for family in propose(chunks)]
    ours = {chunk: rule for family in families for chunk, rule in family.rules.items()}
    equal = sum(
        decide(ours[chunk], case.query.text).satisfied == decide(rule, case.query.text).satisfied
        for case in eval_set.cases
        for chunk, rule in shipped.items()
        if chunk in ours
    )
    pairs = len(eval_set.cases) * len(shipped)
    there = len(shipped.keys() & ours.keys())
    print(f"  {there} of {len(shipped)} shipped rules proposed, {equal} of {pairs} verdicts equal")
    for name in RULEBOOKS:
        if not (DATA / name).is_dir():
            print(f"\n{name}: skipped, it is not under {DATA}; WINNOW_SHARED names what holds data/")
            continue
        corpus = rulebook(name)
        found = [Chunk(id_, title, corpus.documents[id_]) for id_, title in corpus.titles.items()]
        asked = [(question, set(corpus.grades[id_])) for id_, question in corpus.queries.items()]
        measured(name, found, asked, options.list)


if __name__ == "__main__":
    main()
