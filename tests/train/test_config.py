from typing import Any

import pytest

from openima.errors import InputError
from openima.predict.clustering import KMeansClustering
from openima.train.config import TrainConfig


def test_the_defaults_are_the_papers() -> None:
    config = TrainConfig()
    assert (config.epochs, config.batch_size, config.weight_decay) == (20, 2048, 1e-4)
    assert config.fan_outs == (None, None)
    assert config.clustering == KMeansClustering(n_init=10)
    assert (config.device, config.precision) == ("auto", "float32")


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 1, "batch_size": 1},
        {"seed": 2406525885},
        {"seed": 2**63 - 1},
        {"fan_outs": (10, 20)},
        {"fan_outs": (None, 1)},
        {"weight_decay": 0.0},
        {"precision": "bfloat16"},
    ],
)
def test_settings_with_a_meaning_are_kept(settings: dict[str, Any]) -> None:
    config = TrainConfig(**settings)
    assert {name: getattr(config, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1. Got 0"),
        ({"batch_size": -5}, "batch_size must be at least 1. Got -5"),
        ({"learning_rate": 0.0}, "learning_rate must be positive. Got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive. Got nan"),
        ({"learning_rate": float("inf")}, "learning_rate must be positive"),
        ({"weight_decay": -1e-4}, "weight_decay cannot be negative"),
        ({"seed": -1}, r"seed is out of range. Expected 0 to 2\*\*63 - 1. Got -1"),
        ({"seed": 2**63}, "seed is out of range"),
        ({"fan_outs": (5,)}, r"fan_outs says how many neighbours.*Got \(5,\)"),
        ({"fan_outs": (0, 5)}, "Expected two numbers from 1, None for all"),
        ({"fan_outs": (5, 5, 5)}, "fan_outs says how many neighbours"),
        ({"precision": "float16"}, "unknown precision. Expected float32 or bfloat16. Got float16"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainConfig(**settings)
