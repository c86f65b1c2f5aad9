import json

import numpy as np
import pytest

from meterveil.core.decoys import Library
from meterveil.errors import InputError

TWO = Library.of([("kettle", [1200.0, 2400.5]), ("toaster", [900.0])], "a kitchen")


def test_signatures_lie_in_one_padded_array_with_an_empty_one_at_the_end():
    assert TWO.watts.tolist() == [[1200.0, 2400.5, 0.0], [900.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert TWO.lengths.tolist() == [2, 1, 1]
    assert (TWO.size, TWO.n_actions) == (2, 5)


def test_json_brings_the_same_library_back():
    again = Library.from_json(TWO.to_json())
    np.testing.assert_array_equal(again.watts, TWO.watts)
    assert (again.names, again.source, again.digest()) == (TWO.names, TWO.source, TWO.digest())


def test_the_digest_changes_with_a_single_watt():
    other = Library.of([("kettle", [1200.0, 2401.5]), ("toaster", [900.0])], "a kitchen")
    assert other.digest() != TWO.digest()


@pytest.mark.parametrize(
    ("watts", "message"),
    [
        ([], "allowed are 1 to 1440 minutes"),
        ([1.0] * 1441, "allowed are 1 to 1440 minutes"),
        ([100.0, float("nan")], "negative or missing"),
        ([100.0, -1.0], "negative or missing"),
        ([0.0, 100.0], "starts with zero watts"),
    ],
)
def test_an_impossible_signature_is_refused_by_name(watts, message):
    with pytest.raises(InputError, match=rf"signature 0 \(kettle\).*{message}"):
        Library.of([("kettle", watts)], "x")


def test_an_empty_library_is_refused():
    with pytest.raises(InputError, match="at least one"):
        Library.of([], "x")


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '{"format": "other"}',
        '{"format": "meterveil-signatures-1", "source": "x"}',
        '{"format": "meterveil-signatures-1", "source": "x", "signatures": [{"name": "a"}]}',
        json.dumps({"format": "meterveil-signatures-1", "source": "x", "signatures": [{"name": "a", "watts": "b"}]}),
        json.dumps({"format": "meterveil-signatures-1", "source": "x", "signatures": [7]}),
    ],
)
def test_a_file_that_is_no_library_is_refused_with_a_reason(text):
    with pytest.raises(InputError, match="signature library"):
        Library.from_json(text)
