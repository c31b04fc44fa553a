import pytest

from openima.train.progress import epoch_bar


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def test_shows_epoch_share_and_last_figures(capsys: pytest.CaptureFixture[str]) -> None:
    with epoch_bar("Method", n_epochs=4, n_steps=5, shown=True) as bar:
        bar.epoch(3, {"epoch": 2, "sc": 0.25, "val_acc": 0.875, "all": 0.5, "seconds": 9.0})
        bar.step()
        bar.step()
    out, err = capsys.readouterr()
    assert out == ""
    assert "Method epoch 3/4" in err
    assert "12/20" in err
    assert "60%" in err
    assert "sc 0.250  val_acc 0.875  all 0.500" in err
    assert "9.0" not in err


def test_the_first_epoch_has_no_figures_yet(capsys: pytest.CaptureFixture[str]) -> None:
    with epoch_bar("Method", 4, 5, shown=True) as bar:
        bar.epoch(1, {})
    err = capsys.readouterr().err
    assert "Method epoch 1/4" in err
    assert "0/20" in err
    assert "sc" not in err


def test_ends_at_all_with_the_last_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where nothing was left to do, as with a finished checkpoint."""
    with epoch_bar("Method", 4, 5, shown=True) as bar:
        bar.finish({"sc": 0.25, "val_acc": 0.875})
    err = capsys.readouterr().err
    assert "100%" in err
    assert "20/20" in err
    assert "sc 0.250  val_acc 0.875" in err
    assert "all" not in err


def test_says_nothing_where_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with epoch_bar("Method", 4, 5, shown=False) as bar:
        bar.epoch(1, {})
        bar.step()
        bar.finish({})
    assert capsys.readouterr() == ("", "")


def test_a_failure_passes_through(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with epoch_bar("Method", 4, 5, shown=True):
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        fail()
    assert "Method" in capsys.readouterr().err
