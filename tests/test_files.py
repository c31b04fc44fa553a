from pathlib import Path

import pytest

from openima.errors import InputError
from openima.files import complete_file, complete_folder, refuse_taken

MARKER = "run.json"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(path: Path, content: str, *, force: bool = False) -> None:
    with complete_folder(path, force=force, marker=MARKER) as folder:
        (folder / MARKER).write_text(content)


def test_a_folder_appears_with_all_of_its_files(tmp_path: Path) -> None:
    fill(tmp_path / "a" / "out", "first")
    assert (tmp_path / "a" / "out" / MARKER).read_text() == "first"
    assert names(tmp_path / "a") == ["out"]


def test_a_relative_path_and_one_that_ends_in_a_slash_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Path("out/"), "first")
    assert names(tmp_path) == ["out"]


def test_a_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, "first")

    def fail(path: Path, *, force: bool) -> None:
        with complete_folder(path, force=force, marker=MARKER) as folder:
            (folder / MARKER).write_text("second")
            raise RuntimeError("half way")

    for path, force in ((out, True), (tmp_path / "other", False)):
        with pytest.raises(RuntimeError, match=r"half way"):
            fail(path, force=force)
    assert names(tmp_path) == ["out"]
    assert (out / MARKER).read_text() == "first"


def test_only_force_replaces_and_only_what_is_of_the_same_kind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, "first")
    (out / "more").mkdir()
    with pytest.raises(InputError, match=r"there already.*force=True"):
        fill(out, "second")
    fill(out, "second", force=True)
    assert names(out) == [MARKER]
    assert (out / MARKER).read_text() == "second"
    assert names(tmp_path) == ["out"]


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "thesis" / "chapter.tex"
    precious.parent.mkdir()
    precious.write_text("words")
    with pytest.raises(InputError, match=r"something else.*with a file run.json"):
        fill(precious.parent, "second", force=True)
    with pytest.raises(InputError, match=r"a file of that name"):
        fill(precious, "second", force=True)
    assert precious.read_text() == "words"


def test_an_empty_folder_is_replaced_with_force(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=r"there already"):
        refuse_taken(tmp_path / "out", force=False, marker=MARKER)
    fill(tmp_path / "out", "first", force=True)


def test_a_folder_that_comes_up_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def race() -> None:
        with complete_folder(out, force=False, marker=MARKER):
            out.mkdir()
            (out / "mine").touch()

    with pytest.raises(InputError, match=r"there already"):
        race()
    assert names(out) == ["mine"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be made.*can be written to"):
        fill(tmp_path / "file" / "out", "first")


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(content: str, error: Exception | None = None) -> None:
        with complete_file(path) as partial:
            partial.write_text(content)
            assert path.read_text() == "old"
            if error:
                raise error

    with pytest.raises(OSError, match="no space"):
        write("half of it", OSError("no space"))
    assert path.read_text() == "old"
    write("new")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["file.txt"]
