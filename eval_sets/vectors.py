"""Write the vectors that ship with a live eval set: `python eval_sets/vectors.py rulebook`.

They are those of its chunks and of its queries. Run it after a set's build.py changed one of them. Unchanged texts are
not embedded again; a corpus that is newer than its vectors still works, its first start only takes longer.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from rag_core.corpus.load import load
from rag_core.eval_sets.reading import read_set
from rag_core.index.embed import BundledEmbedder
from rag_core.index.shipped import FILE, write_vectors
from rag_core.index.store import embedded_text


def main() -> None:
    for name in sys.argv[1:] or ["rulebook"]:
        folder = ROOT / "eval_sets" / name
        chunks = load([folder / "corpus.jsonl"], "jsonl").chunks
        texts = [*map(embedded_text, chunks), *(case.query.text for case in read_set(folder).cases)]
        count = write_vectors(folder / FILE, texts, BundledEmbedder())
        sys.stdout.write(f"{name}: {count} vectors\n")


if __name__ == "__main__":
    main()
