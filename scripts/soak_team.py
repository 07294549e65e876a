"""People label and tune through nginx over TLS, as websocket clients, while an admin ingests and imports by the pages.

    python scripts/soak_team.py --minutes 20

People come within the first tenth of the time, the admin after a fifth. Each presses a grade every 1 to 5 seconds,
whether the last one is acknowledged or not, and sends as the browser does: one batch at a time, again where no answer
comes. How long an acknowledgement took is counted from the press. Ends with 0 where every acknowledged label is stored
once, as it was pressed and under its name, 99 of 100 acknowledgements beside the admin's work took at most half a
second, memory grew by at most 10 % from before the admin's work to the end, and the log tells of no error; prints one
JSON document. Needs nginx and openssl on the PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from streamlit.components.v2.bidi_component.main import _make_trigger_id

from rag_core.project.deeds import log as deeds_of
from rag_core.project.intake import take_lists
from rag_core.project.project import init_project
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from scripts.soak import GROWTH, errors, memory, serve
from tests.conftest import free_port
from tests.nginx import block, certificate, log_in, nginx, people
from tests.streamlit_client import Page, session

SLOWEST = 0.5  # seconds, of 99 acknowledgements in 100
RESEND, PATIENT = 2.0, 4  # seconds without an answer, and how often they are doubled: pages/labels/queue/flow.js
DRAIN = 120.0  # seconds that a last acknowledgement is waited for
GRADERS = 5  # whose labels are imported
DEEP = 20  # chunks of a question
HEADER = "X-Forwarded-Email"
ABOUT = ("eval_set", "query_id", "query_hash", "chunk_id", "text_hash", "annotator", "others")
WORDS = ("range", "cover", "charge", "pinned", "squad", "morale", "terrain", "weapon", "armour", "support", "leader",
         "retreat", "objective", "vehicle", "crew", "damage", "saving", "throw", "reserve", "aura")  # fmt: skip


class Team:
    """What all know: where the server is, whether it goes on, and what was seen."""

    def __init__(self, url: str, tls: Any, arriving: float) -> None:
        self.url, self.tls, self.arriving, self.over = url, tls, arriving, threading.Event()
        self.pressed: dict[tuple[str, int], tuple[str, int, str, str]] = {}  # key → annotator, grade, question, chunk
        self.acknowledged: dict[tuple[str, int], tuple[float, float]] = {}  # key → when pressed, how long it took
        self.tuned: list[float] = []
        self.problems: list[str] = []

    def page(self, name: str) -> Any:
        """A session of that person."""
        return session(self.url, log_in(f"{name}@example.org"), self.tls, ping_interval=None)

    def person(self, work: Any, *arguments: Any) -> threading.Thread:
        """Somebody at work; what breaks it is a problem of the soak."""

        def run() -> None:
            try:
                work(self, *arguments)
            except Exception as error:
                self.problems.append(f"{work.__name__}: {error!r}"[:300])

        thread = threading.Thread(target=run)
        thread.start()
        return thread


def label(team: Team, name: str, seed: int) -> None:
    """A labeller: presses at times of their own; what waits is sent as the browser sends it."""
    chance, stream, email = random.Random(seed), uuid4().hex, f"{name}@example.org"
    waiting: list[dict[str, Any]] = []
    at: dict[int, float] = {}
    handled = set[str]()
    seq = attempt = again = 0
    sent_at = None
    team.over.wait(chance.uniform(0, team.arriving))
    with team.page(name) as line:
        page = Page(line, "labels", "project=team")
        page.rerun()
        page.finish()
        queue = json.loads(page.elements["labels.component"].json)
        next_press = time.monotonic() + chance.uniform(0, 5)
        end = None
        while end is None or (waiting and time.monotonic() < end):
            now = time.monotonic()
            if end is None and team.over.is_set():
                end = now + DRAIN
            if end is None and now >= next_press:
                next_press += chance.uniform(1, 5)
                item = next((one for one in queue["items"] if one["id"] not in handled), None)
                if item is None:
                    team.problems.append(f"{name} had nothing to label")
                else:
                    handled.add(item["id"])
                    grade = chance.randrange(4)
                    entry = {"session": stream, "seq": seq, "pair": item["id"], "kind": "label", "grade": grade,
                             "note": "", "undoes": None, "pressed": time.time() * 1000, "base": queue["base"],
                             **{one: item[one] for one in ABOUT}}  # fmt: skip
                    waiting.append(entry)
                    at[seq] = now
                    team.pressed[stream, seq] = (email, grade, item["query_id"], item["chunk_id"])
                    seq += 1
            if waiting and (sent_at is None or now - sent_at > RESEND * 2**again):
                again = 0 if sent_at is None else min(again + 1, PATIENT)
                attempt, sent_at = attempt + 1, now
                element = page.elements["labels.component"]
                said = {"log": {"entries": waiting[:100], "later": [], "attempt": attempt, "stream": stream}}
                page.said[element.id] = ("json_value", json.dumps(said))
                page.rerun(page.fragments["labels.component"])
            wake = min(
                now + 1.0 if end else next_press, sent_at + RESEND * 2**again if sent_at and waiting else now + 1.0
            )
            try:
                message = page.take(max(0.01, wake - time.monotonic()))
            except TimeoutError:
                continue
            came = time.monotonic()
            shown = message.delta.new_element if message.WhichOneof("type") == "delta" else None
            if shown is None or shown.WhichOneof("type") != "bidi_component":
                continue
            queue = json.loads(page.elements["labels.component"].json)
            saved = queue["acks"].get(stream, -1)
            while waiting and waiting[0]["seq"] <= saved:
                number = waiting.pop(0)["seq"]
                team.acknowledged[stream, number] = (at[number], came - at[number])
            if queue["problem"] or queue["unfit"]:
                team.problems.append(f"{name}: {queue['problem']} {queue['unfit']}"[:300])
            if (queue["answers"], queue["attempt"]) == (stream, attempt):
                sent_at = None


def tune(team: Team, name: str, seed: int) -> None:
    """Somebody at the Bench, who lets go of the gap's slider every 3 to 8 seconds."""
    chance, tab = random.Random(seed), uuid4().hex
    team.over.wait(chance.uniform(0, team.arriving))
    with team.page(name) as line:
        page = Page(line, "", "project=team&pipeline=%5B%22QueryMust%22%2C%22AdaptiveGap%22%5D")
        page.rerun()
        page.finish()
        number = 0
        while not team.over.wait(chance.uniform(3, 8)):
            number, began = number + 1, time.monotonic()
            event = {"kind": "set", "version": number, "sequence": number, "stage": 1, "setting": "gap_threshold",
                     "value": chance.randrange(1, 30) / 1000}  # fmt: skip
            sent = [{"event": "did", "value": {"session": tab, "events": [event]}}]
            element = page.elements["bench"]
            trigger = {_make_trigger_id(element.id, "events"): ("json_trigger_value", json.dumps(sent))}
            page.rerun(page.fragments["bench"], **trigger)
            page.finish()
            team.tuned.append(time.monotonic() - began)


def administer(team: Team, workspace: Path, documents: Path, labels: bytes, spans: dict[str, Any]) -> None:
    """The admin's work by the pages: a folder of chunks is ingested, and while that is on its way labels come in."""

    def fetch(request: urllib.request.Request) -> Any:
        return urllib.request.urlopen(request, timeout=120, context=team.tls)  # noqa: S310 — a loopback address

    def put(address: str, data: bytes) -> None:
        """The upload of a file as the browser does it, with the token against forged requests."""
        headers = log_in("ann@example.org")
        with fetch(urllib.request.Request(f"{team.url}/_stcore/health", headers=headers)) as answer:  # noqa: S310
            token = answer.headers["Set-Cookie"].split("=", 1)[1].split(";")[0].strip('"')
        mark = uuid4().hex
        body = f'--{mark}\r\nContent-Disposition: form-data; name="f"; filename="labels.jsonl"\r\n\r\n'.encode()
        headers |= {"Cookie": f"_streamlit_xsrf={token}", "X-Xsrftoken": token,
                    "Content-Type": f"multipart/form-data; boundary={mark}"}  # fmt: skip
        data = body + data + f"\r\n--{mark}--\r\n".encode()
        fetch(urllib.request.Request(team.url + address, data, headers, method="PUT")).close()  # noqa: S310

    def done(kind: str) -> bool:
        return any(one["deed"] == kind and one["outcome"] == "done" for one in deeds_of(workspace))

    with team.page("ann") as line:
        page = Page(line, "data", "new=1")
        page.rerun()
        page.finish()
        for key, value in (("data.path", str(documents)), ("data.name", "bulk")):
            page.say(key, "string_value", value)
        page.rerun()
        page.finish()
        spans["ingest"] = [time.monotonic()]
        page.press("data.ingest")
        page.finish()
        with team.page("ann") as second:
            files = Page(second, "labels", "project=team")
            files.rerun()
            files.finish()
            files.say("labels.view", "string_array_value", _strings("Import and export"))
            files.rerun()
            files.finish()
            spans["import"] = [time.monotonic()]
            files.upload("exchange.file", "labels.jsonl", labels, put)
            files.rerun()
            files.finish(600)
            files.press(next(name for name in files.elements if name.startswith("Bring in") and "replace" not in name))
            shown = files.finish(600)
            spans["import"].append(time.monotonic())
            if "brought in" not in shown:
                raise RuntimeError(f"the import did not end: {shown[-500:]}")
        while not done("ingest"):
            if team.over.is_set():
                raise RuntimeError("the ingest did not end in time")
            time.sleep(0.5)
            page.rerun()
            page.finish()
        spans["ingest"].append(time.monotonic())


def _strings(*values: str) -> Any:
    from streamlit.proto.Common_pb2 import StringArray

    return StringArray(data=values)


def make(workspace: Path, folder: Path, people_: int, minutes: float, chunks: int, labels: int) -> tuple[Path, bytes]:
    """The project that is labelled, its people, and what the admin brings: a folder of chunks and a file of labels."""
    chance = random.Random(1)

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=60)) + f" {chance.randrange(10**6)}"

    names = [f"p{number}@example.org" for number in range(people_)] + ["t0@example.org", "t1@example.org"]
    (workspace / "roles.yaml").write_text(json.dumps({"admin": ["ann@example.org"], "annotator": names}))
    questions = max(labels // (GRADERS * DEEP), int(people_ * minutes * 60 / 3 / 12) + 20)
    texts, lists, given = [text() for _ in range(3000)], list[str](), list[str]()
    for question in range(questions):
        hits = chance.sample(range(len(texts)), DEEP)
        listed = [
            {"id": f"c{hit}", "title": f"Section {hit}", "text": texts[hit], "distance": 0.3 + place / 100}
            for place, hit in enumerate(hits)
        ]
        asked = " ".join(chance.choices(WORDS, k=6))
        document = {"id": f"q{question}", "query": f"{asked} {question}?", "metric": "cosine", "candidates": listed}
        lists.append(json.dumps(document) + "\n")
        given += [
            json.dumps({"query_id": f"q{question}", "chunk_id": f"c{hit}", "grade": chance.randrange(4),
                        "annotator": f"before-{grader}"}) + "\n"
            for hit in hits for grader in range(GRADERS)
        ]  # fmt: skip
    take_lists(init_project(workspace, "team"), "".join(lists).encode(), "lists.jsonl")
    documents = folder / "documents"
    documents.mkdir()
    bulk = (json.dumps({"id": f"d{number}", "text": text()}) + "\n" for number in range(chunks))
    (documents / "bulk.jsonl").write_text("".join(bulk))
    return documents, "".join(given[:labels]).encode()


def share(sizes: list[float], part: float) -> float | None:
    """The value that this part of the sizes does not exceed, in milliseconds."""
    ordered = sorted(sizes)
    return round(ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1000) if ordered else None


def run(minutes: float, people_: int, chunks: int, labels: int) -> dict[str, Any]:
    """The figures of one soak."""
    with tempfile.TemporaryDirectory() as place:
        folder, workspace, log = Path(place), Path(place) / "workspace", Path(place) / "log"
        workspace.mkdir()
        documents, brought = make(workspace, folder, people_, minutes, chunks, labels)
        names = [f"p{number}" for number in range(people_)]
        people(folder, "ann", "t0", "t1", *names)
        tls, port = certificate(folder), free_port()
        process, address = serve(workspace, log, WINNOW_USER_HEADER=HEADER)
        try:
            with nginx(folder, block(folder, port, int(address.rsplit(":", 1)[1])), port):
                team, spans = Team(f"https://127.0.0.1:{port}", tls, minutes * 6), dict[str, Any]()
                began, sizes = time.monotonic(), list[tuple[float, int]]()
                threads = [team.person(label, name, number) for number, name in enumerate(names)]
                threads += [team.person(tune, f"t{number}", number) for number in range(2)]
                while (passed := time.monotonic() - began) < minutes * 60:
                    sizes.append((passed, memory(process.pid)))
                    if passed > minutes * 12 and len(threads) == people_ + 2:
                        threads.append(team.person(administer, workspace, documents, brought, spans))
                    time.sleep(1)
                team.over.set()
                for thread in threads:
                    thread.join()
        finally:
            process.kill()
            process.wait()
        return {
            "minutes": minutes,
            "people": people_,
            "chunks": chunks,
            "imported": labels,
            "load": round(os.getloadavg()[2], 1),
            **judged(team, workspace),
            **times(team, spans),
            **sized(sizes, minutes),
            "tuned": len(team.tuned),
            "tuned_p99_ms": share(team.tuned, 0.99),
            "problems": team.problems,
            "errors": errors(log),
        }


def judged(team: Team, workspace: Path) -> dict[str, int]:
    """What was pressed and acknowledged, held against what is stored."""
    with open_store(workspace) as store:
        events = LabelStore(store).history("team")
    stored = {one.key: (one.annotator, one.grade, one.query_id, one.chunk_id) for one in events}
    keys = [one.key for one in events]
    return {
        "pressed": len(team.pressed),
        "acknowledged": len(team.acknowledged),
        "lost": sum(key not in stored for key in team.acknowledged),
        "changed": sum(stored.get(key, team.pressed[key]) != team.pressed[key] for key in team.pressed),
        "doubled": len(keys) - len(set(keys)),
        "by_import": sum(one.annotator.startswith("before-") for one in events),
    }


def times(team: Team, spans: dict[str, Any]) -> dict[str, Any]:
    """How long acknowledgements took: of all, and of those pressed while the admin's work ran."""
    whole = [min((one[0] for one in spans.values()), default=0), max((one[-1] for one in spans.values()), default=0)]
    found: dict[str, Any] = {}
    for name, span in {"all": None, "beside": whole, **spans}.items():
        took = [seconds for at, seconds in team.acknowledged.values() if span is None or span[0] - 1 <= at <= span[-1]]
        found[name] = {
            "seconds": None if span is None else round(span[-1] - span[0]),
            "labels": len(took),
            "p50_ms": share(took, 0.5),
            "p99_ms": share(took, 0.99),
            "longest_ms": share(took, 1),
        }
    return {"acknowledgements": found}


def sized(sizes: list[tuple[float, int]], minutes: float) -> dict[str, float]:
    """Memory before the admin's work, at its highest and at the end, and how far it grew."""
    warm = [size for at, size in sizes if minutes * 9 <= at <= minutes * 12]
    tail = [size for _, size in sizes[-max(1, len(sizes) // 20) :]]
    before, after = sum(warm) / len(warm), sum(tail) / len(tail)
    highest = max(size for _, size in sizes)
    figures = {"before": before / 1e6, "highest": highest / 1e6, "after": after / 1e6}
    return {"megabytes": {name: round(size) for name, size in figures.items()}, "growth": after / before - 1}  # type: ignore[dict-item]


def main() -> None:
    """Options, one soak, the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("minutes", 20.0), ("people", 20), ("chunks", 10_000), ("labels", 60_000)):
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    options = parser.parse_args()
    figures = run(options.minutes, options.people, options.chunks, options.labels)
    beside = figures["acknowledgements"]["beside"]["p99_ms"]
    held = {
        "stored": not (figures["lost"] or figures["changed"] or figures["doubled"] or figures["problems"]),
        "all acknowledged": figures["acknowledged"] == figures["pressed"],
        "imported": figures["by_import"] == options.labels,
        "acknowledged in time": beside is not None and beside <= SLOWEST * 1000,
        "memory": figures["growth"] <= GROWTH,
        "no error": not figures["errors"],
    }
    sys.stdout.write(json.dumps({**figures, "held": held}, indent=1) + "\n")
    raise SystemExit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()
