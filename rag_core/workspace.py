"""Where labels, indexes and runs live, and where what ships with the product does: the one place that decides it.

It names the folders only; what is made inside is for the store and the indexes.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "WINNOW_WORKSPACE"
DEFAULT = Path(".winnow")

_PACKAGE = Path(__file__).resolve().parent
SHIPPED_IN = _PACKAGE / "_app" if (_PACKAGE / "_app").is_dir() else _PACKAGE.parent
"""The folder of app, pages and eval sets: in the package once a wheel is installed, beside it in a checkout."""


def resolve_workspace(folder: str | Path | None = None) -> Path:
    """The workspace folder: the one chosen (`--workspace`), else WINNOW_WORKSPACE, else `.winnow` here."""
    return Path(folder or os.environ.get(VARIABLE) or DEFAULT).expanduser()
