"""SuperLoss on part of the batch: how many of each class a class's part of the loss looks at."""

import pytest
import torch

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.objectives.pairwise import pairs
from superconext.objectives.superloss import Miner, Options, SuperLoss, sampled
from tests.objectives.batches import make_batch, random_vectors
from tests.objectives.oracles import superloss as oracle

torch.set_num_threads(1)

LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 0, 0])


def draw(positives, negatives, seed=0):
    torch.manual_seed(seed)
    masks = pairs(LABELS, torch.arange(len(LABELS)))
    return sampled(masks, LABELS, Options(positives, negatives))


@pytest.mark.parametrize(("positives", "negatives"), [(3, 2), (2, 1), (0, 2), (4, 0), (99, 99)])
def test_each_class_looks_at_so_many_rows(positives, negatives):
    found, sizes = draw(positives, negatives), torch.bincount(LABELS).tolist()
    for k, size in enumerate(sizes):
        rows = [i for i in range(len(LABELS)) if LABELS[i] == k]
        anchors = [i for i in rows if found.positive[i].any()]
        assert len(anchors) == min(positives or size, size)
        seen = {tuple(found.negative[i].nonzero().flatten().tolist()) for i in anchors}
        assert len(seen) == 1  # one draw for the whole class
        for i in rows:
            if i not in anchors:
                assert not found.negative[i].any()
                continue
            own = found.positive[i].nonzero().flatten().tolist()
            assert own == [j for j in anchors if j != i]
            others = LABELS[found.negative[i]].bincount(minlength=3).tolist()
            assert others == [
                0 if j == k else min(negatives or sizes[j], sizes[j]) for j in range(3)
            ]


def test_the_draw_follows_the_seed_and_changes_from_batch_to_batch():
    first, again, other = draw(3, 2), draw(3, 2), draw(3, 2, seed=1)
    assert torch.equal(first.negative, again.negative)
    assert not torch.equal(first.negative, other.negative)
    counts = torch.zeros(len(LABELS))
    for seed in range(300):
        counts += draw(2, 1, seed).positive.any(dim=1)
    for k, size in enumerate(torch.bincount(LABELS).tolist()):  # every row equally often
        assert counts[k == LABELS].tolist() == pytest.approx([600 / size] * size, rel=0.25)


def test_the_loss_is_the_equation_on_those_rows():
    vectors, loss = random_vectors(len(LABELS)), SuperLoss(0.2, options=Options(3, 2))
    masks = draw(3, 2, seed=7)
    torch.manual_seed(7)
    value, _ = loss(make_batch(vectors, LABELS))
    z = vectors / vectors.norm(dim=1, keepdim=True)
    e = (z @ z.T / 0.2).exp()
    per_class = []
    for k in range(3):
        terms = []
        for i in range(len(LABELS)):
            own = [j for j in range(len(LABELS)) if masks.positive[i, j]]
            if LABELS[i] != k or not own:
                continue
            others = [j for j in range(len(LABELS)) if masks.negative[i, j]]
            p = sum(float(e[i, j]) for j in own) / len(own)
            n = sum(float(e[i, j]) for j in others) / len(others)
            terms.append(-torch.log(torch.tensor(p / (p + n), dtype=torch.float64)))
        per_class.append(sum(terms) / len(terms))
    assert float(value) == pytest.approx(float(sum(per_class)) / 3, rel=1e-6)


def test_by_default_every_row_counts():
    vectors, labels = random_vectors(len(LABELS)), LABELS.tolist()
    expected = oracle(vectors.numpy(), labels, range(len(labels)), 0.1)
    for options in (None, Options(), Options(99, 99)):
        value, _ = SuperLoss(0.1, options=options)(make_batch(vectors, LABELS))
        assert float(value) == pytest.approx(expected, rel=1e-9)


def test_mining_chooses_among_the_drawn():
    loss = SuperLoss(0.1, miner=Miner("topk", 1, 0.0), options=Options(0, 2))
    _, scalars = loss(make_batch(random_vectors(len(LABELS)), LABELS))
    assert scalars["kept"] == pytest.approx(1 / 4)  # of two in each of two other classes


def test_reaches_the_loss_from_the_options_of_a_run():
    config = resolve({"options": "n_positives=300,negatives_per_class=175"})
    loss = objective_class("superloss").build(config, Shape(5, 8, 4))
    assert loss.options == Options(300, 175)
    for wrong in ("n_positives=1", "n_positives=-3", "negatives_per_class=-1"):
        with pytest.raises(ConfigError, match=r"expected (at|a value of at) least"):
            objective_class("superloss").build(resolve({"options": wrong}), Shape(5, 8, 4))
