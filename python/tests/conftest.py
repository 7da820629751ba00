import numpy as np
import pytest


@pytest.fixture
def rows():
    """20,000 rows of three well separated clusters in four columns, in random order."""
    rng = np.random.default_rng(1)
    centres = np.array([[0, 0, 0, 0], [9, 0, -9, 0], [0, 9, 0, 9]], dtype=float)
    labels = rng.integers(3, size=20_000)
    return centres[labels] + rng.standard_normal((20_000, 4)) * (1.0 + 0.2 * labels[:, None])
