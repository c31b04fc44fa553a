import pytest

from openima.errors import InputError, OpenimaError


def test_the_parts_make_one_line() -> None:
    error = InputError("it is wrong", where="a.csv", expected="this", got="that", remedy="mend it")
    assert str(error) == "a.csv: it is wrong. Expected this. Got that. Remedy: mend it."


def test_parts_of_several_lines_make_one_line_too() -> None:
    assert str(InputError("wrong", got="first\n  second\n")) == "wrong. Got first second."


@pytest.mark.parametrize(
    ("remedy", "said"),
    [
        ("mend it", "mend it."),
        ("mend it.", "mend it."),
        ("mend it. ", "mend it."),
        ("did you mean 'x'?", "did you mean 'x'?"),
        ("name the column: labels=...", "name the column: labels=..."),
        ("name the column: labels=... ", "name the column: labels=..."),
    ],
)
def test_a_sentence_ends_once_and_an_ellipsis_keeps_its_dots(remedy: str, said: str) -> None:
    assert str(OpenimaError("wrong", remedy=remedy)) == f"wrong. Remedy: {said}"
