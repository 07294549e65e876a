"""Two hundred documents that make Markdown readers lose text: features of a table, alone, joined, and under every end.

Plain functions of a feature's name; nothing random, so that a failure names its document.
"""

from itertools import combinations

FEATURES = {
    "fence with #": "```python\n# no header\n## nor this\n```\n",
    "tilde fence with #": "~~~\n## inside\n```\n## still inside\n~~~\n",
    "fence in a list": "- item\n  ```\n  ## inside\n  ```\n",
    "unclosed fence": "```\n## inside to the end\n",
    "indented code": "    ## four spaces\n",
    "table": "| a | b |\n|---|---|\n| # x | ## y |\n",
    "table with pipes": "a \\| b | `c | d`\n--- | ---\n## after\n",
    "setext": "Title\n=====\n\nSub title\n---------\n",
    "setext of many lines": "One\ntwo\nthree\n---\n",
    "rules": "***\n\n---\n\n___\n",
    "html block": "<div>\n## not a header\n</div>\n\n## a header\n",
    "html comment": "<!--\n## hidden\n-->\n## shown\n",
    "script": "<script>\n## code\n</script>\n",
    "no header": "Only words.\n\nAnd more words.\n",
    "deep headers": "##### five\n###### six\n####### seven is none\n",
    "empty headers": "##\n\n## \n\n###\n",
    "closing marks": "## Title ##\n### Title ### x\n",
    "no space": "##Title\n#hash\n",
    "tabs": "##\tTitle\n\ttext\n",
    "indented header": "   ## three\n    ## four\n",
    "quote": "> ## quoted\n> text\n\n## real\n",
    "list with header": "1. ## in a list\n2. b\n",
    "front matter": "---\ntitle: x\n# a comment\n---\n## first\n",
    "link definitions": "[a]: http://example.invalid 'x'\n## [b][a]\n",
    "line separators": "## a\u2028## b\u2029## c\u0085## d\n",
    "control characters": "## a\x0b## b\x0c## c\x1c## d\n",
    "no-break and zero width": "##\u00a0none\n##\u200bnone\n\ufeff## bom inside\n",
    "byte order mark": "\ufeff## first\n",
    "right to left": "## \u202eabc\u202c\n\u05d0\u05d1\n",
    "emoji and combining": "## e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467\n",
    "backslashes": "\\## none\n## a \\\nb\n",
    "entities": "## &amp; &#35;&#35; x\n&#35;&#35; none\n",
    "trailing spaces": "## a   \n  \n   \n",
    "many blank lines": "\n" * 50 + "## a\n" + "\n" * 50,
    "a long line": "x" * 1_000_000 + "\n",
    "a long header": "## " + "y " * 20_000 + "\n",
    "many headers": "".join(f"## h{n}\n" for n in range(500)),
    "equal headers": "## same\na\n## same\nb\n## same\n",
    "deep quotes": ">" * 300 + " ## x\n",
    "deep lists": "".join("  " * depth + "- x\n" for depth in range(60)),
    "brackets": "[" * 2000 + "\n",
    "emphasis": "*" * 3000 + "a" + "_" * 3000 + "\n",
    "null and replacement": "## a\ufffdb\n",
}
ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
SMALL = [name for name, text in FEATURES.items() if len(text) < 5000]


def documents(count=200):
    """(name, text) of each document, no two alike: every feature under each line end, without a last one, then pairs."""
    found = {}
    for name, text in FEATURES.items():
        for end, mark in ENDS.items():
            found.setdefault(text.replace("\n", mark), f"{name}, {end}")
        found.setdefault(text.rstrip("\n"), f"{name}, no last newline")
    pairs = combinations(SMALL, 2)
    while len(found) < count:
        first, second = next(pairs)
        found.setdefault(f"# Book\n\n{FEATURES[first]}\n## Part\n{FEATURES[second]}", f"{first} + {second}")
    return [(name, text) for text, name in found.items()]
