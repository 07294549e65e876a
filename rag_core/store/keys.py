"""How a label finds its chunk again: by the hash of the text, else by the external id.

The hashes are stored and the texts are not, so these definitions may never change; a new one would need a new column.
"""

from __future__ import annotations

import hashlib
import unicodedata

BY_TEXT = "text:"
BY_ID = "id:"


def text_hash(text: str) -> str:
    """SHA-256 (hex) of the text folded: NFKC, case-folded, white space runs as one space, stripped; '' for no text."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest() if folded else ""


def chunk_key(chunk_id: str, chunk_text_hash: str) -> str:
    """What one label is about: the text where it is known, so that equal texts share a label, else the id."""
    return BY_TEXT + chunk_text_hash if chunk_text_hash else BY_ID + chunk_id
