"""What may be asked: one check of a question, the same for the command line and the pages."""

from __future__ import annotations

import unicodedata

from rag_core.errors import InputError

LONGEST = 2000


def check_question(text: str) -> str:
    """The question without space around it, or an InputError: empty, over 2,000 characters, control characters."""
    stripped = text.strip()
    if not stripped:
        raise InputError("the query is empty, expected a question")
    if len(stripped) > LONGEST:
        raise InputError(f"the query has {len(stripped):,} characters, expected at most {LONGEST:,}")
    for position, letter in enumerate(stripped, 1):
        if letter not in "\t\n\r" and unicodedata.category(letter) in ("Cc", "Cs"):
            raise InputError(f"the query has the control character U+{ord(letter):04X} at position {position}")
    return stripped
