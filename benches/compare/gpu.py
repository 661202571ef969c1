#!/usr/bin/env python3
"""The comparison on a GPU: exact search for 50 neighbours, by every installed library.

    python gpu.py                                # N = 30k 100k 300k 620k, 512 columns
    python gpu.py --sizes 30k --seconds 20

Rows are generated like real features (generate.py) on the host and copied to the GPU before the clock starts; indices
and similarities stay there. Libraries: cuVS and cuML (brute force), faiss (GpuIndexFlatIP), whichever can be imported,
and PyTorch (products in blocks, then topk) in f32, TF32 and f16. Each is warmed up and run until three runs or its share
of `--seconds` are over; the fastest counts. `recall` is against f32 products in PyTorch for 64 rows. A library that fails is reported, and
the others continue.
"""

import argparse
import json
import time

import numpy as np
import torch

from generate import Measured, blocks, constants_of
from harness import size, table

NEIGHBOURS = 51  # the row itself is one of them, as people search
BLOCK = 8192


def by_torch(rows: torch.Tensor, tf32: bool = False, half: bool = False):
    """Products of a block of rows with all, then the largest of each."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    rows = rows.half() if half else rows
    step = max(256, min(BLOCK, 2**31 // len(rows) // 256 * 256))  # 8 GB of f32 similarities at most
    found = [torch.topk(rows[start:start + step] @ rows.T, NEIGHBOURS) for start in range(0, len(rows), step)]
    return torch.cat([block.indices for block in found])


def by_cuvs(rows: torch.Tensor):
    from cuvs.neighbors import brute_force

    index = brute_force.build(rows, metric="inner_product")
    _, found = brute_force.search(index, rows, NEIGHBOURS)
    return torch.as_tensor(found, device="cuda")


def by_cuml(rows: torch.Tensor):
    import cupy
    from cuml.neighbors import NearestNeighbors

    array = cupy.asarray(rows)
    index = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute", metric="inner_product").fit(array)
    return torch.as_tensor(index.kneighbors(array, return_distance=False), device="cuda")


def by_faiss(rows: torch.Tensor):
    import faiss
    import faiss.contrib.torch_utils  # lets faiss take tensors

    index = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), rows.shape[1])
    index.add(rows)
    return index.search(rows, NEIGHBOURS)[1]


PEERS = {
    "cuVS brute force": by_cuvs,
    "cuML brute force": by_cuml,
    "faiss GpuIndexFlatIP": by_faiss,
    "PyTorch f32": by_torch,
    "PyTorch TF32": lambda rows: by_torch(rows, tf32=True),
    "PyTorch f16": lambda rows: by_torch(rows, half=True),
}


def recall(found: torch.Tensor, rows: torch.Tensor) -> float:
    """The share of the true neighbours of 64 rows that were found."""
    torch.backends.cuda.matmul.allow_tf32 = False
    query = torch.linspace(0, len(rows) - 1, 64, device="cuda").long()
    true = torch.topk(rows[query] @ rows.T, NEIGHBOURS).indices
    return float(np.mean([len(np.intersect1d(a, b)) for a, b in zip(true.cpu(), found[query].cpu())]) / NEIGHBOURS)


def timed(search, rows: torch.Tensor, seconds: float) -> dict:
    """The fastest of some runs."""
    started, runs = time.perf_counter(), []
    while not runs or (len(runs) < 4 and time.perf_counter() - started + runs[-1] < seconds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        found = search(rows)
        torch.cuda.synchronize()
        runs.append(time.perf_counter() - begun)
    # The first run also loads kernels; it counts only when there was no time for another.
    return {"seconds": min(runs[1:] or runs), "runs": len(runs), "recall": recall(found, rows)}


def ceilings() -> dict:
    """The peak speed of the GPU: products of the search's shape, and copying."""
    rates = {}
    for name, dtype, tf32 in (("f32", torch.float32, False), ("TF32", torch.float32, True), ("f16", torch.float16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a = torch.randn(8192, 512, device="cuda", dtype=dtype)
        rates[f"{name} TFLOP/s"] = 2 * 8192**2 * 512 / fastest(lambda: a @ a.T) / 1e12
    memory = torch.empty(2**28, device="cuda")
    rates["copy GB/s"] = 2 * 4 * 2**28 / fastest(lambda: memory.clone()) / 1e9
    return rates


def fastest(work) -> float:
    runs = []
    for _ in range(10):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        runs.append(start.elapsed_time(end) / 1000)
    return min(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact search on a GPU with the libraries that people use.")
    parser.add_argument("--sizes", type=size, nargs="+", metavar="N", default=[30_000, 100_000, 300_000, 620_000])
    parser.add_argument("--like", choices=["tiny", "fashion"], default="tiny", help="whose spectrum (tiny)")
    parser.add_argument("--seconds", type=float, default=70, help="for all searches together (70)")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("error: PyTorch finds no GPU")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    print(", ".join(f"{name} {rate:.0f}" for name, rate in ceilings().items()), flush=True)

    source, rng = Measured(constants_of(args.like), 0), np.random.default_rng(0)
    cluster = rng.choice(len(source.share), size=max(args.sizes), p=source.share)
    rows = torch.empty(max(args.sizes), len(source.deviation), device="cuda")
    start = 0
    for block in blocks(source, cluster, rng):
        rows[start:start + len(block)] = torch.from_numpy(block)
        start += len(block)

    results, missing = [], {}
    share = args.seconds / len(PEERS) / sum(args.sizes)
    for n in sorted(args.sizes):
        for name, search in PEERS.items():
            if name in missing:
                continue
            try:
                results.append({"n": n, "peer": name} | timed(search, rows[:n].contiguous(), share * n))
            except Exception as error:  # a library that is not there, or not for this GPU, must not end the others
                missing[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
                torch.cuda.empty_cache()
    for name, why in missing.items():
        print(f"not measured: {name} ({why})", flush=True)
    if args.json:
        print(json.dumps(results))
        return
    head = ["peer", *(f"{n:,}" for n in sorted(args.sizes))]
    cell = {(row["peer"], row["n"]): f"{row['seconds']:.4f} s ({row['recall']:.3f})" for row in results}
    body = [[name, *(cell.get((name, n), "–") for n in sorted(args.sizes))] for name in PEERS
            if any((name, n) in cell for n in args.sizes)]
    print(f"\nseconds (recall), {rows.shape[1]} columns\n\n{table(head, body, args.markdown)}")


if __name__ == "__main__":
    main()
