"""The chunked form of the pairwise losses is the plain one, and needs less memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.objectives import pairwise
from superconext.objectives.pairwise import class_blocks
from superconext.objectives.supcon import Options, SupCon
from superconext.objectives.superloss import CHUNKED_FROM, Miner, SuperLoss
from superconext.objectives.superloss import Options as SuperLossOptions
from tests.objectives.batches import COMPOSITIONS, Largest, make_batch, random_vectors

torch.set_num_threads(1)

LOSSES = {
    "superloss": SuperLoss(0.2),
    "superloss micro": SuperLoss(0.2, SuperLossOptions(reduction="micro")),
    "superloss with self": SuperLoss(0.2, SuperLossOptions(include_self=True)),
    "superloss cold": SuperLoss(0.01),
    "threshold": SuperLoss(0.2, miner=Miner("threshold", 0.3, 0.0)),
    "threshold, all": SuperLoss(0.2, miner=Miner("threshold", 0.9, 0.0, fallback="all")),
    "threshold, skip": SuperLoss(0.2, miner=Miner("threshold", 0.4, 0.0, fallback="skip")),
    "upper cut": SuperLoss(0.2, miner=Miner("threshold", -0.5, 0.0, max_similarity=0.5)),
    **{
        f"{cut} and below, {mode}, {fallback}": SuperLoss(
            0.2,
            SuperLossOptions(reduction="micro"),
            Miner(mode, level, 0.0, cut, fallback),
        )
        for cut in (-0.2, 0.3)
        for mode, level in (("threshold", 0.2), ("topk", 2))
        for fallback in ("hardest", "all", "skip")
    },
    "topk": SuperLoss(0.2, miner=Miner("topk", 2, 0.0)),
    "quantile": SuperLoss(0.2, miner=Miner("quantile", 0.3, 0.0)),
    "supcon out": SupCon(0.2),
    "supcon in": SupCon(0.2, Options("in")),
    "supcon cold": SupCon(0.01),
}
BATCHES = {name: (labels, None) for name, labels in COMPOSITIONS.items()} | {
    "rows drawn twice": ([0, 1, 0, 2, 1, 0, 2, 1], [0, 1, 0, 2, 3, 4, 2, 1]),
    "one sentence over and over": ([0] * 6, [0] * 6),
    "a class of one sentence": ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 2, 3]),
    "large and small classes": ([5] * 70 + [1, 1, 2] + [9] * 40 + [3, 3, 4, 4], None),
}


def both(loss, vectors, labels, ids=None):
    """Value, gradient and scalars of the plain and of the chunked form."""
    results = []
    for form in (loss.plain, loss.chunked):
        x = vectors.clone().requires_grad_()
        value, scalars = form(make_batch(x, labels, ids))
        (3 * value).backward()
        results.append((value.detach(), x.grad, scalars))
    return results


def assert_same(plain, chunked, tolerance):
    for one, other in zip(plain[:2], chunked[:2], strict=True):
        assert float((one - other).abs().max()) <= tolerance * max(1.0, float(one.abs().max()))
    assert plain[2] == pytest.approx(chunked[2], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize(("labels", "ids"), BATCHES.values(), ids=BATCHES.keys())
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_equals_the_plain_form(monkeypatch, loss, labels, ids, rows):
    monkeypatch.setattr(pairwise, "CHUNK", rows * len(labels))
    drawn = range(len(labels)) if ids is None else ids
    vectors = random_vectors(max(drawn) + 1, 6)[list(drawn)]
    assert_same(*both(loss, vectors, labels, ids), 1e-9)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("rows", [600, 900])  # kept whole, and in chunks of 256
def test_equals_the_plain_form_in_single_precision(loss, rows):
    labels = [k % 3 for k in range(rows)]
    vectors = random_vectors(rows, 16).float()
    plain, chunked = both(loss, vectors, labels)
    # A cosine near the threshold may be rounded to its other side.
    assert_same(plain, chunked, 1e-5)


@settings(max_examples=30, deadline=None)
@given(
    labels=st.lists(st.integers(0, 5), min_size=1, max_size=20),
    data=st.data(),
    rows=st.integers(1, 7),
    small=st.integers(0, 8),
)
def test_equals_the_plain_form_whatever_the_classes(labels, data, rows, small):
    drawn = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=24))
    vectors = random_vectors(len(labels), 4)[drawn]
    classes = [labels[row] for row in drawn]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwise, "SMALL", small)
        patch.setattr(pairwise, "CHUNK", rows * len(drawn))
        for name in ("superloss", "supcon out", "topk"):
            if name == "topk" and len(set(drawn)) < len(drawn):
                continue  # copies tie, and which of them is kept is nobody's promise
            assert_same(*both(LOSSES[name], vectors, classes, drawn), 1e-9)


@pytest.mark.parametrize("name", [name for name in LOSSES if "cold" not in name])
def test_gradcheck(name):
    loss, labels = LOSSES[name], torch.tensor([0, 1, 0, 1, 2, 2, 0, 3])
    vectors = random_vectors(8, 3, seed=4).requires_grad_()

    def value(x):
        return loss.chunked(make_batch(x, labels))[0]

    assert torch.autograd.gradcheck(value, (vectors,))


def test_chunks_hold_every_row_once_and_its_class_whole(monkeypatch):
    labels = torch.tensor([0] * 100 + [1] * 3 + [2] * 5 + [3] * 40 + [4] * 2)
    pairs = class_blocks(labels, torch.arange(150))
    for rows in (1, 7, 50, 500):
        monkeypatch.setattr(pairwise, "CHUNK", rows * 150)
        chunks = pairwise.chunks(pairs)
        assert [i for here, _ in chunks for i in range(here.start, here.stop)] == list(range(150))
        for here, window in chunks:
            inside = set(pairs.group[here].tolist())
            assert inside == set(pairs.group[window].tolist())
            assert sum(pairs.sizes[list(inside)].tolist()) == window.stop - window.start


@pytest.mark.parametrize("name", ["superloss", "threshold", "supcon out", "supcon in"])
def test_no_tensor_is_the_square_of_a_large_batch(monkeypatch, name):
    rows, width = 2 * CHUNKED_FROM, 8
    monkeypatch.setattr(pairwise, "CHUNK", 50 * rows)
    x = random_vectors(rows, width).float().requires_grad_()
    with Largest() as largest:
        LOSSES[name](make_batch(x, [0, 1] * CHUNKED_FROM))[0].backward()
    assert largest.size <= 50 * rows


def test_small_batches_take_the_plain_form_and_large_ones_the_chunks(monkeypatch):
    seen = []
    for form in ("plain", "chunked"):
        original = getattr(SuperLoss, form)
        monkeypatch.setattr(
            SuperLoss,
            form,
            lambda self, batch, f=form, o=original: seen.append(f) or o(self, batch),
        )
    for rows in (CHUNKED_FROM - 2, CHUNKED_FROM):
        SuperLoss()(make_batch(random_vectors(rows), [0, 1] * (rows // 2)))
    assert seen == ["plain", "chunked"]


@pytest.mark.parametrize(("labels", "ids"), BATCHES.values(), ids=BATCHES.keys())
@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_the_hardest_are_those_of_a_search_through_all_pairs(monkeypatch, labels, ids, rows):
    monkeypatch.setattr(pairwise, "CHUNK", rows * len(labels))
    ids = list(range(len(labels))) if ids is None else ids
    z = torch.nn.functional.normalize(random_vectors(len(labels)), dim=1)
    order = class_blocks(torch.tensor(labels), torch.tensor(ids))
    positive, negative = pairwise.hardest(z, order)
    for place, row in enumerate(order.order.tolist()):
        cosine = z @ z[row]
        own = [j for j in range(len(ids)) if labels[j] == labels[row] and ids[j] != ids[row]]
        others = [j for j in range(len(ids)) if labels[j] != labels[row]]
        if own:
            found = int(order.order[positive[place]])
            assert found in own and float(cosine[found] - cosine[own].min()) < 1e-6
        if others:
            found = int(order.order[negative[place]])
            assert found in others and float(cosine[others].max() - cosine[found]) < 1e-6
