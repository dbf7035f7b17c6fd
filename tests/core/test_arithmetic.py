"""float32 products by the faster library: only where they are exact, and put back afterwards."""

import json
import threading

import numpy as np
import pytest
import torch

from superconext import SuperConTextClassifier
from superconext.core import arithmetic
from superconext.core.arithmetic import fast_products, float32_library, measure_onednn
from tests.estimator.test_contract import LABELS, TEXTS, TINY

PRECISION = torch.get_float32_matmul_precision


@pytest.fixture
def gain(monkeypatch, tmp_path):
    """A function that sets what the measurement finds."""
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))

    def found(value):
        arithmetic._onednn_wins.cache_clear()
        monkeypatch.setattr(arithmetic, "measure_onednn", lambda: value)

    yield found
    arithmetic._onednn_wins.cache_clear()


def test_it_is_on_inside_the_block_alone_where_it_pays(gain):
    gain(2.0)
    assert float32_library() == "oneDNN"
    with fast_products():
        assert PRECISION() == "medium"
        with fast_products():
            pass
        assert PRECISION() == "medium"
        with pytest.raises(ZeroDivisionError), fast_products():
            raise ZeroDivisionError
        assert PRECISION() == "medium"
    assert PRECISION() == "highest"
    with fast_products(False):
        assert PRECISION() == "highest"


@pytest.mark.parametrize("value", [0.0, 1.3])
def test_it_is_off_where_it_is_inexact_or_hardly_faster(gain, value):
    gain(value)
    assert float32_library() == "torch's own"
    with fast_products():
        assert PRECISION() == "highest"


def test_what_the_user_has_set_stays(gain):
    gain(2.0)
    torch.set_float32_matmul_precision("high")
    try:
        with fast_products():
            assert PRECISION() == "high"
        assert PRECISION() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_threads_that_overlap_leave_it_as_it_was(gain):
    gain(2.0)
    entered, leave = threading.Event(), threading.Event()

    def work():
        with fast_products():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=work)
    with fast_products():
        other.start()
        assert entered.wait(10)
    assert PRECISION() == "medium"
    leave.set()
    other.join()
    assert PRECISION() == "highest"


def test_the_answer_is_kept_for_this_processor(gain, tmp_path, monkeypatch):
    gain(2.0)
    with fast_products():
        pass
    [(key, value)] = json.loads((tmp_path / "cache" / arithmetic.FILE).read_text()).items()
    assert key.startswith("onednn ") and value == 2.0
    gain(0.0)
    with fast_products():
        assert PRECISION() == "medium", "measured again"
    gain(0.0)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    with fast_products():
        assert PRECISION() == "highest"


def test_the_measurement_leaves_no_trace():
    state = torch.get_rng_state()
    assert 0 <= measure_onednn() < 100
    assert PRECISION() == "highest" and torch.equal(state, torch.get_rng_state())


def test_a_product_that_is_rounded_is_not_taken(monkeypatch):
    """As where oneDNN makes use of the permission."""
    product = torch.Tensor.__matmul__

    def rounded(one, other):
        if PRECISION() == "medium":
            return product(one.bfloat16(), other.bfloat16()).float()
        return product(one, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    assert measure_onednn() == 0.0


def test_a_model_trained_with_it_is_the_same_but_for_rounding(gain):
    answers = []
    for value in (0.0, 2.0):
        gain(value)
        (arithmetic.cache_dir() / arithmetic.FILE).unlink(missing_ok=True)
        answers.append(SuperConTextClassifier(**TINY).fit(TEXTS, LABELS).transform(TEXTS))
    np.testing.assert_allclose(*answers, atol=1e-3)


def test_nothing_is_kept_where_no_home_is_known(gain, monkeypatch):
    def unknown():
        raise FileNotFoundError("no home")

    gain(2.0)
    monkeypatch.setattr(arithmetic, "cache_dir", unknown)
    with fast_products():
        assert PRECISION() == "medium"
