"""RowAdam against torch's own Adam in float64, and what it does not touch."""

import copy
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.training.optimizer import RowAdam, clip_gradients


@pytest.fixture(autouse=True)
def lazy_tables(monkeypatch):
    monkeypatch.setattr("superconext.training.optimizer.LAZY_FROM", 0)


def sparse(rows, values, shape):
    index = torch.tensor([rows], dtype=torch.int64)
    return torch.sparse_coo_tensor(index, values, shape, check_invariants=False)


def gradient(step, rows, width=3, scale=1.0):
    """Gradients of one sign a row and step, none near zero: epsilon would weigh there, which the
    steps that are made up for leave out."""
    generator = torch.Generator().manual_seed(step)
    sizes = 0.1 + torch.rand(len(rows), width, generator=generator, dtype=torch.float64)
    signs = torch.tensor([(-1.0) ** (row + step * step // 3) for row in rows], dtype=torch.float64)
    return scale * signs[:, None] * sizes


def train(batches, size=12, scale=1.0, flush=(), rate=0.01):
    """A table trained by rows, and by torch's Adam on gradients of all rows."""
    start = torch.randn(size, 3, generator=torch.Generator().manual_seed(99), dtype=torch.float64)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    lazy, dense = RowAdam([ours], rate), torch.optim.Adam([theirs], lr=rate)
    for step, rows in enumerate(batches):
        values = gradient(step, rows, scale=scale)
        read = torch.tensor(sorted(set(rows)), dtype=torch.int64)
        lazy.catch_up(ours, read)
        # What a forward pass would read is what Adam would show it.
        assert torch.allclose(ours[read], theirs[read], rtol=1e-7, atol=1e-9)
        ours.grad = sparse(rows, values, start.shape)
        theirs.grad = ours.grad.to_dense()
        lazy.step()
        dense.step()
        if step in flush:
            lazy.catch_up()
            assert torch.allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    lazy.catch_up()
    return (ours, lazy), (theirs, dense)


ROWS = st.lists(st.integers(0, 11), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(ROWS, min_size=1, max_size=30),
    st.sampled_from([1e-4, 1.0, 1e4]),
    st.sets(st.integers(0, 29), max_size=3),
)
def test_equals_adam_over_all_rows(batches, scale, flush):
    (ours, lazy), (theirs, dense) = train(batches, scale=scale, flush=flush)
    assert torch.allclose(ours, theirs, rtol=1e-7, atol=1e-8)
    state, whole = lazy.state[ours], dense.state[theirs]
    touched = sorted({row for rows in batches for row in rows})
    assert sorted(state["rows"].tolist()) == touched
    for name in ("exp_avg", "exp_avg_sq"):
        assert torch.allclose(state[name], whole[name][state["rows"]], rtol=1e-9, atol=1e-300)
    assert int(state["step"]) == len(batches)


def test_equals_adam_after_a_long_absence():
    batches = [[0, 1, 2]] + [[1]] * 700 + [[0, 1]] + [[1]] * 30 + [[2]]
    (ours, _), (theirs, _) = train(batches)
    assert torch.allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def test_equals_adam_when_the_rate_changes():
    start = torch.zeros(4, 2, dtype=torch.float64)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    lazy, dense = RowAdam([ours], 0.1), torch.optim.Adam([theirs], lr=0.1)
    for step, rows in enumerate([[0, 1], [1], [1, 2], [2], [0, 3]]):
        for optimizer in (lazy, dense):
            optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        lazy.catch_up(ours, torch.tensor(rows))
        ours.grad = sparse(rows, gradient(step, rows, 2), start.shape)
        theirs.grad = ours.grad.to_dense()
        lazy.step()
        dense.step()
    lazy.catch_up()
    assert torch.allclose(ours, theirs, rtol=1e-7)


def test_a_rate_of_0_moves_nothing():
    """As a schedule that ends there has it, while rows sit steps out."""
    start = torch.zeros(3, 2, dtype=torch.float64)
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    lazy, dense = RowAdam([ours], 0.1), torch.optim.Adam([theirs], lr=0.1)
    for step, (rows, rate) in enumerate([([0, 1], 0.1), ([1], 0.1), ([2], 0.0), ([2], 0.0)]):
        lazy.param_groups[0]["lr"] = dense.param_groups[0]["lr"] = rate
        ours.grad = sparse(rows, gradient(step, rows, 2), start.shape)
        theirs.grad = ours.grad.to_dense()
        lazy.step()
        dense.step()
        if step == 1:
            lazy.catch_up()
    lazy.catch_up()
    assert torch.allclose(ours, theirs, rtol=1e-7)


def test_one_step_is_the_definition():
    table = torch.nn.Parameter(torch.zeros(3, 1, dtype=torch.float64))
    optimizer = RowAdam([table], 0.5)
    table.grad = sparse([2], torch.tensor([[4.0]], dtype=torch.float64), (3, 1))
    optimizer.step()
    # m / (1 - b1) = 4, v / (1 - b2) = 16
    assert table.tolist() == [[0.0], [0.0], [pytest.approx(-0.5 * 4 / (4 + 1e-8))]]
    # A second step of another row: 0.9 m and 0.999 v of the first one's.
    table.grad = sparse([0], torch.tensor([[1.0]], dtype=torch.float64), (3, 1))
    optimizer.step()
    optimizer.catch_up()
    first = 0.9 * 0.1 * 4 / (1 - 0.9**2)
    second = 0.999 * 0.001 * 16 / (1 - 0.999**2)
    moved = 0.5 * first / (math.sqrt(second) + 1e-8)
    assert float(table.detach()[2, 0]) == pytest.approx(-0.5 * 4 / (4 + 1e-8) - moved, rel=1e-9)


def test_rows_that_never_had_a_gradient_have_no_state_and_do_not_move():
    table = torch.nn.Parameter(torch.randn(1000, 4))
    before = table.detach().clone()
    optimizer = RowAdam([table], 0.1)
    for step in range(5):
        rows = [3 * step, 3 * step + 1]
        table.grad = sparse(rows, torch.randn(2, 4), table.shape)
        optimizer.step()
    optimizer.catch_up()
    used = sorted({row for step in range(5) for row in (3 * step, 3 * step + 1)})
    moved = (table != before).any(dim=1).nonzero().flatten().tolist()
    assert moved == used
    state = optimizer.state_dict()["state"][0]
    assert state["rows"].tolist() == used
    assert state["exp_avg"].shape == state["exp_avg_sq"].shape == (10, 4)


def test_between_steps_rows_out_of_the_batch_are_not_walked_over():
    table = torch.nn.Parameter(torch.randn(6, 2))
    optimizer = RowAdam([table], 0.1)
    table.grad = sparse([0, 5], torch.ones(2, 2), table.shape)
    optimizer.step()
    held = table.detach().clone()
    table.grad = sparse([1], torch.ones(1, 2), table.shape)
    optimizer.step()
    assert torch.equal(table[[0, 2, 3, 4, 5]], held[[0, 2, 3, 4, 5]])
    optimizer.catch_up(table, torch.tensor([0, 2]))
    assert not torch.equal(table[0], held[0]) and torch.equal(table[5], held[5])
    once = table.detach().clone()
    optimizer.catch_up(table, torch.tensor([0]))
    assert torch.equal(table, once), "what is paid is paid once"


def test_dense_parameters_beside_it_are_adams():
    torch.manual_seed(0)
    weight, table = torch.nn.Parameter(torch.randn(5)), torch.nn.Parameter(torch.randn(4, 2))
    other = torch.nn.Parameter(weight.detach().clone())
    ours, theirs = RowAdam([weight, table], 0.1), torch.optim.Adam([other], lr=0.1)
    for step in range(3):
        weight.grad = other.grad = torch.randn(5, generator=torch.Generator().manual_seed(step))
        table.grad = sparse([1], torch.ones(1, 2), table.shape)
        ours.step()
        theirs.step()
        assert table.grad is not None and table.grad.is_sparse
    assert torch.allclose(weight, other, atol=1e-6)
    assert set(ours.state[weight]) == {"step", "exp_avg", "exp_avg_sq"}


def test_a_table_most_of_whose_rows_are_read_is_adams_to_the_bit(monkeypatch):
    monkeypatch.setattr("superconext.training.optimizer.LAZY_FROM", 6)
    (ours, lazy), (theirs, dense) = train([[0, 1, 5], [1], [], [4, 2, 2], [0]])
    fused = RowAdam([torch.nn.Parameter(theirs.detach().clone())], 0.01)
    assert set(lazy.state[ours]) == set(dense.state[theirs]) == {"step", "exp_avg", "exp_avg_sq"}
    assert torch.allclose(ours, theirs, rtol=1e-12)
    fused.load_state_dict(lazy.state_dict())
    table = fused.param_groups[0]["params"][0]
    table.grad = sparse([3], gradient(9, [3]), table.shape)  # few rows, and moments of all
    fused.step()
    assert set(fused.state[table]) == {"step", "exp_avg", "exp_avg_sq"} and table.grad.is_sparse


def test_a_table_without_gradient_stands_still():
    """As under Adam: no gradient, no step, and no time passes."""
    (ours, lazy), (theirs, dense) = train([[0, 1], [1]])
    for _ in range(3):
        ours.grad = theirs.grad = None
        lazy.step()
        dense.step()
    lazy.catch_up()
    assert torch.allclose(ours, theirs, rtol=1e-9)


def test_weights_decay_at_the_rate_of_the_step_and_only_where_they_have_a_gradient():
    moved, idle, plain = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    groups = [{"params": [moved, idle], "lr": 0.1, "decay": 0.5}, {"params": [plain], "lr": 0.1}]
    adam = RowAdam(groups)
    for rate in (1.0, 0.25):
        adam.set_rate(rate)
        moved.grad, plain.grad = torch.zeros(2), torch.zeros(2)
        adam.step()
    assert moved.tolist() == pytest.approx([0.95 * 0.9875] * 2)
    assert idle.tolist() == plain.tolist() == [1, 1]


def test_an_empty_batch_of_rows_still_is_a_step():
    (ours, _), (theirs, _) = train([[0, 1], [], [1]])
    assert torch.allclose(ours, theirs, rtol=1e-7)


def through_disk(state, folder):
    from safetensors.torch import load_file, save_file

    flat = {
        f"{index}.{name}": torch.as_tensor(value).contiguous()
        for index, held in state["state"].items()
        for name, value in held.items()
    }
    save_file(flat, folder / "state.safetensors")
    read = {**state, "state": {}}
    for name, value in load_file(folder / "state.safetensors").items():
        index, key = name.split(".")
        read["state"].setdefault(int(index), {})[key] = value
    return read


@pytest.mark.parametrize("stop", [1, 4, 9])
def test_goes_on_from_its_state_bit_for_bit(stop, tmp_path):
    start = torch.randn(30, 3)
    draw = np.random.default_rng(0)
    batches = [sorted(draw.choice(30, 6, replace=False).tolist()) for _ in range(12)]

    def run(table, optimizer, steps):
        for step in steps:
            rows = torch.tensor(batches[step])
            optimizer.catch_up(table, rows)
            values = gradient(step, batches[step]).float()
            table.grad = sparse(batches[step], values, table.shape)
            optimizer.step()
            if step % 3 == 0:  # as at an epoch's end
                optimizer.catch_up()

    whole = torch.nn.Parameter(start.clone())
    one = RowAdam([whole], 0.1)
    run(whole, one, range(stop))
    one.catch_up()
    halfway = torch.nn.Parameter(whole.detach().clone())
    two = RowAdam([halfway], 0.1)
    two.load_state_dict(through_disk(copy.deepcopy(one.state_dict()), tmp_path))
    assert two.state[halfway]["rows"].dtype == torch.int64
    run(whole, one, range(stop, 12))
    run(halfway, two, range(stop, 12))
    one.catch_up()
    two.catch_up()
    assert torch.equal(whole, halfway)
    for name, value in one.state_dict()["state"][0].items():
        assert torch.equal(value, two.state_dict()["state"][0][name]), name


def test_row_numbers_too_large_for_single_precision_survive(tmp_path):
    table = torch.nn.Parameter(torch.zeros(2**24 + 8, 1))
    optimizer = RowAdam([table], 0.1)
    rows = [2**24 + 1, 2**24 + 3]
    table.grad = sparse(rows, torch.ones(2, 1), table.shape)
    optimizer.step()
    again = RowAdam([table], 0.1)
    again.load_state_dict(through_disk(optimizer.state_dict(), tmp_path))
    assert again.state[table]["rows"].tolist() == rows


@pytest.mark.parametrize("limit", [0.5, 1e3, math.inf])
@pytest.mark.parametrize("rows", [[1, 4], [4, 1, 4]])
def test_clipping_counts_sparse_rows(rows, limit):
    torch.manual_seed(0)
    weight, table, idle = (torch.nn.Parameter(torch.zeros(s)) for s in ((3,), (6, 2), (2,)))
    weight.grad, values = torch.randn(3), torch.randn(len(rows), 2)
    table.grad = sparse(rows, values, table.shape)
    dense = table.grad.to_dense()
    expected = math.sqrt(float(weight.grad.square().sum() + dense.square().sum()))
    kept = weight.grad.clone()
    norm = clip_gradients([weight, table, idle], limit)
    assert float(norm) == pytest.approx(expected, rel=1e-6)
    factor = min(1.0, limit / (expected + 1e-6))
    assert torch.allclose(table.grad.to_dense(), factor * dense)
    assert torch.allclose(weight.grad, factor * kept) and idle.grad is None


def test_clipping_tells_of_what_is_not_finite():
    table = torch.nn.Parameter(torch.zeros(4, 1))
    table.grad = sparse([2], torch.tensor([[math.nan]]), table.shape)
    assert math.isnan(float(clip_gradients([table], 5.0)))


def test_torchs_compiler_is_not_imported():
    """It takes a second, which torch's own optimisers pay at their first step."""
    program = (
        "import sys, torch\n"
        "from superconext.training.optimizer import RowAdam\n"
        "weight = torch.nn.Parameter(torch.ones(3))\n"
        "adam = RowAdam([weight])\n"
        "(weight * weight).sum().backward()\n"
        "adam.step(), adam.zero_grad(), adam.load_state_dict(adam.state_dict())\n"
        "assert weight.grad is None and (weight < 1).all()\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert said.returncode == 0, said.stderr.decode()
