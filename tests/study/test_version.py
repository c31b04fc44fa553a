from pathlib import Path

import pytest

from openima.methods import get_recipe
from openima.study import version
from openima.study.version import code_version, result_modules

SOURCE = '''"""What it is."""

from openima.b import f


def g(x):  # doubles
    """Say what."""
    return f(x) * 2
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.py").write_text("from openima import sub\nimport openima.c\nimport os\n")
    (tmp_path / "c.py").write_text("from openima.sub.d import x as y\n")
    (tmp_path / "sub" / "__init__.py").write_text("")
    (tmp_path / "sub" / "d.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("from openima.a import g\n")
    monkeypatch.setattr(version, "_ROOT", tmp_path)
    return tmp_path


def test_all_that_is_imported_counts_and_nothing_else(package: Path) -> None:
    found = result_modules(frozenset({"openima.a"}))
    names = {"openima.a", "openima.b", "openima.c", "openima.sub", "openima.sub.d"}
    assert set(found) == names
    assert (package / "other.py").exists()


def test_comments_docstrings_and_blank_lines_do_not_count(package: Path) -> None:
    root = frozenset({"openima.a"})
    before = result_modules(root)
    assert before["openima.a"] == "from openima.b import f\ndef g(x):\n    return f(x) * 2"
    changed = SOURCE.replace("doubles", "trebles").replace("Say what", "Say\n    it all")
    (package / "a.py").write_text(changed.replace("def g", "\n\n\ndef g"))
    assert result_modules(root) == before
    (package / "a.py").write_text(SOURCE.replace("* 2", "* 3"))
    assert result_modules(root) != before


def test_a_hash_sign_in_a_text_is_no_comment(package: Path) -> None:
    (package / "a.py").write_text('x = "# kept"  # dropped\n')
    assert result_modules(frozenset({"openima.a"}))["openima.a"] == 'x = "# kept"'


def test_a_recipe_depends_on_its_own_parts() -> None:
    openima = get_recipe("openima")
    assert code_version(openima) == code_version(openima.with_settings(eta=3.0, seed=4))
    assert code_version(openima) == code_version(get_recipe("openima-no-ce"))
    assert code_version(openima) != code_version(get_recipe("infonce"))
    modules = result_modules(version._modules_of(openima) | set(version._ALWAYS))
    for name in ("methods.openima", "nn.gat", "nn.attention", "graph.task", "metrics.silhouette"):
        assert f"openima.{name}" in modules
    for name in ("methods.contrastive", "study.trial", "graph.datasets", "cli.app", "errors"):
        assert f"openima.{name}" not in modules
