"""Shipped model and a synthetic home."""

import numpy as np
import pytest

from meterveil.audit.model import load_model
from meterveil.data.synthetic import household


@pytest.fixture(scope="session")
def model():
    return load_model()


@pytest.fixture(scope="session")
def home():
    return household(np.random.default_rng(0), days=14)
