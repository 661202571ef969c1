"""Which arrays are accepted as features, and which are copied."""

import subprocess
import sys

import numpy as np
import pytest

import labelsieve
from labelsieve import _labelsieve, relevance


@pytest.fixture(scope="module")
def rows():
    return labelsieve.normalize(np.random.default_rng(1).standard_normal((120, 8)))


def test_float32_in_c_order_is_handed_over_as_it_is(rows):
    from labelsieve._arrays import as_rows

    assert as_rows(rows) is rows or np.shares_memory(as_rows(rows), rows)
    for copied in [rows[:, ::-1], np.asfortranarray(rows), rows.astype(np.float64), rows.astype(">f4")]:
        assert not np.shares_memory(as_rows(copied), copied)
        assert as_rows(copied).flags.c_contiguous


def test_unit_rows_are_used_in_place_and_others_give_the_same_from_a_copy(rows):
    _, in_place = _labelsieve.normalize(rows)
    assert in_place
    numpy_normalised = rows * 3 / np.linalg.norm(rows * 3, axis=1, keepdims=True)
    assert _labelsieve.normalize(numpy_normalised)[1], "what numpy normalised counts as normalised"
    _, in_place = _labelsieve.normalize(rows * 2)
    assert not in_place
    np.testing.assert_allclose(relevance(rows[:2], rows[2:]), relevance(2 * rows[:2], 2 * rows[2:]), atol=1e-4)


MEMORY = """
import numpy as np
import labelsieve
def peak():  # not that of getrusage, which a child inherits from the process that tests
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024
rows = np.zeros((300_000, 256), np.float32)  # 293 MiB
rows[:, 0] = {first}
labelsieve.relevance(rows[:5], rows[:1000], "similarity")
before = peak()
found = labelsieve.relevance(rows[:5], rows, "similarity")
assert len(found) == len(rows) and found.min() > 0.99
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux counts it")
def test_a_large_array_of_unit_rows_is_not_copied():
    def growth(first):
        code = MEMORY.format(first=first)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert growth(1.0) < 100, "MiB: unit rows are read where they are"
    assert growth(2.0) > 200, "MiB: others are normalised into one copy, or this test measures nothing"


def test_other_types_of_numbers_are_accepted(rows):
    expected = relevance(rows[:2], rows[2:], "similarity")
    for dtype, tolerance in [(np.float64, 1e-6), (np.float16, 1e-3), (">f4", 0), (np.longdouble, 1e-6)]:
        cast = rows.astype(dtype)
        np.testing.assert_allclose(relevance(cast[:2], cast[2:], "similarity"), expected, atol=tolerance)
    whole = np.array([[3, 4], [4, 3]])
    np.testing.assert_allclose(relevance(whole[:1], whole, "similarity"), [1.0, 0.98], atol=1e-6)
    np.testing.assert_allclose(relevance(rows[:2].tolist(), rows[2:].tolist(), "similarity"), expected, atol=1e-6)


def test_unaligned_and_read_only_arrays_are_accepted(rows):
    raw = bytearray(rows.nbytes + 1)
    unaligned = np.frombuffer(raw, np.float32, offset=1, count=rows.size).reshape(rows.shape)
    assert not unaligned.flags.aligned
    unaligned[:] = rows
    frozen = rows.copy()
    frozen.flags.writeable = False
    expected = relevance(rows[:2], rows[2:], "similarity")
    np.testing.assert_array_equal(relevance(unaligned[:2], unaligned[2:], "similarity"), expected)
    np.testing.assert_array_equal(relevance(frozen[:2], frozen[2:], "similarity"), expected)


def test_torch_tensors_are_accepted(rows):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    expected = relevance(rows[:2], rows[2:])
    tensor = torch.tensor(rows)
    np.testing.assert_array_equal(relevance(tensor[:2], tensor[2:]), expected)
    np.testing.assert_array_equal(relevance(tensor[:2].clone().requires_grad_(), tensor[2:]), expected)
    half = tensor.to(torch.bfloat16)
    np.testing.assert_allclose(relevance(half[:2], half[2:], "similarity"), relevance(rows[:2], rows[2:], "similarity"), atol=1e-2)
    with pytest.raises(ValueError, match="clean: expected a tensor on the CPU, found one on meta"):
        relevance(torch.empty(2, 8, device="meta"), tensor)


def test_data_frames_and_arrow_tables_are_accepted(rows):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    expected = relevance(rows[:2], rows[2:])
    frame = pandas.DataFrame(rows)
    np.testing.assert_array_equal(relevance(frame[:2], frame[2:]), expected)
    vectors = pandas.Series(list(rows))
    np.testing.assert_array_equal(relevance(vectors[:2], vectors[2:]), expected)
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), rows.shape[1])
    np.testing.assert_array_equal(relevance(lists[:2], lists[2:]), expected)
    table = pyarrow.table({"embedding": pyarrow.chunked_array([lists[:50], lists[50:]])})
    np.testing.assert_array_equal(relevance(table[:2], table[2:]), expected)
    columns = pyarrow.table({f"f{i}": rows[:, i] for i in range(rows.shape[1])})
    np.testing.assert_array_equal(relevance(columns[:2], columns[2:]), expected)


def test_sparse_matrices_are_refused_with_a_hint(rows):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"noisy: sparse data was passed.*\nhint: use X.toarray"):
        relevance(rows[:2], sparse.csr_matrix(rows))
