from __future__ import annotations

import numpy as np
import pytest

from openima.theory import READINGS, TwoGaussians, accuracies, accuracy_slopes, check_claims

CHECKS = {check.statement: check for check in check_claims(n_gamma=21, n_alpha=31)}
GROWTH = {reading.fixed: f"ACC2 grows with σ1; fixed: {reading.fixed}" for reading in READINGS}


def test_verdicts() -> None:
    assert {statement: check.holds for statement, check in CHECKS.items()} == {
        GROWTH["σ2 and ‖μ1-μ2‖"]: True,
        GROWTH["σ2 and α"]: True,
        GROWTH["γ and α"]: False,
        GROWTH["γ and ‖μ1-μ2‖"]: False,
        "ACC1 is within 0.05 of 1": True,
        "ACC2 is within 0.05 of 1": True,
        "h has one root": True,
        "Lloyd shrinks the error each step": True,
    }


def test_the_extremes_are_those_of_the_docs() -> None:
    by_distance, by_alpha = CHECKS[GROWTH["σ2 and ‖μ1-μ2‖"]], CHECKS[GROWTH["σ2 and α"]]
    assert (by_distance.least, by_distance.greatest) == pytest.approx((4.61e-6, 0.066), rel=2e-3)
    assert (by_alpha.least, by_alpha.greatest) == pytest.approx((0.00683, 0.179), rel=2e-3)
    assert CHECKS[GROWTH["γ and α"]].least == CHECKS[GROWTH["γ and α"]].greatest == 0
    assert CHECKS[GROWTH["γ and ‖μ1-μ2‖"]].greatest == pytest.approx(-0.0133, rel=3e-3)
    novel = CHECKS["ACC2 is within 0.05 of 1"]
    assert novel.least == pytest.approx(0.9868, abs=5e-5)
    assert novel.worst == "γ = 2, α = 3"
    assert novel.where == "α from 3 to 10"
    assert CHECKS["Lloyd shrinks the error each step"].greatest == pytest.approx(0.404, abs=5e-4)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_a_narrower_seen_class_costs_the_novel_one_step_by_step(alpha: float) -> None:
    narrow = np.linspace(0.5, 1, 60)
    for distance in (2 * alpha, alpha * (narrow + 1)):
        seen, novel = accuracies(TwoGaussians.of(narrow, 1, distance))
        assert (np.diff(novel) > 0).all()
        assert (np.diff(seen) < 0).all()


def test_readings_hold_fixed_what_they_say() -> None:
    mixture, step = TwoGaussians.of(1.0, 1.6, 5.0), 1e-6
    fixed = {"σ2": "sigma2", "‖μ1-μ2‖": "distance", "γ": "gamma", "α": "alpha"}
    for reading in READINGS:
        s1, s2, d = reading.direction(mixture)
        assert s1 == 1
        moved = TwoGaussians.of(1 + step, 1.6 + step * s2, 5 + step * d)
        for sign in reading.fixed.split(" and "):
            before, after = (float(getattr(m, fixed[sign])) for m in (mixture, moved))
            assert after == pytest.approx(before, rel=1e-11)


def test_how_far_the_second_claim_reaches() -> None:
    def worse(gamma: float, alpha: float) -> float:
        return float(min(accuracies(TwoGaussians.from_rates(gamma, alpha))))

    assert worse(2.0, 2.30) < 0.95 < worse(2.0, 2.31)
    assert worse(6.46, 3.0) < 0.95 < worse(6.44, 3.0)


def test_whether_both_classes_together_gain_depends_on_the_reading() -> None:
    mixture = TwoGaussians.from_rates(np.linspace(1.05, 2, 20)[:, None], np.linspace(1.5, 3, 31))
    by_distance, by_alpha = (
        sum(accuracy_slopes(mixture, reading.direction(mixture))) for reading in READINGS[:2]
    )
    assert np.max(by_distance) < 0 < np.min(by_alpha)
