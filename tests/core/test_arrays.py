"""Arrays of a safetensors file."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from superconext.core.arrays import read_arrays, write_arrays


@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<f2", "<i8", "<i4"])
def test_whatever_the_order_in_memory_the_same_comes_back(dtype, tmp_path):
    rows = np.arange(24).reshape(4, 6).astype(dtype)
    arrays = {
        "rows": rows,
        "columns first": np.asfortranarray(rows),
        "turned": rows.T,
        "every other": rows[::2, ::-1],
        "one": rows[0, 0].reshape(()),
        "none": rows[:0],
    }
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, arrays)
    for read in (read_arrays, load_file):
        found = read(path)
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype and np.array_equal(found[name], array), name


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, {"a": np.ones(3)})
    with pytest.raises(Exception, match="object"):
        write_arrays(path, {"a": np.array([object()])})
    assert np.array_equal(read_arrays(path)["a"], np.ones(3))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
