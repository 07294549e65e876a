"""Roles: who may what, and a list of people that is refused where it is ambiguous."""

import pytest

from rag_core.errors import InputError
from rag_core.roles import ROLES, Person, read_roles, role_of


def test_each_role_has_what_the_one_before_has_and_an_unknown_one_nothing():
    has = {role: [least for least in ROLES if Person("ann", role).is_at_least(least)] for role in (*ROLES, "", "root")}
    assert has == {"viewer": ["viewer"], "annotator": ["viewer", "annotator"], "admin": list(ROLES), "": [], "root": []}


def roles(tmp_path, text):
    (tmp_path / "roles.yaml").write_text(text)
    return read_roles(tmp_path)


def test_names_are_listed_under_roles_in_any_case(tmp_path):
    found = roles(tmp_path, "admin: Ann@Example.org\nannotator: [bob@example.org]\nviewer: ['*']\n")
    assert role_of("ann@example.org ", found) == "admin"
    assert role_of("BOB@example.org", found) == "annotator"
    assert role_of("eve@example.org", found) == "viewer"


def test_names_that_only_look_alike_are_two_people(tmp_path):
    found = roles(tmp_path, "admin: boß@example.org\nviewer: boss@example.org\nannotator: ﬁnn@example.org\n")
    assert [role_of(name, found) for name in ("BOSS@example.org", "boß@example.org")] == ["viewer", "admin"]
    assert role_of("finn@example.org", found) == "annotator"  # one letter pair typed as a ligature is the same


def test_without_a_list_nobody_has_a_role(tmp_path):
    assert role_of("ann", read_roles(tmp_path)) == ""
    assert role_of("", {"*": "viewer"}) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("root: [a]", "names the role 'root'"),
        ("admin: [a]\nviewer: [A]", "lists 'A' twice"),
        ("admin: ['*']", "makes anybody who logs in admin"),
        ("admin: [7]", "no name"),
        ("- a", "no mapping"),
    ],
)
def test_a_list_that_leaves_doubt_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        roles(tmp_path, text)
