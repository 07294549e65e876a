"""A label is given → it is on disk: the label store beside an ORM's merge, and the disk itself, label by label.

Run: python -m benchmarks.labels [--labels 300] [--json]

One label a commit, as a key on Labels gives one, into stores that hold as many already. The peer keeps the current
label of a chunk: SQLAlchemy's ORM, `merge` and `commit`, SQLite in WAL mode with synchronous=FULL. The limit: 80 bytes
appended to a file and fdatasync. The product keeps every event, with a checksum and its current label, in the same
mode. Turns are interleaved; figures are medians, ratios medians of per-label ratios. Beside the clock stands the
processor's time of a label, which a slow disk does not hide. 300 labels take a few seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from sqlalchemy import create_engine, event, insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from benchmarks.parts.pairs import verdict
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore

LABELS = 300
FLOORS = {"of an ORM's merge": 1 / 3, "of append + fdatasync": 5.0}


class Base(DeclarativeBase):
    """The peer's tables."""


class Judgement(Base):
    """The current grade of a chunk, as an application with an ORM would keep it."""

    __tablename__ = "judgements"
    query_id: Mapped[str] = mapped_column(primary_key=True)
    chunk_id: Mapped[str] = mapped_column(primary_key=True)
    grade: Mapped[int]


def event_of(number: int) -> Event:
    """The label of a chunk; forty chunks a question."""
    return Event(
        session="bench",
        seq=number,
        eval_set="labels",
        query_id=f"q{number // 40}",
        chunk_id=f"c{number % 40}",
        annotator="person",
        grade=1,
    )


def product(folder: Path, count: int) -> Callable[[int], None]:
    """The label store, with as many labels in it."""
    store = LabelStore(open_store(folder))
    store.append([event_of(number) for number in range(count)])
    return lambda number: void(store.append([event_of(count + number)]))


def orm(folder: Path, count: int) -> Callable[[int], None]:
    """A row a chunk, merged in a session of its own."""
    engine = create_engine(f"sqlite:///{folder / 'orm.db'}")

    @event.listens_for(engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        rows = [{"query_id": f"q{n // 40}", "chunk_id": f"c{n % 40}", "grade": 1} for n in range(count)]
        connection.execute(insert(Judgement), rows)

    def give(number: int) -> None:
        with Session(engine) as session:
            at = count + number
            session.merge(Judgement(query_id=f"q{at // 40}", chunk_id=f"c{at % 40}", grade=1))
            session.commit()

    return give


def disk(folder: Path) -> Callable[[int], None]:
    """80 bytes at the end of a file, and the disk has them."""
    file = os.open(folder / "appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def give(_: int) -> None:
        os.write(file, b"x" * 80)
        os.fdatasync(file)

    return give


def void(_: object) -> None:
    """Nothing: what a store answers is of no use here."""


def measured(count: int) -> dict[str, Any]:
    """Milliseconds of every way, label by label in turn, and the product's ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = {"label store": product(folder, count), "ORM merge": orm(folder, count), "disk": disk(folder)}
        taken: dict[str, list[float]] = {way: [] for way in ways}
        worked = dict.fromkeys(ways, 0.0)
        for number in range(count + 20):
            for way, give in ways.items():
                began, busy = perf_counter(), process_time()
                give(number)
                if number >= 20:  # the first ones compile statements
                    taken[way].append((perf_counter() - began) * 1000)
                    worked[way] += (process_time() - busy) * 1000 / count
    own = taken["label store"]
    peers = zip(FLOORS, ("ORM merge", "disk"), strict=True)
    ratios = {said: statistics.median(a / b for a, b in zip(own, taken[peer], strict=True)) for said, peer in peers}
    medians = {way: statistics.median(rows) for way, rows in taken.items()}
    return {"ms": medians, "processor ms": worked, "ratios": ratios, "floors": FLOORS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=LABELS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.labels)
    if options.json:
        print(json.dumps(found))
        return
    for way, milliseconds in found["ms"].items():
        print(f"{way:12s} {milliseconds:7.3f} ms a label, {found['processor ms'][way]:.3f} of the processor")
    for said, ratio in found["ratios"].items():
        floor = FLOORS[said]
        print(f"label store  {ratio:7.2f} {said}{verdict(ratio <= floor, f'at most {floor:.2f}')}")


if __name__ == "__main__":
    main()
