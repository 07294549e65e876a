"""Roles: who may what, and a list of people that is refused where it is ambiguous."""

import pytest

from rag_core.errors import InputError
from rag_core.roles import CHANGE, LABEL, LOOK, Person, read_roles, role_of


@pytest.mark.parametrize(
    ("role", "allowed"),
    [("", ()), ("viewer", (LOOK,)), ("annotator", (LOOK, LABEL)), ("admin", (LOOK, LABEL, CHANGE)), ("root", ())],
)
def test_each_role_may_what_the_one_before_may(role, allowed):
    assert tuple(deed for deed in (LOOK, LABEL, CHANGE) if Person("ann", role).may(deed)) == allowed


def test_a_refusal_names_role_and_what_is_needed():
    with pytest.raises(InputError, match="your role is viewer, expected annotator to label"):
        Person("ann", "viewer").require(LABEL)


def roles(tmp_path, text):
    (tmp_path / "roles.yaml").write_text(text)
    return read_roles(tmp_path)


def test_names_are_listed_under_roles_in_any_case(tmp_path):
    found = roles(tmp_path, "admin: Ann@Example.org\nannotator: [bob@example.org]\nviewer: ['*']\n")
    assert role_of("ann@example.org ", found) == "admin"
    assert role_of("BOB@example.org", found) == "annotator"
    assert role_of("eve@example.org", found) == "viewer"


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
