import pytest
from duetime.api.page_tokens import PageTokens
from duetime.errors import InvalidField
from hypothesis import given
from hypothesis import strategies as st

TOKENS = PageTokens(lambda: b"k" * 32)


@given(st.lists(st.text(max_size=40), max_size=4))
def test_what_was_made_is_read(position: list[str]) -> None:
    token = TOKENS.make("jobs", "ann", {"status": None}, position)
    assert TOKENS.read("jobs", "ann", {"status": None}, token) == position
    assert token.isascii()


@pytest.mark.parametrize(
    ("list_name", "principal", "question"),
    [("runs", "ann", {"a": 1}), ("jobs", "bob", {"a": 1}), ("jobs", "ann", {"a": 2}), ("jobs", "ann", None)],
)
def test_a_token_works_for_nobody_else_and_nothing_else(
    list_name: str, principal: str, question: object
) -> None:
    token = TOKENS.make("jobs", "ann", {"a": 1}, ["x"])
    with pytest.raises(InvalidField, match="page_token"):
        TOKENS.read(list_name, principal, question, token)


@given(st.text(max_size=60))
def test_what_nobody_made_is_refused(token: str) -> None:
    with pytest.raises(InvalidField, match="page_token"):
        TOKENS.read("jobs", "ann", None, token)


def test_another_key_makes_other_tokens() -> None:
    token = PageTokens(lambda: b"l" * 32).make("jobs", "ann", None, ["x"])
    with pytest.raises(InvalidField):
        TOKENS.read("jobs", "ann", None, token)
