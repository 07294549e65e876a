"""Where labels, indexes and runs live: the one place that decides it.

It names the folder only; what is made inside is for the store and the indexes.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "WINNOW_WORKSPACE"
DEFAULT = Path(".winnow")


def resolve_workspace(chosen: str | Path | None = None) -> Path:
    """The workspace folder: the one chosen (`--workspace`), else WINNOW_WORKSPACE, else `.winnow` here."""
    return Path(chosen or os.environ.get(VARIABLE) or DEFAULT).expanduser()
