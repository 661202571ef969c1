#!/usr/bin/env python3
"""An independent computation of the prototype rows of `labelsieve-bench photos`, on the same features and episodes.

    labelsieve-bench photos configs/tiny.toml --data DIR -o RUN
    python3 benches/photos/reference.py configs/tiny.toml --data DIR --features F.parquet --run RUN

Reads the clean draws (`episodes.json`), the candidates (`candidates-*.parquet`) and the settings (`results.json`)
of a run, computes each row with numpy, scipy and PyTorch in the plainest form of the paper's equations, and prints both
with their difference. Rows without randomness must agree to the last digit shown; gcn and mlp start from other random
numbers and agree to sampling error. --seeds averages these two over several seeds and shows their standard deviation;
with --wheel labelsieve's Python package scores them, so that both can be compared seed by seed.
"""

import argparse
import json
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse
import scipy.sparse.linalg
import torch

N_NEIGHBOURS, N_HIDDEN, ITERATIONS, EPS = 50, 16, 100, 1e-6
RANDOM = ("gcn", "mlp")


def unit(rows):
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def read_features(path):
    if path.suffix == ".npz":
        archive = np.load(path)
        return [str(i) for i in archive["ids"]], unit(archive["features_all"].astype(np.float32))
    table = pq.read_table(path, columns=["id", "embedding"])
    column = table["embedding"].combine_chunks()
    rows = column.flatten().to_numpy().reshape(len(column), -1).astype(np.float32)
    return [str(i) for i in table["id"].to_pylist()], unit(rows)


def novel_photos(config, data, place):
    """Rows of the features by novel class and split, in file order; photos without features are left out."""
    photos = {}
    for name in config["files"]:
        columns = [config[key] for key in ("id", "class", "role", "split")]
        table = pq.read_table(data / name, columns=columns)
        for i, c, role, split in zip(*(table[column].to_pylist() for column in columns)):
            if role == config["novel"] and str(i) in place:
                photos.setdefault(c, {}).setdefault(split, []).append(place[str(i)])
    return photos


def candidates(path):
    """Id and truth of each candidate, by class."""
    pools, table = {}, pq.read_table(path).to_pydict()
    for c, i, relevant in zip(table["class"], table["id"], table["relevant"]):
        pools.setdefault(c, []).append((i, relevant))
    return pools


# --- the method ----------------------------------------------------------------------------------


def reciprocal_graph(rows):
    """a_ij = [v_i.v_j]+ where each is among the other's 50 nearest."""
    n = len(rows)
    count = min(N_NEIGHBOURS, n - 1)
    if count < 1:
        return scipy.sparse.csr_matrix((n, n), dtype=np.float32)
    similarity = rows @ rows.T
    np.fill_diagonal(similarity, -np.inf)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :count]
    one_way = np.zeros((n, n), dtype=bool)
    one_way[np.arange(n)[:, None], nearest] = True
    np.fill_diagonal(similarity, 0)
    return scipy.sparse.csr_matrix(np.where(one_way & one_way.T, np.maximum(similarity, 0), 0))


def network_relevance(rows, n_clean, lam, with_graph, seed):
    """Two layers with biases, dropout after the first, eq. (3), Adam with L2: the published recipe."""
    generator = torch.Generator().manual_seed(seed)
    n, dim = rows.shape
    x = torch.from_numpy(rows)
    propagate = lambda z: z
    if with_graph:
        a = reciprocal_graph(rows) + scipy.sparse.eye(n, dtype=np.float32)
        a = (scipy.sparse.diags(1 / np.asarray(a.sum(1)).ravel()) @ a).tocoo()
        a = torch.sparse_coo_tensor(np.stack([a.row, a.col]), torch.tensor(a.data, dtype=torch.float32), a.shape).coalesce()
        propagate = lambda z: torch.sparse.mm(a, z)
    spread = lambda shape, width: (torch.rand(shape, generator=generator) * 2 - 1) / width**0.5
    w1, b1 = spread((dim, N_HIDDEN), N_HIDDEN), spread((N_HIDDEN,), N_HIDDEN)
    w2, b2 = spread((N_HIDDEN, 1), 1), spread((1,), 1)
    parameters = [p.requires_grad_() for p in (w1, b1, w2, b2)]
    optimiser = torch.optim.Adam(parameters, lr=0.1, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 30, 0.1)
    ax = propagate(x)

    def probability(keep=None):
        hidden = torch.relu(ax @ w1 + b1)
        if keep is not None:
            hidden = hidden * keep * 2
        return torch.sigmoid(propagate(hidden @ w2) + b2).ravel()

    for _ in range(ITERATIONS):
        optimiser.zero_grad()
        p = probability((torch.rand((n, N_HIDDEN), generator=generator) < 0.5).float())
        loss = -(p[:n_clean] + EPS).log().mean() - lam * (1 - p[n_clean:] + EPS).log().mean()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return probability()[n_clean:].numpy()


def label_propagation(rows, n_clean, alpha=0.9):
    a = reciprocal_graph(rows)
    degree = np.asarray(a.sum(1)).ravel()
    scale = scipy.sparse.diags(np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0))
    y = np.zeros(len(rows))
    y[:n_clean] = 1
    system = scipy.sparse.eye(len(rows)) - alpha * (scale @ a @ scale)
    solution, _ = scipy.sparse.linalg.cg(system.astype(np.float64), y, rtol=1e-8)
    return np.clip(solution[n_clean:], 0, 1)


def relevance(method, clean, noisy, truth, lam, seed, wheel=None):
    if len(noisy) == 0 or method == "clean only":
        return np.zeros(len(noisy))
    if method == "β = 1":
        return np.ones(len(noisy))
    if method == "oracle":
        return truth.astype(np.float64)
    if method == "similarity":
        mean = unit(clean.mean(0, keepdims=True))[0]
        return np.clip((1 + noisy @ mean) / 2, 0, 1)
    if wheel and method in RANDOM:
        return wheel.relevance(clean, noisy, method, lam, seed=seed, device="cpu")
    rows = np.concatenate([clean, noisy])
    if method == "label propagation":
        return label_propagation(rows, len(clean))
    return network_relevance(rows, len(clean), lam, method == "gcn", seed)


# --- the protocol --------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=None)
    parser.add_argument("--shots", type=int, nargs="*", default=None)
    parser.add_argument("--backbone", default=None, help="which backbone of the run; the first by default")
    parser.add_argument("--seeds", type=int, default=1, help="seeds to average gcn and mlp over")
    parser.add_argument("--wheel", action="store_true", help="score gcn and mlp with the package labelsieve")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = tomllib.loads(options.config.read_text())["photos"]
    ids, features = read_features(options.features)
    place = {i: row for row, i in enumerate(ids)}
    photos = novel_photos(config, options.data, place)
    tests = {c: of_class[config["test"]] for c, of_class in photos.items()}
    episodes = json.loads((options.run / "episodes.json").read_text())["classes"]
    report = [entry for entry in episodes if entry["half"] == "report"]
    x = np.concatenate([features[tests[entry["class"]]] for entry in report])
    labels = np.concatenate([[c] * len(tests[entry["class"]]) for c, entry in enumerate(report)])
    for result in json.loads((options.run / "results.json").read_text()):
        if result["backbone"] == (options.backbone or result["backbone"]):
            compare(result, report, features, place, x, labels, options)


def compare(result, report, features, place, x, labels, options):
    wheel = __import__("labelsieve") if options.wheel else None
    pools = candidates(options.run / f"candidates-{result['candidates']}.parquet")
    print(f"\n{result['backbone']}, {result['candidates']}: top-1 / top-5 here, and what the run has more")
    ours = {row["name"]: row["by_shot"] for row in result["rows"]}
    for method in ("clean only", "similarity", "β = 1", "label propagation", "mlp", "gcn", "oracle"):
        cells = []
        for shot, k in enumerate(result["shots"]):
            if options.shots and k not in options.shots:
                continue
            n_episodes = min(options.episodes or 10**9, len(ours[method][shot]))
            setting = result["methods"][method][shot]
            lam = setting.get("lambda", 0) if isinstance(setting, dict) else 0
            by_seed = []
            for seed in range(options.seeds if method in RANDOM else 1):
                reached = []
                for episode in range(n_episodes):
                    weights = []
                    for c, entry in enumerate(report):
                        clean_ids = entry["clean"][episode][:k]
                        clean = features[[place[i] for i in clean_ids]]
                        kept = [(i, r) for i, r in pools.get(entry["class"], []) if i not in clean_ids]
                        noisy = features[[place[i] for i, _ in kept]].reshape(len(kept), -1)
                        truth = np.array([r for _, r in kept], dtype=bool)
                        number = 1_000_000 * seed + 1000 * episode + c
                        r = relevance(method, clean, noisy, truth, lam, number, wheel)
                        total = clean.sum(0) + (r[:, None] * noisy).sum(0) if len(noisy) else clean.sum(0)
                        weights.append(total)
                    order = np.argsort(-(x @ unit(np.array(weights, dtype=np.float32)).T), axis=1, kind="stable")
                    rank = (order == labels[:, None]).argmax(1)
                    reached.append(((rank < 1).mean(), (rank < 5).mean()))
                by_seed.append(100 * np.mean(reached, axis=0))
            here = np.mean(by_seed, axis=0)
            run = 100 * np.mean([[cell["novel_top_1"], cell["novel_top_5"]]
                                 for cell in ours[method][shot][:n_episodes]], axis=0)
            spread = f" sd {np.std(by_seed, axis=0, ddof=1)[0]:.2f}" if len(by_seed) > 1 else ""
            cells.append(f"k={k}: {here[0]:.1f}/{here[1]:.1f}{spread} ({run[0] - here[0]:+.1f}/{run[1] - here[1]:+.1f})")
        print(f"{method:18} " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
