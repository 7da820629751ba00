import numpy as np
import pytest


@pytest.fixture
def rows():
    """20,000 rows of three well separated clusters in four columns, in random order."""
    rng = np.random.default_rng(1)
    centres = np.array([[0, 0, 0, 0], [9, 0, -9, 0], [0, 9, 0, 9]], dtype=float)
    labels = rng.integers(3, size=20_000)
    return centres[labels] + rng.standard_normal((20_000, 4)) * (1.0 + 0.2 * labels[:, None])


def expected_failed_checks(estimator) -> dict[str, str]:
    """scikit-learn's checks that an online learner cannot pass."""
    reason = "A row is learned once, so two rows one after the other are not exactly one row of weight 2."
    return {"check_sample_weight_equivalence_on_dense_data": reason}
