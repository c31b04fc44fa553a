from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from openima.cli import app

README = Path(__file__).resolve().parent.parent / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
SHELL = [
    block
    for block in re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
    if block.startswith("openima ")
]


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a graph of four fields, two of them labelled, where the README expects it."""
    rng = np.random.default_rng(0)
    field = np.repeat(np.arange(4), 40)
    centres = rng.normal(size=(4, 8))
    nodes = pd.DataFrame(centres[field] + 0.3 * rng.normal(size=(160, 8))).add_prefix("x")
    nodes.insert(0, "id", [f"p{i}" for i in range(160)])
    known = (field < 2) & (np.arange(160) % 4 == 0)
    nodes["field"] = np.where(known, field.astype(str), "")
    near = 40 * field[:, None] + rng.integers(40, size=(160, 4))
    ends = np.stack([np.repeat(np.arange(160), 4), near.ravel()])
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges = pd.DataFrame({"source": ends[0], "target": ends[1]}).map(lambda i: f"p{i}")
    edges.to_csv(tmp_path / "edges.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS)
def test_every_python_block_runs(block: str, own_files: Path) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(block, str(README), "exec"), namespace)
    result = namespace["result"]
    assert len(result.history) == result.recipe.train.epochs
    assert np.bincount(result.classes()).sum() == result.task.graph.n_nodes
    assert ("checkpoint" in block) == (own_files / "run.safetensors").exists()


@pytest.mark.usefixtures("own_files")
@pytest.mark.parametrize("block", SHELL)
def test_every_block_of_commands_runs(block: str) -> None:
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "openima"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.stderr
        if "--out" in arguments:
            assert Path(arguments[arguments.index("--out") + 1]).exists()


def test_there_are_blocks_of_commands() -> None:
    assert len(SHELL) == 2
