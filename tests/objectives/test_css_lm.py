"""CSS-LM and its rivals: retrieval by the query, each loss against loops, odd batches."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.css_lm import RetrievalOptions, choose_queries, first_drop, retrieve
from tests.objectives import css_oracles
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.oracles import cross_entropy, supcon
from tests.objectives.test_all_objectives import BATCHES, Largest

#: Every row a query, every pool row a negative: nothing is left to chance.
SURE = "queries=1000,negative_rows=1000,warmup=0"
FEW = [name for name in COMPOSITIONS if name != "fifty classes"]
VARIANTS = [
    ("css_lm", "levels=D+C"),
    ("css_lm", "levels=D"),
    ("css_lm", "levels=C"),
    ("css_lm", "form=faithful"),
    ("css_lm", "negatives=farthest"),
    ("css_lm_st", "pseudo=query"),
    ("css_lm_st", "pseudo=classifier,confidence=0.3"),
]


class FakePool:
    """A pool whose sentence vectors are given."""

    def __init__(self, objective, vectors):
        self.vectors = vectors
        with torch.no_grad():
            self.memory = objective.remembered(vectors)
        self.encoded = []

    def encode(self, rows):
        self.encoded.append(rows)
        return self.vectors[rows]


def with_pool(objective, batch, vectors, epoch=1):
    return dataclasses.replace(batch, pool=FakePool(objective, vectors), epoch=epoch)


def both(objective, vectors):
    """(d, c) of each row from the definition."""
    h = vectors.detach().double().numpy()
    d = np.tanh(h @ objective.domain_head.weight.detach().double().numpy().T)
    c = np.tanh(h @ objective.class_head.weight.detach().double().numpy().T)
    return list(zip(d, c, strict=True))


def scores(objective, rows):
    """The classifier's scores of [(d, c)], from the definition."""
    weights = {name: value.detach().numpy() for name, value in objective.state_dict().items()}
    x = np.array([np.concatenate(row) for row in rows])
    hidden = np.tanh(x @ weights["hidden.weight"].T + weights["hidden.bias"])
    return hidden @ weights["classifier.weight"].T + weights["classifier.bias"]


# ------------------------------------------------------------------ against the definition


@pytest.mark.parametrize("form", ["mean", "faithful"])
@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
def test_scf_is_cross_entropy_and_supcon_of_the_joint_vectors(labels, form):
    vectors = random_vectors(len(labels))
    objective = build("scf", f"form={form},weight=0.7", classes=50, temperature=0.3)
    loss, scalars = objective(make_batch(vectors, labels))
    rows = both(objective, vectors)
    first = cross_entropy(scores(objective, rows), labels)
    if form == "faithful":
        first *= len(labels)
        empty = [set() for _ in labels]
        second = css_oracles.losses(rows, [], labels, range(len(labels)), [empty] * 6, 0.3, form)[0]
    else:
        x = np.array([np.concatenate(row) for row in rows])
        second = supcon(x, labels, range(len(labels)), 0.3, "out")
    assert float(loss.detach()) == pytest.approx(first + 0.7 * second, rel=1e-9)
    assert scalars["contrast"] == pytest.approx(second, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "levels", "form", "negatives"),
    [
        *((name, "D+C", "mean", "random") for name in COMPOSITIONS),
        *((name, "D+C", "faithful", "farthest") for name in FEW),
        *((name, "D", "mean", "farthest") for name in FEW),
        *((name, "C", "faithful", "random") for name in FEW),
    ],
)
def test_css_lm_equals_the_equations(name, levels, form, negatives):
    labels = COMPOSITIONS[name]
    vectors, pooled = random_vectors(len(labels), 4), random_vectors(9, 4, seed=7)
    objective = build(
        "css_lm",
        f"levels={levels},form={form},negatives={negatives},retrieved=3,weight=0.5,{SURE}",
        classes=50,
        d=4,
        temperature=0.4,
    )
    loss, scalars = objective(with_pool(objective, make_batch(vectors, labels), pooled))
    rows, others = both(objective, vectors), both(objective, pooled)
    ids = range(len(labels))
    sets = css_oracles.retrieval(
        rows, others, labels, levels=levels, k=3, negatives=negatives, drawn=range(9)
    )
    css, domain, classes = css_oracles.losses(rows, others, labels, ids, sets, 0.4, form)
    first = cross_entropy(scores(objective, rows), labels)
    first *= len(labels) if form == "faithful" else 1
    expected = {"contrast": css, "cross_entropy": first}
    expected |= {"domain": domain} if "D" in levels else {}
    expected |= {"class": classes} if "C" in levels else {}
    for term, value in expected.items():
        assert scalars[term] == pytest.approx(value, rel=1e-9, abs=1e-9), term
    assert ("domain" in scalars, "class" in scalars) == ("D" in levels, "C" in levels)
    contrasts = sum(value for term, value in expected.items() if term != "cross_entropy")
    assert float(loss.detach()) == pytest.approx(first + 0.5 * contrasts, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=8),
    pool=st.integers(1, 8),
    k=st.integers(1, 4),
    form=st.sampled_from(["mean", "faithful"]),
    data=st.data(),
    seed=st.integers(0, 1000),
)
def test_css_lm_equals_the_equations_with_rows_drawn_twice(labels, pool, k, form, data, seed):
    ids = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=9))
    drawn = [labels[i] for i in ids]
    vectors, pooled = random_vectors(len(labels), 4, seed)[ids], random_vectors(pool, 4, seed + 1)
    objective = build("css_lm", f"form={form},retrieved={k},{SURE}", d=4, temperature=0.5)
    _, scalars = objective(with_pool(objective, make_batch(vectors, drawn, ids), pooled))
    rows, others = both(objective, vectors), both(objective, pooled)
    sets = css_oracles.retrieval(
        rows, others, drawn, levels="D+C", k=k, negatives="random", drawn=range(pool)
    )
    expected = css_oracles.losses(rows, others, drawn, ids, sets, 0.5, form)
    found = [scalars[name] for name in ("contrast", "domain", "class")]
    assert found == pytest.approx(list(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("pseudo", ["query", "classifier"])
@pytest.mark.parametrize("form", ["mean", "faithful"])
def test_self_training_equals_the_definition(pseudo, form):
    labels = [0, 0, 1, 1, 2, 0]
    vectors, pooled = random_vectors(6, 4), random_vectors(9, 4, seed=7)
    options = f"pseudo={pseudo},confidence=0.37,form={form},retrieved=3,weight=0.5,{SURE}"
    objective = build("css_lm_st", options, d=4, temperature=0.4)
    loss, scalars = objective(with_pool(objective, make_batch(vectors, labels), pooled))
    rows, others = both(objective, vectors), both(objective, pooled)
    sets = css_oracles.retrieval(
        rows, others, labels, levels="D+C", k=3, negatives="random", drawn=range(9)
    )
    _, domain, classes = css_oracles.losses(rows, others, labels, range(6), sets, 0.4, form)
    table = scores(objective, others)
    p = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    if pseudo == "query":
        terms = [-math.log(p[j, labels[i]]) for i in range(6) for j in sets[0][i]]
        assert scalars["pseudo_share"] == 1.0
    else:
        found = set.union(*sets[0])
        terms = [-math.log(p[j].max()) for j in found if p[j].max() > 0.37]
        assert 0 < len(terms) < len(found)
        assert scalars["pseudo_share"] == pytest.approx(len(terms) / len(found))
    third = sum(terms) if form == "faithful" else sum(terms) / len(terms)
    first = cross_entropy(scores(objective, rows), labels) * (6 if form == "faithful" else 1)
    assert scalars["pseudo_cross_entropy"] == pytest.approx(third, rel=1e-9)
    assert "contrast" not in scalars
    expected = first + third + 0.5 * (domain + classes)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_gradcheck(name, options):
    objective = build(name, f"{options},retrieved=2,{SURE}", d=2, temperature=0.5)
    vectors = random_vectors(5, 2).requires_grad_()
    pooled = random_vectors(6, 2, seed=3).requires_grad_()
    memory = FakePool(objective, pooled.detach().clone()).memory

    def loss(x, o, *_):
        batch = with_pool(objective, make_batch(x, [0, 0, 1, 1, 2]), o)
        batch.pool.memory = memory
        return objective(batch)[0]

    weights = (objective.domain_head.weight, objective.class_head.weight)
    assert torch.autograd.gradcheck(loss, (vectors, pooled, *weights))


# --------------------------------------------------------------------------------- retrieval


def found_by(asked, memory, labels=None, own_sets=True, **options):
    labels = torch.zeros(len(asked), dtype=torch.int64) if labels is None else labels
    return retrieve(asked, memory, labels, RetrievalOptions(**options), own_sets)


def units(n, d=6, seed=0):
    """Rows of two unit halves, as a pool's memory has them."""
    halves = random_vectors(2 * n, d, seed)
    halves = halves / halves.norm(dim=1, keepdim=True)
    return torch.cat([halves[:n], halves[n:]], dim=1)


@pytest.mark.parametrize("levels", ["D+C", "D", "C"])
def test_retrieval_depends_on_the_query(levels):
    memory = units(400)
    queries = torch.cat([memory[:12], units(12, seed=5)])
    found = found_by(queries, memory, levels=levels, retrieved=8, queries=24, negative_rows=0)
    for sets in (found.positives, found.domain_positives, found.class_positives):
        if sets is not found.positives and not bool(sets.any()):
            continue
        chosen = [tuple(found.rows[row].tolist()) for row in sets]
        assert all(len(rows) == 8 for rows in chosen)
        assert len(set(chosen)) == 24
    # A query that stands in the pool finds itself, and hardly what another finds.
    for i in range(12):
        assert i in found.rows[found.positives[i]].tolist()
    shared = (found.positives.float() @ found.positives.float().T).fill_diagonal_(0)
    assert float(shared.mean()) < 1


def test_changing_a_query_changes_what_it_finds_and_nothing_else():
    memory = units(300)
    queries = units(4, seed=2)
    changed = queries.clone()
    changed[2] = units(1, seed=9)[0]
    first, second = (found_by(q, memory, retrieved=5, negative_rows=0) for q in (queries, changed))
    for i in range(4):
        before = set(first.rows[first.positives[i]].tolist())
        after = set(second.rows[second.positives[i]].tolist())
        assert (before == after) == (i != 2)


@pytest.mark.parametrize("pool", [1, 2, 5])
@pytest.mark.parametrize("negatives", ["random", "farthest"])
def test_a_pool_smaller_than_k_is_found_whole(pool, negatives):
    found = found_by(units(3), units(pool), retrieved=16, negatives=negatives)
    assert found.rows.tolist() == list(range(pool))
    assert bool(found.positives.all()) and not bool(found.negatives.any())


def test_own_sets_are_left_out_after_the_fall_back():
    found = found_by(units(4), units(60), own_sets=False, retrieved=3, negative_rows=4)
    assert not found.domain_positives.any() and not found.class_positives.any()
    assert found.positives.sum(dim=1).tolist() == [3] * 4


def test_without_random_negatives_nothing_but_what_is_found_is_in_the_sets():
    found = found_by(units(4), units(60), retrieved=3, negative_rows=0)
    wanted = found.positives | found.domain_positives | found.class_positives
    assert len(found.rows) < 60 and bool(wanted.any(dim=0).all())
    assert not found.negatives.any() and not found.domain_negatives.any()


def test_negatives_hold_no_positive_of_the_class():
    labels = torch.tensor([0, 0, 1, 1])
    found = found_by(units(4), units(40), labels, retrieved=6, negative_rows=40)
    for i in range(4):
        for j in range(4):
            if labels[i] == labels[j]:
                assert not (found.negatives[i] & found.positives[j]).any()
                assert not (found.class_negatives[i] & found.class_positives[j]).any()
            assert not (found.domain_negatives[i] & found.domain_positives[j]).any()
    assert found.class_negatives.any() and found.negatives.any() and found.domain_negatives.any()


def test_random_negatives_change_from_batch_to_batch_and_follow_the_seed():
    def draw(seed):
        torch.manual_seed(seed)
        calls = [found_by(units(2), units(500), retrieved=1, negative_rows=9) for _ in range(2)]
        return [found.rows.tolist() for found in calls]

    assert draw(0) == draw(0) != draw(1)
    assert draw(0)[0] != draw(0)[1]


def test_the_classes_take_turns_to_retrieve():
    labels = torch.tensor([0, 0, 0, 0, 1, 2, 2])
    assert choose_queries(labels, 3).tolist() == [0, 4, 5]
    assert choose_queries(labels, 5).tolist() == [0, 4, 5, 1, 6]
    assert sorted(choose_queries(labels, 99).tolist()) == list(range(7))


def test_only_rows_that_were_retrieved_are_encoded_and_they_get_a_gradient():
    objective = build("css_lm", "retrieved=2,queries=2,negative_rows=3,warmup=0")
    pooled = random_vectors(200, seed=4).requires_grad_()
    batch = with_pool(objective, make_batch(random_vectors(6), [0, 1] * 3), pooled)
    loss, scalars = objective(batch)
    loss.backward()
    (rows,) = batch.pool.encoded
    touched = torch.nonzero(pooled.grad.abs().sum(dim=1)).flatten()
    assert set(touched.tolist()) <= set(rows.tolist())
    assert len(touched) >= 4 and scalars["pool_rows"] == len(rows) <= 3 * 2 * 2 + 3


def test_the_loss_of_the_language_model_has_its_weight():
    plain, full = build("css_lm", SURE), build("css_lm", f"language_model=0.25,{SURE}")
    full.load_state_dict(plain.state_dict())
    batch = make_batch(random_vectors(6), [0, 1] * 3)
    batch = with_pool(full, batch, random_vectors(9, seed=2))
    batch.pool.guess = lambda rows, step: torch.tensor(3.0 if len(rows) == 9 else 0.0)
    loss, scalars = full(batch)
    assert scalars["language_model"] == 3
    assert float(loss.detach()) == pytest.approx(float(plain(batch)[0].detach()) + 0.75, rel=1e-12)


# --------------------------------------------------------------------------------- odd batches


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize(("labels", "ids"), BATCHES.values(), ids=BATCHES.keys())
@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_finite_with_finite_gradient(name, options, labels, ids, temperature):
    objective = build(name, f"{options},warmup=0", classes=50, temperature=temperature).float()
    drawn = random_vectors(len(labels))[range(len(labels)) if ids is None else ids]
    for start, size in ((drawn, 30), (torch.ones_like(drawn), 3), (drawn, 1)):
        for dtype in (torch.float32, torch.bfloat16):
            vectors = start.to(dtype).requires_grad_()
            pooled = random_vectors(size, seed=1) if start is drawn else torch.ones(size, 5)
            pooled = pooled.to(dtype).requires_grad_()
            loss, scalars = objective(
                with_pool(objective, make_batch(vectors, labels, ids), pooled)
            )
            loss.backward()
            assert loss.dim() == 0 and bool(torch.isfinite(loss))
            assert bool(torch.isfinite(vectors.grad).all())
            assert pooled.grad is None or bool(torch.isfinite(pooled.grad).all())
            assert all(isinstance(value, float) for value in scalars.values())


@pytest.mark.parametrize(("name", "options"), [*VARIANTS, ("scf", None)])
def test_order_of_rows_and_numbers_of_classes_do_not_matter(name, options):
    labels, ids = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 1, 3, 4, 5, 6, 7, 8]
    vectors, pooled = random_vectors(9)[ids], random_vectors(12, seed=1)
    objective = build(name, f"{options},{SURE}" if options else None)

    def value(order, rename):
        batch = make_batch(
            vectors[order], [rename[labels[i]] for i in order], torch.tensor(ids)[order]
        )
        return float(objective(with_pool(objective, batch, pooled))[0].detach())

    expected = value(list(range(9)), [0, 1, 2])
    assert value([8, 1, 4, 0, 7, 2, 5, 3, 6], [0, 1, 2]) == pytest.approx(expected, rel=1e-9)
    with torch.no_grad():
        for weights in objective.classifier.parameters():
            weights[[2, 0, 1]] = weights.clone()
    assert value(list(range(9)), [2, 0, 1]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["css_lm", "css_lm_st"])
def test_needs_no_more_than_queries_by_pool(name):
    rows, width, pool, queries = 40, 50, 3000, 8
    options = f"queries={queries},retrieved=2,negative_rows=8,warmup=0"
    objective = build(name, options, d=width).float()
    vectors = random_vectors(rows, width).float().requires_grad_()
    batch = with_pool(
        objective, make_batch(vectors, [0, 1] * 20), random_vectors(pool, width).float()
    )
    with Largest() as largest:
        objective(batch)[0].backward()
    # The memory of the pool, both spaces side by side, counts where a torch makes a view of it.
    assert 0 < largest.size <= max(queries * pool, pool * 2 * width, (2 * width) ** 2)


# ------------------------------------------------------------------- warm-up and the fall-back


def test_in_the_warm_up_css_lm_is_scf():
    vectors, labels = random_vectors(6), [0, 1, 2, 0, 1, 2]
    plain, full = build("scf"), build("css_lm", "warmup=2")
    full.load_state_dict(plain.state_dict())
    pooled = random_vectors(9, seed=2)
    expected = float(plain(make_batch(vectors, labels))[0].detach())
    for epoch in (0, 1):
        batch = with_pool(full, make_batch(vectors, labels), pooled, epoch=epoch)
        loss, scalars = full(batch)
        assert float(loss.detach()) == expected and not batch.pool.encoded
        assert scalars["pool_rows"] == 0.0
    loss, _ = full(with_pool(full, make_batch(vectors, labels), pooled, epoch=2))
    assert float(loss.detach()) > expected


@pytest.mark.parametrize(
    ("dev", "warmup", "patience", "expected"),
    [
        ([0.5, 0.6, 0.7], 1, 1, None),
        ([0.5, 0.6, 0.6, 0.59], 1, 1, 3),
        ([0.5, 0.4, 0.3], 1, 1, 1),
        ([0.5, 0.4, 0.45, 0.6], 3, 1, None),
        ([0.5, 0.4, 0.6, 0.3, 0.7, 0.6], 1, 2, None),
        ([0.5, 0.4, 0.5, 0.3, 0.4, 0.6], 1, 2, 4),
        ([0.5, 0.4, 0.3, 0.2, 0.9], 2, 2, 3),
        ([0.5, 0.1, 0.1], 1, 0, None),
        ([None, None], 0, 1, None),
        ([], 1, 1, None),
    ],
)
def test_the_first_drop_on_dev(dev, warmup, patience, expected):
    history = [{"loss": 1.0} if score is None else {"dev_score": score} for score in dev]
    assert first_drop(history, warmup, patience) == expected


def test_after_the_drop_two_losses_are_left_for_good():
    objective = build("css_lm", f"patience=1,{SURE}")
    batch = with_pool(
        objective, make_batch(random_vectors(6), [0, 1] * 3), random_vectors(20, seed=1)
    )
    scores = [0.5, 0.6, 0.55, 0.9]
    told = []
    for epoch in range(5):
        objective.begin_epoch(epoch, [{"dev_score": score} for score in scores[:epoch]])
        loss, scalars = objective(batch)
        told.append(scalars["fallen_back"])
        assert ("domain" in scalars) == ("class" in scalars) == (not objective.fallen_back)
    assert told == [0, 0, 0, 1, 1]
    left = scalars["cross_entropy"] + scalars["contrast"]
    assert float(loss.detach()) == pytest.approx(left, rel=1e-12)


def test_after_the_drop_only_rows_of_the_losses_left_are_encoded():
    objective = build("css_lm", "patience=1,warmup=0,retrieved=2,negative_rows=0")
    batch = make_batch(random_vectors(6), [0, 1] * 3)
    encoded = []
    for scores in ([0.6], [0.6, 0.5]):
        objective.begin_epoch(len(scores), [{"dev_score": score} for score in scores])
        whole = with_pool(objective, batch, random_vectors(90, seed=1))
        objective(whole)
        encoded.append(set(whole.pool.encoded[0].tolist()))
    assert objective.fallen_back and encoded[1] < encoded[0] and len(encoded[1]) <= 6 * 2


def test_self_training_never_falls_back():
    objective = build("css_lm_st", SURE)
    objective.begin_epoch(3, [{"dev_score": score} for score in (0.9, 0.5, 0.1)])
    batch = with_pool(
        objective, make_batch(random_vectors(4), [0, 1] * 2), random_vectors(9, seed=1)
    )
    assert "domain" in objective(batch)[1]


# ------------------------------------------------------------------ prediction and declarations


@pytest.mark.parametrize("name", ["scf", "css_lm", "css_lm_st"])
def test_prediction_is_the_classifiers(name):
    objective, vectors = build(name), random_vectors(7)
    found = objective.class_scores(EncoderOutput.of_sentences(vectors)).detach().numpy()
    assert np.allclose(found, scores(objective, both(objective, vectors)), rtol=1e-12)


def test_declares_what_it_needs():
    assert [build(name).needs_pool for name in ("scf", "css_lm", "css_lm_st")] == [
        False,
        True,
        True,
    ]
    for name in ("scf", "css_lm", "css_lm_st"):
        assert (build(name).batches, build(name).uses_projection) == ("shuffled", False)
    assert build("css_lm", "pool_size=77").options.pool_size == 77
    with pytest.raises(TrainingError, match="without unlabelled text"):
        build("css_lm")(make_batch(random_vectors(4), [0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("css_lm", "levels=E", "levels = 'E': expected one of D\\+C, D, C"),
        ("css_lm", "form=sum", "form = 'sum': expected one of mean, faithful"),
        ("css_lm", "negatives=near", "expected one of random, farthest"),
        ("css_lm", "retrieved=0", "retrieved = 0: expected a value of at least 1"),
        ("css_lm", "queries=0", "queries = 0: expected a value of at least 1"),
        ("css_lm", "negative_rows=-1", "negative_rows = -1: expected a value of at least 0"),
        ("css_lm", "warmup=-1", "warmup = -1: expected a value of at least 0"),
        ("css_lm", "patience=-1", "patience = -1: expected a value of at least 0"),
        ("css_lm", "weight=-1", "weight = -1.0: expected a value of at least 0"),
        ("css_lm", "pool_size=0", "pool_size = 0: expected a value of at least 1"),
        ("css_lm", "pseudo=query", "no option 'pseudo'"),
        ("css_lm_st", "pseudo=oracle", "expected one of query, classifier"),
        ("css_lm_st", "confidence=1", "confidence = 1.0: expected a value .* below 1"),
        ("scf", "form=sum", "form = 'sum': expected one of mean, faithful"),
        ("scf", "weight=-1", "weight = -1.0: expected a value of at least 0"),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(name, options, message):
    with pytest.raises(ConfigError, match=message):
        build(name, options)
