"""What holds for every objective: finite on odd batches, blind to order, small in memory."""

import pytest
import torch

from superconext.objectives.catalogue import OBJECTIVES
from tests.objectives.batches import COMPOSITIONS, Largest, build, make_batch, random_vectors

VARIANTS = [
    ("superloss", None),
    ("cross_entropy", None),
    ("ce_ce", None),
    ("ce_ce", "normalise_weights=yes"),
    ("triplet", "form=hard"),
    ("triplet", "form=all"),
    ("triplet", "form=semi_hard"),
    ("triplet", "form=soft"),
    ("n_pair", None),
    ("n_pair", "normalise=no"),
    ("supcon", "form=out"),
    ("supcon", "form=in"),
    ("ce_scl", None),
    ("ce_scl", "scl_reduction=sum"),
    ("ce_cl", "form=nt_xent"),
    ("ce_cl", "form=simcse"),
]
PAIRED = [variant for variant in VARIANTS if variant[0] not in ("cross_entropy", "ce_ce")]
CONTRASTIVE = [variant for variant in PAIRED if not variant[0].startswith("ce_")]

BATCHES = {name: (labels, None) for name, labels in COMPOSITIONS.items()} | {
    "one sentence over and over": ([0] * 6, [0] * 6),
    "a class of one sentence": ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 2, 3]),
    "two classes of one sentence": ([0, 0, 1, 1], [0, 0, 1, 1]),
}

names = pytest.mark.parametrize(("name", "options"), VARIANTS)


def test_every_objective_is_tried_here():
    assert {name for name, _ in VARIANTS} <= set(OBJECTIVES)


@names
@pytest.mark.parametrize(("labels", "ids"), BATCHES.values(), ids=BATCHES.keys())
@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_finite_with_finite_gradient(name, options, labels, ids, temperature):
    objective = build(name, options, classes=50, temperature=temperature).float()
    drawn = random_vectors(len(labels))[range(len(labels)) if ids is None else ids]
    for start in (drawn, torch.ones_like(drawn)):
        for dtype in (torch.float32, torch.bfloat16):
            vectors = start.to(dtype).requires_grad_()
            loss, scalars = objective(make_batch(vectors, labels, ids))
            loss.backward()
            assert loss.dim() == 0 and bool(torch.isfinite(loss))
            assert vectors.grad is not None and bool(torch.isfinite(vectors.grad).all())
            assert all(isinstance(value, float) for value in scalars.values())


@pytest.mark.parametrize(("name", "options"), CONTRASTIVE)
@pytest.mark.parametrize(
    "batch",
    ["one row", "every row its own class", "one sentence over and over",
     "two classes of one sentence", "one class"],
)  # fmt: skip
def test_nothing_to_contrast_gives_zero_with_a_gradient(name, options, batch):
    if name == "supcon" and batch == "one class":
        pytest.skip("has positives, and its candidates are positives too")
    labels, ids = BATCHES[batch]
    vectors = random_vectors(len(labels)).requires_grad_()
    loss, _ = build(name, options)(make_batch(vectors, labels, ids))
    loss.backward()
    assert loss.item() == 0.0 and torch.equal(vectors.grad, torch.zeros_like(vectors))


@names
def test_order_of_rows_and_numbers_of_classes_do_not_matter(name, options):
    labels, ids = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 1, 3, 4, 5, 6, 7, 8]
    first, second = random_vectors(9)[ids], random_vectors(9, seed=1)
    objective = build(name, options)
    if name == "cross_entropy":
        objective.float()
        first, second = first.float(), second.float()

    def value(order, rename):
        renamed = [rename[labels[i]] for i in order]
        batch = make_batch(first[order], renamed, [ids[i] for i in order], second[order])
        return float(objective(batch)[0].detach())

    expected = value(range(9), [0, 1, 2])
    # N-pair pairs rows by their order within a class, so that order is kept.
    assert value([6, 3, 0, 1, 7, 4, 8, 5, 2], [0, 1, 2]) == pytest.approx(expected, rel=1e-6)
    if name != "n_pair":
        assert value([8, 1, 4, 0, 7, 2, 5, 3, 6], [0, 1, 2]) == pytest.approx(expected, rel=1e-6)
    rename = [2, 0, 1]
    if hasattr(objective, "classifier"):
        with torch.no_grad():
            for weights in objective.classifier.parameters():
                weights[rename] = weights.clone()
    assert value(range(9), rename) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("name", "options"), PAIRED)
def test_reports_the_similarities(name, options):
    vectors = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [-1, 0]], dtype=torch.float64)
    _, scalars = build(name, options, d=2)(make_batch(vectors, [0, 0, 1, 1]))
    assert scalars["positive_similarity"] == pytest.approx(1.0)
    # Two views of other sentences may still be of the same class.
    expected = -1 / 3 if name == "ce_cl" else -1.0
    assert scalars["negative_similarity"] == pytest.approx(expected)


@names
def test_needs_no_more_than_the_square_of_the_batch(name, options):
    rows, width = 60, 70
    objective = build(name, options, d=width).float()
    batch = make_batch(random_vectors(rows, width).float().requires_grad_(), [0, 1, 2] * 20)
    with Largest() as largest:
        objective(batch)[0].backward()
    views = 2 * rows if name == "ce_cl" else rows
    assert 0 < largest.size <= max(views**2, views * width)
