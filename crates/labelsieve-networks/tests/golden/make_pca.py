"""Makes `pca.json` with numpy's singular value decomposition, an independent way to the same components.

    python make_pca.py        (numpy 2.4)
"""

import json
import pathlib

import numpy as np

i = np.arange(40 * 12)
x = (((i * i * 7 + i * 13) % 101).astype(np.float32) / np.float32(101) - np.float32(0.3)) * (1 + i % 12).astype(np.float32)
x = x.reshape(40, 12).astype(np.float64)
mean = x.mean(0)
_, s, vt = np.linalg.svd(x - mean, full_matrices=False)
components = vt[:5]
largest = np.abs(components).argmax(1)
components = components * np.sign(components[np.arange(5), largest])[:, None]
variances = s**2 / (len(x) - 1)
projected = (x - mean) @ components.T
projected /= np.linalg.norm(projected, axis=1, keepdims=True)
golden = {
    "mean": mean.tolist(),
    "components": components.ravel().tolist(),
    "variances": variances[:5].tolist(),
    "projected": projected.ravel().tolist(),
    "kept": variances[:5].sum() / variances.sum(),
}
path = pathlib.Path(__file__).parent / "pca.json"
path.write_text(json.dumps(golden, indent=0) + "\n")
