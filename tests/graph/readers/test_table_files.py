import gzip
import io
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from openima.errors import InputError
from openima.graph.readers.table_files import is_gzip, readable, refuse_others

TABLE = pd.DataFrame({"id": ["a", "é"]})


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (zipped(), r"Excel file \(.xlsx\) is.*save the table as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", r"Excel file \(.xls\).*save the table as CSV"),
        (gzip.compress(b"id\n"), r"Got gzipped.*end its name in .csv.gz"),
        (TABLE.to_parquet(), r"Parquet file.*end its name in .parquet"),
        ("id\né\n".encode("utf-16-le"), None),
        ("id\né\n".encode("utf-16"), r"Got UTF-16.*save the table as UTF-8"),
        (b"", None),
        ("\ufeffid\né\n".encode(), None),
        (b"PK,id\n", None),
    ],
)
def test_another_format_is_known_by_its_first_bytes(
    content: bytes, says: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(content)
    if says is None:
        refuse_others(path)
        return
    with pytest.raises(InputError, match=says):
        refuse_others(path)


def test_what_is_called_gzip_has_to_be_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv.GZ"
    for content in (b"", gzip.compress(b"id\n")):
        path.write_bytes(content)
        refuse_others(path)
    path.write_bytes(b"id\na\n")
    with pytest.raises(InputError, match=r"not gzipped.*drop .gz"):
        refuse_others(path)


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nodes.csv: the file cannot be read. Got Is a dir"):
        refuse_others(_folder(tmp_path / "nodes.csv"))
    with pytest.raises(InputError, match=r"Got odd"), readable(tmp_path):
        raise OSError("odd")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_gzip_is_told_by_the_name() -> None:
    assert is_gzip(Path("a.csv.gz"))
    assert not is_gzip(Path("a.csv"))
