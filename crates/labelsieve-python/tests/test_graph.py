"""`knn_graph` against numpy, scipy and scikit-learn."""

import numpy as np
import pytest
from conftest import unit

from labelsieve import knn_graph

sparse = pytest.importorskip("scipy.sparse", reason="knn_graph returns matrices of scipy")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    rows = unit(rng.standard_normal((300, 16)))
    rows[7] = rows[3]  # duplicates must not be taken for the row itself
    return rows


def test_neighbours_agree_with_a_full_sort(rows):
    graph = knn_graph(rows, k=9)
    similarity = rows.astype(np.float64) @ rows.astype(np.float64).T
    np.fill_diagonal(similarity, -np.inf)
    for i in range(len(rows)):
        stored = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
        expected = np.lexsort((np.arange(len(rows)), -similarity[i]))[:9]
        np.testing.assert_array_equal(stored, expected)
    np.testing.assert_allclose(graph.data[:9], np.sort(similarity[0])[::-1][:9], atol=1e-6)


def test_distances_follow_the_convention_of_cleanlab_and_agree_with_scikit_learn(rows):
    neighbors = pytest.importorskip("sklearn.neighbors")
    graph = knn_graph(rows, k=5, mode="distance")
    assert sparse.issparse(graph) and graph.format == "csr" and graph.shape == (300, 300)
    assert (np.diff(graph.indptr) == 5).all()
    lists, distances = graph.indices.reshape(300, 5), graph.data.reshape(300, 5)
    assert (lists != np.arange(300)[:, None]).all(), "no row is its own neighbour"
    assert (np.diff(distances, axis=1) >= 0).all() and (distances >= 0).all()
    theirs = neighbors.NearestNeighbors(n_neighbors=5, metric="cosine").fit(rows).kneighbors_graph(mode="distance")
    np.testing.assert_allclose(np.sort(theirs.data.reshape(300, 5), axis=1), distances, atol=1e-6)
    assert distances[3, 0] == pytest.approx(0, abs=1e-6) and lists[3, 0] == 7


def test_affinity_is_symmetric_and_reciprocal(rows, golden):
    affinity = knn_graph(rows, k=12, mode="affinity")
    assert abs(affinity - affinity.T).max() == 0 and affinity.diagonal().max() == 0 and affinity.data.min() > 0
    for case in golden("graph")["cases"]:
        features = np.array(golden("graph")["features"], np.float32)
        found = knn_graph(features, k=case["neighbours"], mode="affinity") + sparse.identity(len(features))
        found = sparse.diags(1 / np.asarray(found.sum(axis=1)).ravel()) @ found
        np.testing.assert_allclose(found.toarray(), case["a_tilde"], atol=1e-5)


def test_fewer_rows_than_neighbours_give_all_others():
    assert knn_graph(np.eye(3), k=50).nnz == 6
    assert knn_graph(np.eye(1), k=50).nnz == 0


def test_bad_arguments_are_refused(rows):
    with pytest.raises(ValueError, match="mode: expected similarity, distance or affinity, found `cosine`"):
        knn_graph(rows, mode="cosine")
    with pytest.raises(ValueError, match="k: expected a positive integer, found 0"):
        knn_graph(rows, k=0)
