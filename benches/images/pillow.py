"""Images per second of Pillow on one core, for the work of `examples/images.rs`. One line of JSON."""

import io
import json
import math
import random
import sys
import time

from PIL import Image, ImageEnhance

files = [open(path, "rb").read() for path in sys.argv[1:]]
images = [Image.open(io.BytesIO(data)).convert("RGB") for data in files]
for image in images:
    image.load()


def per_second(work, n):
    best = 0.0
    for _ in range(3):
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < 1:
            for i in range(n):
                work(i)
            calls += n
        best = max(best, calls / (time.perf_counter() - start))
    return best


def crop(image, size):
    """torchvision's RandomResizedCrop."""
    width, height = image.size
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return image.crop((left, top, left + w, top + h)).resize((size, size), Image.Resampling.BILINEAR)
    return image.resize((size, size), Image.Resampling.BILINEAR)


def augment(image, size):
    image = crop(image, size)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhance(image).enhance(random.uniform(0.6, 1.4))
    return image


def view(image, size):
    width, height = image.size
    short = size * 8 // 7
    scale = short / min(width, height)
    image = image.resize((max(short, int(width * scale)), max(short, int(height * scale))), Image.Resampling.BILINEAR)
    left, top = (image.size[0] - size) // 2, (image.size[1] - size) // 2
    return image.crop((left, top, left + size, top + size)).load()


n = len(files)
print(json.dumps({
    "decode": per_second(lambda i: Image.open(io.BytesIO(files[i])).convert("RGB").load(), n),
    "crop 64": per_second(lambda i: crop(images[i], 64), n),
    "augment 64": per_second(lambda i: augment(images[i], 64), n),
    "crop 224": per_second(lambda i: crop(images[i], 224), n),
    "augment 224": per_second(lambda i: augment(images[i], 224), n),
    "view 224": per_second(lambda i: view(images[i], 224), n),
}))
