"""A workspace made of hostile text, a beacon that counts who calls it, and a look for markup that came alive.

Every payload stands as title, id, text, type, rule, note, file name, query, label and name of a person or an entity.
The places that show them are in test_hostile_text_in_browser.py.
"""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from rag_core import workbench
from rag_core.eval_sets.reading import load_set
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore

MARK = "zqmark"  # the word that markup of ours would set apart
ICON = "skull"  # an icon no page uses
SAVED = f"{MARK}-1"
RECORDED, LIVE = "hostile", "hostile-live"
FAMILY = "ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class {}"
PEOPLE = (0, 9)  # the payloads that are also names of people


def payloads(u):
    """Twelve texts; `u` is the beacon's address. Each calls a path of its own, so that a leak names its text."""
    ran = "window.winnowRan('{}')"
    return (
        f"![{MARK}]({u}/image.png) <img src='{u}/img'>",
        f"<script>{ran.format('script')};alert(1)</script><script src={u}/script.js></script><b>{MARK}</b>",
        f"<iframe src={u}/iframe></iframe><object data={u}/object></object><embed src={u}/embed>",
        f'<svg onload="{ran.format("svg")}"><image href=\'{u}/svg\'/></svg><img src=x onerror="{ran.format("img")}">',
        f"{u}/bare www.127.0.0.1.example <{u}/angle> {MARK}@{u.removeprefix('http://')}",
        f"[{MARK}](javascript:window.winnowRan('link')) <a href=\"javascript:alert(2)\" ping={u}/ping>{MARK}</a>",
        f"<style>@import url({u}/import.css); body {{ background: url({u}/css) }}</style><link rel=stylesheet href={u}/link>",
        f"![{MARK}](data:text/html,<script>alert(3)</script>) <iframe src=\"data:text/html,<script>parent.winnowRan('data')"
        f'</script><img src={u}/data>"></iframe>',
        f"<meta http-equiv=refresh content='0;url={u}/refresh'><base href={u}/base/><form action={u}/form><input autofocus "
        f'onfocus="{ran.format("focus")}"></form>',
        f":material/{ICON}: :red[{MARK}] {MARK} -> {MARK} **{MARK}** <b>{MARK}</b>",
        f"$\\href{{{u}/latex}}{{{MARK}}}$ $$\\includegraphics{{{u}/graphics}}$$ \u202e{MARK}\u202c \u200b\u2066{MARK}\u2069",
        f"![{MARK}][zq] [{MARK}][zq] [{MARK}]({u}/reference)\n\n[zq]: {u}/reference.png '{MARK}'",
    )


def of_one_line(text):
    """The text where no line break may stand."""
    return " ".join(text.split("\n"))


def for_a_file(text):
    """The text as a file name: a browser reads the backslashes of an address as slashes."""
    return of_one_line(text).replace("/", "\\")[:120]


@dataclass
class Beacon:
    """A server on this machine that nobody should call."""

    url: str = ""
    calls: list[str] = field(default_factory=list)


@contextmanager
def beacon():
    """A running beacon. It answers with a script, so that one that was fetched would also run."""
    found = Beacon()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            found.calls.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(b"window.winnowRan('fetched')")

        do_POST = do_HEAD = do_OPTIONS = do_GET  # noqa: N815  (the server asks for these names)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()


@dataclass
class World:
    """Where the app runs, what it holds, and who must not be called."""

    url: str
    beacon: Beacon
    workspace: Path
    folder: Path  # documents and files to drop
    texts: tuple[str, ...]

    def link(self, page, **parameters):
        """The address of a page of the app with query parameters."""
        asked = "&".join(f"{name}={quote(value)}" for name, value in parameters.items())
        return f"{self.url}/{page}" + (f"?{asked}" if asked else "")


def chunk_id(number, text):
    return f"{number} {of_one_line(text)}"


def query_id(number, text):
    return f"q{number} {of_one_line(text)}"


def hits_of(texts):
    for number, text in enumerate(texts):
        yield {
            "id": chunk_id(number, text), "title": text, "text": f"{text}\n\nmore words {number}", "type": text,
            "distance": 0.3 + 0.02 * number, "relevant": number % 3, "note": text, "ref_ids": [text],
            "source": text, "query_must": {"contain": text[:90]} if number % 4 else {"what": text},
        }  # fmt: skip


def write_recorded(workspace, texts):
    folder = set_folder(workspace, RECORDED, texts[0])
    lists = [
        {"id": query_id(number, text), "query": f"{text} words", "candidates": list(hits_of(texts)), "tags": [text]}
        for number, text in enumerate(texts)
    ]
    (folder / "lists.jsonl").write_text("\n".join(map(json.dumps, lists)))


def set_folder(workspace, name, title):
    folder = workspace / "eval_sets" / name
    folder.mkdir(parents=True)
    meta = {"version": 1, "name": name, "title": title, "description": title, "licence": title}
    (folder / "meta.yaml").write_text(json.dumps(meta))  # JSON is YAML
    (folder / "guidelines.md").write_text("")
    return folder


def variants(number):
    """Some payloads come in three chunks of alike titles, which makes them a family."""
    return range(3 if number < 4 else 1)


def write_live(workspace, texts):
    folder = set_folder(workspace, LIVE, texts[3])
    chunks = [
        {"id": f"{n} {chunk_id(number, text)}", "title": f"{text} armor class {n}", "text": f"{text}\n\nwords {n}",
         "type": text, "note": text, "query_must": {"contain": text[:90]} if n == 2 else None,
         "ref_ids": [f"0 {chunk_id(0, texts[0])}"]}
        for number, text in enumerate(texts) for n in variants(number)
    ]  # fmt: skip
    chunks += [
        {"id": f"table {n} {of_one_line(text)}", "title": FAMILY.format(n), "text": text}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, chunks)))
    queries = [{"id": query_id(number, text), "query": text, "tags": [text]} for number, text in enumerate(texts)]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    labels = [
        f"{query_id(number, text)}\t{n} {chunk_id(number, text)}\t{n + 1}"
        for number, text in enumerate(texts) for n in variants(number)
    ]  # fmt: skip
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *labels]) + "\n")
    workbench.bring_up_to_date(load_set(LIVE, workspace), workspace)


def write_pipelines(workspace, texts):
    """Saved pipelines whose names are payloads; one whose file name is one cannot be read, which is said."""
    (workspace / "pipelines").mkdir()
    for number, name in enumerate((SAVED, f"{MARK}-2", for_a_file(texts[0]))):
        named = json.dumps({"name": texts[number], "stages": [{"TopK": {"k": 5 + number}}]})
        (workspace / "pipelines" / f"{name}.yaml").write_text(named)


def label_all(workspace, texts):
    """Two people, named by payloads, who differ on every chunk of the first query."""
    with open_store(workspace) as store:
        for who, place in enumerate(PEOPLE):
            events = [
                Event(
                    session=f"s{who}", seq=number, eval_set=RECORDED, query_id=query_id(0, texts[0]),
                    chunk_id=chunk_id(number, text), annotator=of_one_line(texts[place])[:80], grade=who * 3,
                    note=text, text_hash=text_hash(f"{text}\n\nmore words {number}"),
                )
                for number, text in enumerate(texts)
            ]  # fmt: skip
            LabelStore(store).append(events)


def write_files(folder, texts):
    """Documents to bring in, a list, labels, a structure and labelled queries to drop."""
    documents = folder / "documents"
    documents.mkdir(parents=True)
    for number, text in enumerate(texts):
        title = of_one_line(text)
        (documents / f"{number} {for_a_file(text)}.md").write_text(
            f"## {title}\n\n{text}\n\n### {title} more\n\n{text}\n"
        )
    (documents / f"{for_a_file(texts[0])}.csv").write_text(f'text,title,"{texts[0]}"\n{MARK},{MARK},"{texts[0]}"\n')
    (folder / "wrong").mkdir()
    (folder / "wrong" / f"{for_a_file(texts[0])}.csv").write_text(f'"{texts[0]}"\n{MARK}\n')
    (documents / f"{for_a_file(texts[0])}.unknown").write_text(texts[0])
    (folder / "broken.jsonl").write_text(json.dumps({"query": "x", "metric": texts[0], "candidates": []}))
    lists = [{"id": text, "query": text, "candidates": list(hits_of(texts))} for text in texts]
    (folder / f"{for_a_file(texts[0])}.jsonl").write_text("\n".join(map(json.dumps, lists)))
    rows = [
        {"query_id": query_id(0, texts[0]), "chunk_id": chunk_id(n, text), "annotator": of_one_line(texts[0])[:80],
         "grade": n % 4, "note": text}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    (folder / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "wrong.qrels").write_text(f"q 0 c {texts[0].split()[0]}\n")
    write_structure(folder, [text[:180] for text in texts])


def write_structure(folder, names):
    """An entity structure and labelled queries for it; its names may have 200 characters."""
    entities = {
        f"{name} zorgon{n}": {"members": [name], "abilities": [f"{name} ability{n}"], "aliases": [f"{name} alias{n}"]}
        for n, name in enumerate(names)
    }
    (folder / "structure.json").write_text(json.dumps({"name": names[0], "entities": entities}))
    asked = [{"query": f"{name} zorgon{n}", "teams": [f"{name} zorgon{n}"]} for n, name in enumerate(names)]
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)))


def build(workspace, folder, url):
    """Fill a workspace and a folder of files; the texts used."""
    texts = payloads(url)
    write_recorded(workspace, texts)
    (workspace / "eval_sets" / RECORDED / "guidelines.md").write_text("\n\n".join(texts))
    write_live(workspace, texts)
    write_pipelines(workspace, texts)
    label_all(workspace, texts)
    write_files(folder, texts)
    return texts


ALIVE = """([address, mark, icon]) => {
  const found = [];
  const call = (node) => ["href", "src", "srcset", "action", "data", "poster", "style", "ping", "background", "xlink:href"]
    .filter((name) => /javascript:|data:text/i.test(node.getAttribute(name) ?? "") ||
      (node.getAttribute(name) ?? "").includes(address));
  const look = (root) => {
    for (const node of root.querySelectorAll("*")) {
      if (node.shadowRoot) look(node.shadowRoot);
      if (call(node).length) found.push(`${node.localName} ${call(node)}: ${node.outerHTML.slice(0, 200)}`);
      const words = node.textContent;
      if (node.matches("[data-testid=stIconMaterial], [role=img]") && words === icon) found.push(`icon: ${words}`);
      if (node.matches(".katex")) found.push(`formula: ${words.slice(0, 80)}`);
      if (node.matches("b, i, em, a, [data-testid=stMarkdownContainer] strong, .stMarkdownColoredText") && words.includes(mark)) {
        found.push(`${node.localName}: ${words.slice(0, 80)}`);
      }
      if (words.includes(`${mark} → ${mark}`)) found.push(`arrow in ${node.localName}`);
    }
  };
  look(document);
  return [...new Set(found)];
}"""
"""What of the texts became an element: links, sources, icons, formulas, arrows, bold or coloured words.

The labelling queue reads that much of Markdown itself that its bold words are meant to be bold."""


class Watch:
    """What a page did that it must not: foreign requests, scripts, dialogs, live markup."""

    def __init__(self, context, world):
        self.world = world
        self.forget()
        context.expose_binding("winnowRan", lambda _, what: self.scripts.append(what))
        context.on("request", self._request)
        context.on("dialog", self._dialog)

    def forget(self):
        """Begin anew: nothing was told yet."""
        self.scripts, self.dialogs, self.foreign = [], [], []
        self.called_before = len(self.world.beacon.calls)

    def _request(self, request):
        if not request.url.startswith((self.world.url, "data:", "blob:")):
            self.foreign.append(request.url)

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def alive(self, page):
        """Markup on the page as it stands that came out of a payload."""
        return page.evaluate(ALIVE, [self.world.beacon.url, MARK, ICON])

    @property
    def told(self):
        """Everything that happened, by kind."""
        return {
            "beacon": self.world.beacon.calls[self.called_before :],
            "foreign": self.foreign,
            "scripts": self.scripts,
            "dialogs": self.dialogs,
        }
