"""DualCL against its equations as loops, and its three ways to predict."""

import math

import numpy as np
import pytest
import torch

from superconext import SuperConTextClassifier, load
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import Batch, Shape
from superconext.objectives.catalogue import objective_class
from superconext.objectives.dualcl import ensembled_scores, spread_rows
from superconext.training.callbacks import Callback
from tests.objectives.batches import COMPOSITIONS, random_vectors
from tests.objectives.oracles import mean, unit

BATCHES = {name: (labels, None) for name, labels in COMPOSITIONS.items()} | {
    "one sentence over and over": ([0] * 6, [0] * 6),
    "a class of one sentence": ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 2, 3]),
}
batches = pytest.mark.parametrize(("labels", "ids"), BATCHES.values(), ids=BATCHES.keys())


def build(name="dualcl", options=None, **parameters):
    config = resolve({"objective": name, "options": options, **parameters})
    return objective_class(name).build(config, Shape(50, 4, 4))


def states(labels, ids=None, d=4, seed=0):
    """Sentence vectors `[N, d]` and class states `[N, C, d]`; equal ids are equal rows."""
    count, classes = len(labels), max(labels) + 2
    rows = list(range(count)) if ids is None else ids
    sentence = random_vectors(count, d, seed)[rows]
    return sentence, random_vectors(count * classes, d, seed + 1).reshape(count, classes, d)[rows]


def batch_of(sentence, theta, labels, ids=None):
    ids = torch.arange(len(labels)) if ids is None else torch.as_tensor(ids)
    return Batch(sentence, sentence, torch.as_tensor(labels), ids, 0, 1, class_states=theta)


def oracle(sentence, theta, labels, ids, temperature, weight, own_pair):
    """(L_CE, L_z, L_theta) of equations 8, 4 and 5, term by term."""
    z, theta = np.asarray(sentence), np.asarray(theta)
    ids = range(len(labels)) if ids is None else ids
    rows = range(len(labels))
    entropy = []
    for i in rows:
        scores = [float(theta[i, k] @ z[i]) for k in range(theta.shape[1])]
        top = max(scores)
        log_sum = top + math.log(sum(math.exp(s - top) for s in scores))
        entropy.append(log_sum - scores[labels[i]])
    own = unit([theta[i, labels[i]] for i in rows])
    z = unit(z)
    terms = []
    for anchors, others in ((z, own), (own, z)):
        losses = []
        for i in rows:
            positives = [p for p in rows if labels[p] == labels[i] and ids[p] != ids[i]]
            others_of_i = [a for a in rows if ids[a] != ids[i] or (own_pair and a == i)]
            if not positives:
                continue
            s = {a: float(anchors[i] @ others[a]) / temperature for a in others_of_i}
            top = max(s.values())
            log_sum = top + math.log(sum(math.exp(v - top) for v in s.values()))
            losses.append(mean([log_sum - s[p] for p in positives]))
        terms.append(mean(losses))
    return mean(entropy), *terms


@batches
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("own_pair", [False, True])
def test_equals_the_equations(labels, ids, temperature, own_pair):
    sentence, theta = states(labels, ids)
    objective = build(
        options=f"weight=0.3,include_own_pair={'yes' if own_pair else 'no'}",
        temperature=temperature,
    )
    loss, scalars = objective(batch_of(sentence, theta, labels, ids))
    entropy, first, second = oracle(sentence, theta, labels, ids, temperature, 0.3, own_pair)
    assert float(loss) == pytest.approx(entropy + 0.3 * (first + second), rel=1e-9)
    assert scalars["cross_entropy"] == pytest.approx(entropy, rel=1e-9)
    assert scalars["dual_z"] == pytest.approx(first, rel=1e-9, abs=1e-12)
    assert scalars["dual_theta"] == pytest.approx(second, rel=1e-9, abs=1e-12)
    alone, _ = build("dualcl_no_dual")(batch_of(sentence, theta, labels, ids))
    assert float(alone) == pytest.approx(entropy, rel=1e-9)


@batches
@pytest.mark.parametrize("temperature", [0.01, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_finite_with_finite_gradient(labels, ids, temperature, dtype):
    drawn = states(labels, ids)
    for inputs in (drawn, [torch.ones_like(part) for part in drawn]):
        sentence, theta = (part.to(dtype).requires_grad_() for part in inputs)
        loss, scalars = build(temperature=temperature)(batch_of(sentence, theta, labels, ids))
        loss.backward()
        assert loss.dim() == 0 and bool(torch.isfinite(loss))
        for part in (sentence, theta):
            assert part.grad is not None and bool(torch.isfinite(part.grad).all())
        assert all(isinstance(value, float) for value in scalars.values())


def test_collapse_costs_the_log_of_the_candidates():
    labels = [0, 0, 0, 1, 1, 1]
    batch = batch_of(torch.ones(6, 4).double(), torch.ones(6, 2, 4).double(), labels)
    scalars = build()(batch)[1]
    assert scalars["dual_z"] == pytest.approx(math.log(5))
    assert scalars["cross_entropy"] == pytest.approx(math.log(2))
    scalars = build(options="include_own_pair=yes")(batch)[1]
    assert scalars["dual_theta"] == pytest.approx(math.log(6))


@pytest.mark.parametrize("name", ["dualcl", "dualcl_no_dual"])
def test_order_of_rows_and_labels_does_not_matter(name):
    labels, ids = [0, 0, 1, 1, 2, 2, 0, 1], [0, 1, 2, 3, 4, 5, 1, 7]
    sentence, theta = states(labels, ids)
    theta = theta[:, :3]
    expected = float(build(name)(batch_of(sentence, theta, labels, ids))[0])
    order = [6, 3, 1, 0, 7, 5, 4, 2]
    moved = batch_of(
        sentence[order], theta[order], [labels[i] for i in order], [ids[i] for i in order]
    )
    assert float(build(name)(moved)[0]) == pytest.approx(expected, rel=1e-12)
    rename = [2, 0, 1]
    renamed = torch.empty_like(theta)
    renamed[:, rename] = theta
    turned = batch_of(sentence, renamed, [rename[k] for k in labels], ids)
    assert float(build(name)(turned)[0]) == pytest.approx(expected, rel=1e-12)
    for ensemble in ("none", "hard", "soft"):
        objective = build(name, f"ensemble={ensemble},bank=test")
        plain = objective.class_scores(EncoderOutput.of_sentences(sentence, theta))
        other = objective.class_scores(EncoderOutput.of_sentences(sentence, renamed))
        assert torch.allclose(other[:, rename], plain, atol=1e-12)


def test_gradcheck():
    sentence, theta = (part.requires_grad_() for part in states([0, 0, 0, 1, 1, 2], d=3))
    objective = build(temperature=0.3)
    assert torch.autograd.gradcheck(
        lambda z, t: objective(batch_of(z, t, [0, 0, 0, 1, 1, 2]))[0], (sentence, theta)
    )


def test_both_representations_learn_from_both_terms():
    sentence, theta = (part.requires_grad_() for part in states([0, 0, 1, 1]))
    objective = build()
    dual = objective(batch_of(sentence, theta, [0, 0, 1, 1]))[0]
    dual -= build("dualcl_no_dual")(batch_of(sentence, theta, [0, 0, 1, 1]))[0]
    dual.backward()
    assert bool((sentence.grad.abs().sum(dim=1) > 0).all())
    touched = theta.grad.abs().sum(dim=2) > 0
    # Only the classifier of a row's own class is contrasted.
    assert touched.tolist() == [[True, False, False]] * 2 + [[False, True, False]] * 2


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("rows", [1, 7])
def test_ensembles_are_what_the_paper_says(kind, rows, monkeypatch):
    monkeypatch.setattr("superconext.objectives.dualcl._CHUNK", 3 * 4 * rows)
    z, bank = random_vectors(rows, 3), random_vectors(11 * 4, 3, seed=1).reshape(11, 4, 3)
    found = ensembled_scores(z, bank, kind)
    assert torch.allclose(found.exp().sum(dim=1), torch.ones(rows).double())
    for i in range(rows):
        votes, shares = [0] * 4, [0.0] * 4
        for j in range(11):
            scores = [float(bank[j, k] @ z[i]) for k in range(4)]
            total = sum(math.exp(s) for s in scores)
            votes[scores.index(max(scores))] += 1
            for k in range(4):
                shares[k] += math.exp(scores[k]) / total / 11
        if kind == "soft":
            assert np.allclose(found[i].exp().numpy(), shares)
        else:
            best = max(range(4), key=lambda k: (votes[k], shares[k]))
            assert int(found[i].argmax()) == best
            ranks = sorted(range(4), key=lambda k: (votes[k], shares[k]))
            assert found[i].argsort().tolist() == ranks


def test_a_tied_vote_falls_to_the_soft_share():
    bank = torch.tensor([[[1.0], [0.0]], [[0.0], [3.0]]])
    z = torch.ones(1, 1)
    assert int(ensembled_scores(z, bank, "hard").argmax()) == 1
    flipped = ensembled_scores(z, bank.flip(1), "hard")
    assert int(flipped.argmax()) == 0


@pytest.mark.parametrize("count", [0, 1, 5, 10, 99])
def test_a_bank_has_each_class_by_its_share(count):
    labels = np.array([0, 1, 0, 1, 0, 0, 2, 0, 0, 1])
    rows = spread_rows(labels, count)
    assert len(rows) == len(set(rows.tolist())) == (count if 0 < count < 10 else 10)
    if count == 5:
        assert np.bincount(labels[rows], minlength=3).tolist() in ([3, 1, 1], [3, 2, 0])


def test_bank_of_the_rows_predicted_together_is_the_papers():
    sentence, theta = states([0, 1, 0, 1, 1])
    objective = build(options="ensemble=soft,bank=test")
    assert objective.scores_together
    found = objective.class_scores(EncoderOutput.of_sentences(sentence, theta))
    assert torch.equal(found, ensembled_scores(sentence, theta, "soft"))
    assert not build(options="ensemble=soft").scores_together
    assert not build(options="bank=test").scores_together


def test_the_bank_is_made_at_the_end_and_loaded_with_the_weights():
    labels = torch.tensor([0, 1] * 300)
    theta = random_vectors(600 * 2, 4).reshape(600, 2, 4).float()
    asked = []

    def encode(rows):
        asked.append(len(rows))
        return EncoderOutput.of_sentences(torch.zeros(len(rows), 4), theta[rows])

    objective = build(options="ensemble=soft,bank_size=500")
    objective.end_training(encode, labels)
    assert sum(asked) == 500 and max(asked) <= 256 and objective.bank.shape == (500, 2, 4)
    assert torch.equal(objective.bank, theta[spread_rows(labels.numpy(), 500)])
    again = build(options="ensemble=soft,bank_size=500")
    again.load_state_dict(objective.state_dict())
    assert torch.equal(again.bank, objective.bank)
    for options in (None, "ensemble=soft,bank=test"):
        plain = build(options=options)
        plain.end_training(encode, labels)
        assert plain.bank.numel() == 0 and sum(asked) == 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ensemble=both", "ensemble = 'both': expected one of none, hard, soft"),
        ("bank=dev", "bank = 'dev': expected one of train, test"),
        ("bank_size=-1", "bank_size = -1: expected a value of at least 0"),
        ("class_tokens=letters", "class_tokens = 'letters': expected one of words, random"),
        ("weight=-1", "weight = -1.0: expected a value of at least 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build(options=options)
    if not options.startswith("weight"):
        with pytest.raises(ConfigError, match=message):
            build("dualcl_no_dual", options)


def test_the_ablation_has_no_weight():
    with pytest.raises(ConfigError, match="no option 'weight'"):
        build("dualcl_no_dual", "weight=0.5")


def test_declares_what_the_paper_trains_on():
    for name in ("dualcl", "dualcl_no_dual"):
        kind = objective_class(name)
        assert kind.needs_class_tokens and not kind.uses_projection and kind.batches == "shuffled"
        assert not list(build(name).parameters()), "the classifier is generated"
    assert build().weight == 0.5 and build().temperature == 0.1


WORDS = [
    ["مليح بزاف", "فرحان اليوم", "زوين بزاف", "فرحان بزاف مليح"],
    ["خايب بزاف", "مقلق اليوم", "عيان بزاف", "مقلق خايب بزاف"],
    ["واش كاين", "فين راك", "شحال الساعة", "واش راك فين"],
]


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path_factory.getbasetemp() / "vectors"))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("name", "options", "members"),
    [
        ("dualcl", None, 2),
        ("dualcl", "ensemble=soft", 1),
        ("dualcl", "ensemble=soft,bank=test", 1),
        ("dualcl_no_dual", "ensemble=hard,bank_size=10", 1),
    ],
)
def test_learns_is_saved_and_predicts_alike_again(name, options, members, tmp_path):
    texts = [text for _ in range(6) for part in WORDS for text in part]
    labels = [label for _ in range(6) for label in ("pos", "neg", "ask") for _ in range(4)]
    model = SuperConTextClassifier(
        objective=name, options=options, epochs=25, batch_size=16, learning_rate=0.03,
        hidden_size=8, vector_dimension=8, word_dropout=0.0, members=members,
    ).fit(texts, labels)  # fmt: skip
    own = model.model_.answer(texts).native
    assert np.allclose(own.sum(axis=1), 1.0)
    assert (model.classes_[own.argmax(axis=1)] == labels).mean() > 0.9
    model.save(tmp_path / "run")
    again = load(tmp_path / "run").model_
    assert np.allclose(again.answer(texts).native, own, atol=1e-6)
    assert np.allclose(again.probabilities(texts), model.predict_proba(texts), atol=1e-6)
    few = again.answer(texts[:3]).native
    # Only a bank of the rows predicted makes an answer depend on the company.
    assert np.allclose(few, own[:3], atol=1e-6) == (options is None or "bank=test" not in options)


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("name", ["dualcl", "dualcl_no_dual"])
def test_class_tokens_start_at_the_words_of_their_labels(name):
    """One label is a word of the training text, one two words of it, one none of any."""
    starts = {}

    class Look(Callback):
        def on_train_begin(self, trainer):
            rows, words = trainer.encoder.class_rows, trainer.encoder.embedding.words
            starts[options] = rows.detach().clone(), words.detach().clone()

    texts = [text for part in WORDS for text in part]
    labels = [label for label in ("مليح", "unheard_of", "واش راك") for _ in range(4)]
    for options in (None, "class_tokens=words", "class_tokens=random"):
        model = SuperConTextClassifier(
            objective=name, options=options, epochs=1, batch_size=8, hidden_size=4,
            vector_dimension=8, keep="last", callbacks=[Look()],
        ).fit(texts, labels)  # fmt: skip
    index = list(model.classes_).index
    vocabulary = model.model_.indexer.vocabulary
    rows, words = starts["class_tokens=words"]
    assert torch.equal(starts[None][0], rows), "words are the default"
    assert torch.equal(rows[index("مليح")], words[vocabulary.index("مليح")])
    both = [words[vocabulary.index(word)] for word in ("واش", "راك")]
    assert torch.allclose(rows[index("واش راك")], torch.stack(both).mean(dim=0), atol=1e-7)
    random = starts["class_tokens=random"][0]
    assert torch.equal(rows[index("unheard_of")], random[index("unheard_of")])
    assert not torch.equal(rows[index("مليح")], random[index("مليح")])
