"""LaCon: its terms and their sum against loops, what it needs, odd batches."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.lacon import LaCon, Options, instance_centred, label_spread
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.label_batches import LENGTHS, arrays, rename_classes, token_batch
from tests.objectives.label_oracles import attended, cosine, lacon_terms, mlp
from tests.objectives.test_all_objectives import Largest


def expected_loss(objective, instances, labels):
    """ICL, LCL, LER and their sum from the definition, for instances after g."""
    options = objective.options
    embeddings = arrays(objective)["labels"]
    icl, lcl, ler = lacon_terms(
        instances,
        embeddings,
        labels,
        objective.temperature,
        options.heads,
        options.lcl,
        options.icl,
    )
    return icl, lcl, ler, icl + lcl + options.regulariser * ler


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("temperature", [1.0, 0.1])
@pytest.mark.parametrize(
    "options",
    [
        "heads=1,lcl=stable",
        "heads=4,lcl=stable,icl=sum,regulariser=0.7",
        "heads=2,lcl=faithful",
        "heads=4,lcl=none,layers=0",
        "heads=2,layers=1",
    ],
)
def test_equals_the_definition(labels, temperature, options):
    objective = build("lacon", options, classes=50, d=8, temperature=temperature)
    vectors = random_vectors(len(labels), 8)
    loss, scalars = objective(make_batch(vectors, labels))
    instances = mlp(vectors.numpy(), arrays(objective), "projection", objective.options.layers)
    icl, lcl, ler, total = expected_loss(objective, instances, labels)
    assert scalars["icl"] == pytest.approx(icl, rel=1e-9)
    assert scalars["lcl"] == pytest.approx(lcl, rel=1e-8, abs=1e-12)
    assert scalars["ler"] == pytest.approx(ler, rel=1e-9)
    assert float(loss.detach()) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize(
    "options", ["", "width=1,kernel=shared", "width=3", "width=9,heads=2,kernel=shared"]
)
def test_fusion_equals_the_definition(options):
    labels = [0, 1, 2, 0, 1, 1]
    objective = build("lacon", f"fusion=true,{options}", d=8, temperature=0.2)
    batch = token_batch(labels, LENGTHS)
    loss, _ = objective(batch)
    weights = arrays(objective)
    fused = attended(
        batch.token_states.numpy(),
        LENGTHS,
        weights["labels"],
        weights["attention.weight"],
        weights["attention.bias"],
    )
    instances = mlp(fused, weights, "projection", 3)
    assert float(loss.detach()) == pytest.approx(
        expected_loss(objective, instances, labels)[3], rel=1e-8
    )
    scores = objective.class_scores(EncoderOutput(batch.token_states, batch.mask, batch.sentence))
    expected = [[cosine(h, e) / 0.2 for e in weights["labels"]] for h in instances]
    assert scores.detach().numpy() == pytest.approx(np.array(expected), rel=1e-9)


def test_vanilla_predicts_by_cosine_over_the_whole_width():
    objective = build("lacon", "heads=4", d=8, temperature=0.1)
    vectors = random_vectors(6, 8)
    batch = make_batch(vectors, [0, 1, 2, 0, 1, 2])
    scores = objective.class_scores(EncoderOutput.of_sentences(vectors))
    instances = mlp(vectors.numpy(), arrays(objective), "projection", 3)
    expected = [[cosine(h, e) / 0.1 for e in arrays(objective)["labels"]] for h in instances]
    assert scores.detach().numpy() == pytest.approx(np.array(expected), rel=1e-9)
    right = np.argmax(expected, axis=1) == batch.labels.numpy()
    assert objective(batch)[1]["batch_accuracy"] == pytest.approx(right.mean())


def test_tells_the_cosines_with_own_and_other_labels():
    objective = build("lacon", "layers=0,heads=1", classes=2, d=2)
    with torch.no_grad():
        objective.labels.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.5]]))
    vectors = torch.tensor([[2.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    scalars = objective(make_batch(vectors, [0, 1]))[1]
    assert scalars["positive_similarity"] == pytest.approx(0.0)
    assert scalars["negative_similarity"] == pytest.approx(0.0)
    assert scalars["batch_accuracy"] == 0.5
    assert scalars["ler"] == pytest.approx(math.e - 1)


def test_label_spread_is_between_its_bounds():
    one = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    assert float(label_spread(one)) == 0.0
    assert float(label_spread(torch.cat([one, 3 * one]))) == pytest.approx(math.e**2 - 1)
    assert float(label_spread(torch.cat([one, -one]))) == pytest.approx(0.0, abs=1e-12)


def test_faithful_goes_below_zero_and_stable_does_not():
    """Four rows on their label and four on the other: -2 / temperature + log 4 a row, summed."""
    vectors = torch.tensor([[1.0, 0.0]] * 4 + [[-1.0, 0.0]] * 4, dtype=torch.float64)
    labels = [0] * 4 + [1] * 4

    def term(lcl):
        objective = build("lacon", f"layers=0,heads=1,lcl={lcl}", classes=2, d=2)
        with torch.no_grad():
            objective.labels.copy_(vectors[[0, 4]])
        return objective(make_batch(vectors, labels))[1]["lcl"]

    assert term("faithful") == pytest.approx(4 * (math.log(4) - 2 / 0.1))
    assert 0 <= term("stable") < 1e-7


@pytest.mark.parametrize("lcl", ["stable", "faithful"])
def test_label_centred_term_is_zero_in_a_batch_of_one_class(lcl):
    objective = build("lacon", f"lcl={lcl}", d=8)
    assert objective(make_batch(random_vectors(4, 8), [1, 1, 1, 1]))[1]["lcl"] == 0.0


def test_collapse_gives_the_log_of_the_candidates():
    labels = [0, 0, 0, 1, 1, 2]
    objective = build("lacon", "layers=0", d=8)
    with torch.no_grad():
        objective.labels.fill_(1.0)
    scalars = objective(make_batch(torch.ones(6, 8, dtype=torch.float64), labels))[1]
    assert scalars["icl"] == pytest.approx(math.log(3))
    others = [3, 4, 5]
    assert scalars["lcl"] == pytest.approx(sum(math.log(1 + n) for n in others) / 3)


@pytest.mark.parametrize("lcl", ["stable", "faithful"])
def test_gradcheck(lcl):
    objective = build("lacon", f"heads=2,lcl={lcl},layers=2", d=4, temperature=0.5)
    vectors = random_vectors(5, 4).requires_grad_()

    def loss(x, *_):
        return objective(make_batch(x, [0, 0, 1, 1, 2]))[0]

    assert torch.autograd.gradcheck(loss, (vectors, *objective.parameters()))


@pytest.mark.parametrize("kernel", ["shared", "full"])
def test_gradcheck_of_fusion(kernel):
    objective = build("lacon", f"fusion=yes,heads=1,kernel={kernel},width=3", d=4, temperature=0.5)
    batch = token_batch([0, 1, 2], [2, 1, 3], d=4)

    def loss(x, *_):
        return objective(dataclasses.replace(batch, token_states=x))[0]

    states = batch.token_states.requires_grad_()
    assert torch.autograd.gradcheck(loss, (states, *objective.parameters()))


@pytest.mark.parametrize("fusion", ["no", "yes"])
@pytest.mark.parametrize("temperature", [0.01, 1.0])
@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
def test_odd_batches_have_a_finite_gradient(labels, temperature, fusion):
    for lcl in ("stable", "faithful"):
        objective = build(
            "lacon", f"fusion={fusion},lcl={lcl}", classes=50, d=8, temperature=temperature
        ).float()
        drawn = token_batch(labels, [1 + i % 4 for i in range(len(labels))])
        same = [torch.ones_like(drawn.sentence), torch.ones_like(drawn.token_states)]
        for sentence, states in ([drawn.sentence, drawn.token_states], same):
            for dtype in (torch.float32, torch.bfloat16):
                sentence = sentence.detach().to(dtype).requires_grad_()
                states = states.detach().to(dtype).requires_grad_()
                loss, scalars = objective(
                    dataclasses.replace(drawn, sentence=sentence, token_states=states)
                )
                loss.backward()
                grad = states.grad if fusion == "yes" else sentence.grad
                assert bool(torch.isfinite(loss)) and bool(torch.isfinite(grad).all())
                assert all(isinstance(value, float) for value in scalars.values())
                assert all(bool(torch.isfinite(p.grad).all()) for p in objective.parameters())


def test_order_of_rows_does_not_matter():
    labels = [0, 0, 1, 2, 2, 1]
    for fusion in ("no", "yes"):
        objective = build("lacon", f"fusion={fusion}", d=8)
        batch = token_batch(labels, LENGTHS)
        order = torch.tensor([4, 2, 0, 5, 1, 3])
        turned = dataclasses.replace(
            batch,
            sentence=batch.sentence[order],
            labels=batch.labels[order],
            token_states=batch.token_states[order],
            mask=batch.mask[order],
        )
        values = [float(objective(b)[0].detach()) for b in (batch, turned)]
        assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("options", ["", "fusion=yes", "fusion=yes,kernel=shared"])
def test_renaming_the_classes_renames_the_scores(options):
    labels, rename = [0, 0, 1, 2, 2, 1], torch.tensor([2, 0, 1])
    objective = build("lacon", options, d=8)
    batch = token_batch(labels, LENGTHS)
    output = EncoderOutput(batch.token_states, batch.mask, batch.sentence)
    before = float(objective(batch)[0].detach()), objective.class_scores(output).detach()
    rename_classes(objective, rename)
    renamed = dataclasses.replace(batch, labels=rename[batch.labels])
    after = float(objective(renamed)[0].detach()), objective.class_scores(output).detach()
    assert after[0] == pytest.approx(before[0], rel=1e-12)
    assert torch.allclose(after[1][:, rename], before[1], rtol=1e-12)


@pytest.mark.parametrize("kernel", ["shared", "full"])
def test_padding_changes_nothing(kernel):
    objective = build("lacon", f"fusion=yes,width=7,kernel={kernel}", d=8)
    labels = [0, 1, 2, 0, 1, 2]
    tight = token_batch(labels, LENGTHS)
    loose = token_batch(labels, LENGTHS, width=15, filler=float("nan"))
    losses, scores = [], []
    for batch in (tight, loose):
        losses.append(float(objective(batch)[0].detach()))
        output = EncoderOutput(batch.token_states, batch.mask, batch.sentence)
        scores.append(objective.class_scores(output).detach())
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    assert torch.allclose(scores[0], scores[1], rtol=1e-12)
    for i, length in enumerate(LENGTHS):
        alone = EncoderOutput(
            tight.token_states[i : i + 1, :length],
            tight.mask[i : i + 1, :length],
            tight.sentence[i : i + 1],
        )
        assert torch.allclose(objective.class_scores(alone)[0], scores[0][i], rtol=1e-12)


@pytest.mark.parametrize("coordinate", range(8))
def test_a_head_sees_both_directions_of_the_encoder(coordinate):
    """Coordinates 0 to 3 are the forward half, 4 to 7 the backward: head k has k and k + 4."""
    vectors, labels = random_vectors(4, 8), torch.tensor([0, 1, 2, 0])
    embeddings = random_vectors(3, 8, seed=1)
    before = instance_centred(vectors, embeddings, labels, 0.1, heads=4)
    vectors[:, coordinate] += 1.0
    moved = instance_centred(vectors, embeddings, labels, 0.1, heads=4) != before
    assert moved.nonzero().flatten().tolist() == [coordinate % 4]


def test_options_and_declarations():
    objective = build("lacon", d=8)
    assert objective.options == Options(False, 4, "mean", "stable", 0.1, 3, width=5, kernel="full")
    assert (objective.batches, objective.uses_projection) == ("balanced", False)
    assert objective.needs_token_states is False
    assert build("lacon", "fusion=true", d=8).needs_token_states is True
    assert LaCon.needs_token_states is False
    assert len([name for name in arrays(objective) if name.startswith("projection")]) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("heads=3", r"heads = 3 does not cut .* 8 dimensions .* expected one of 1, 2, 4,"),
        ("heads=8", "equal parts of at least 2"),
        ("heads=0", "heads = 0: expected a value of at least 1"),
        ("lcl=printed", "lcl = 'printed': expected one of stable, faithful, none"),
        ("icl=max", "icl = 'max': expected one of mean, sum"),
        ("regulariser=-1", "regulariser = -1.0: expected a value of at least 0"),
        ("layers=-1", "layers = -1"),
        ("width=4", "width = 4; expected an odd number"),
        ("kernel=deep", "kernel = 'deep': expected one of full, shared"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build("lacon", options, d=8)


def test_fusion_without_token_states_is_refused():
    with pytest.raises(TrainingError, match="lacon: found a batch without token states"):
        build("lacon", "fusion=yes", d=8)(make_batch(random_vectors(2, 8), [0, 1]))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lacon", None),
        ("lacon", "fusion=yes,kernel=full"),
        ("leam", "hidden=6"),
        ("lsan", "attention=5"),
    ],
)
def test_needs_less_than_the_square_of_the_batch(name, options):
    objective = build(name, options, d=8)
    batch = token_batch([0, 1, 2] * 20, [4] * 60)
    states = batch.token_states.requires_grad_()
    with Largest() as largest:
        objective(batch)[0].backward()
    assert 0 < largest.size <= states.numel() < 60**2
