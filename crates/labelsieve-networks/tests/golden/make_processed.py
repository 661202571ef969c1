"""Makes `images/processed.json`: pixels by image processors of transformers (with Pillow) and by torchvision's transforms.

    pip install transformers torchvision pillow==11.3.0
    python make_processed.py

Pillow 13 scales some tall images by columns first, which shows at hard edges; all versions before scale rows first.
"""
import json
import pathlib

import numpy as np
from PIL import Image
from torchvision.transforms import CenterCrop, Compose, InterpolationMode, Resize
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil as Processor


def pattern(height, width):
    """The picture of make_images.py."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return ((y * 7 + x * 5 * (c + 1) + (x > width // 2) * 90 + c * 40) % 256).astype(np.uint8)


MODES = {2: InterpolationMode.BILINEAR, 3: InterpolationMode.BICUBIC, 1: InterpolationMode.LANCZOS}
golden = []
for source in ((30, 47), (51, 22), (9, 9), (33, 32)):
    image = Image.fromarray(pattern(*source))
    for resample in (0, 1, 2, 3, 4, 5):
        for rule in ({"shorter": 16}, {"to": [13, 13]}):
            if resample in (0, 4, 5) and source != (30, 47):
                continue
            size = {"shortest_edge": 16} if "shorter" in rule else {"height": 13, "width": 13}
            processor = Processor(size=size, resample=resample, do_center_crop=True, crop_size={"height": 13, "width": 13},
                                  do_rescale=False, do_normalize=False)
            pixels = np.asarray(processor(image, return_tensors="np")["pixel_values"][0]).transpose(1, 2, 0)
            golden.append({"by": "transformers", "source": source, "resample": resample, **rule, "size": [13, 13],
                           "pixels": pixels.astype(int).ravel().tolist()})
    for resample, mode in MODES.items():
        pixels = np.asarray(Compose([Resize(16, mode), CenterCrop(13)])(image))
        golden.append({"by": "torchvision", "source": source, "resample": resample, "shorter": 16, "size": [13, 13],
                       "pixels": pixels.astype(int).ravel().tolist()})
path = pathlib.Path(__file__).parent / "images" / "processed.json"
path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
