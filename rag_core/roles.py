"""Three roles on a team's server, and the file in the workspace that names people; project/deeds.py says who may what.

Who somebody is comes from the log-in (pages/components/who.py); on one's own machine and on the command line, where the
workspace belongs to whoever can open it, everybody is admin.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_core.errors import InputError
from rag_core.files import parse_yaml, read_text

FILE = "roles.yaml"
VIEWER, ANNOTATOR, ADMIN = "viewer", "annotator", "admin"
ROLES = (VIEWER, ANNOTATOR, ADMIN)
"""From the least to the most; each may what the one before it may."""
ANYBODY = "*"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who opened a page: the name their labels carry, and their role ('' : nobody this server knows)."""

    name: str
    role: str

    def is_at_least(self, role: str) -> bool:
        """Whether this person has that role or more."""
        return self.role in ROLES and ROLES.index(self.role) >= ROLES.index(role)


def canonical_name(name: str) -> str:
    """A name as it is compared and stored: NFKC, lower case, no space around it. `boß` and `boss` stay two people."""
    return unicodedata.normalize("NFKC", name).strip().lower()


def role_of(name: str, roles: Mapping[str, str]) -> str:
    """The role of a person, that of `*` for anybody who logged in, else ''."""
    return roles.get(canonical_name(name), roles.get(ANYBODY, "")) if name.strip() else ""


def read_roles(workspace: Path) -> dict[str, str]:
    """{canonical name: role} of roles.yaml, which lists names under each role; {} without one.

    An InputError names what is wrong: an unknown role, a name that is no text, a name with two roles, an admin `*`.
    """
    path = workspace / FILE
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    listed = parse_yaml(read_text(path), FILE) or {}
    if not isinstance(listed, Mapping):
        raise InputError(f"{FILE} is no mapping, expected names listed under {', '.join(ROLES)}")
    for role, names in listed.items():
        if role not in ROLES:
            raise InputError(f"{FILE} names the role {str(role)[:40]!r}, expected one of {', '.join(ROLES)}")
        for name in names if isinstance(names, list) else [names]:
            _add(found, name, role)
    return found


def _add(roles: dict[str, str], name: object, role: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{FILE} lists something under {role} that is no name, expected text")
    key = canonical_name(name)
    if key in roles:
        raise InputError(f"{FILE} lists {name[:80]!r} twice, expected one role for each name")
    if key == ANYBODY and role == ADMIN:
        raise InputError(f"{FILE} makes anybody who logs in admin, expected admins by name")
    roles[key] = role
