"""Makes the small image files and golden values under `images/` with Pillow, an independent implementation.

    python make_images.py        (Pillow 13.0, numpy 2.4)

Every picture is drawn by formula, so nothing here is anybody's photo.
"""

import io
import json
import pathlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent / "images"


def pattern(height, width):
    """A smooth picture with an edge: every pixel a whole-number formula, repeated in the Rust tests."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return ((y * 7 + x * 5 * (c + 1) + (x > width // 2) * 90 + c * 40) % 256).astype(np.uint8)


def quadrants():
    """16×24: red, green / blue, white. Survives JPEG, and shows every rotation."""
    picture = np.zeros((16, 24, 3), np.uint8)
    picture[:8, :12] = [220, 20, 20]
    picture[:8, 12:] = [20, 200, 20]
    picture[8:, :12] = [20, 20, 220]
    picture[8:, 12:] = 255
    return Image.fromarray(picture)


def save(name, picture, **options):
    picture.save(HERE / name, **options)


def main():
    HERE.mkdir(exist_ok=True)
    quads = quadrants()
    save("rgb.jpg", quads, quality=95, subsampling=0)
    save("progressive.jpg", quads, quality=95, progressive=True)
    save("grey.jpg", quads.convert("L"), quality=95)
    save("cmyk.jpg", quads.convert("CMYK"), quality=95)
    for orientation in (3, 6):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save(f"orientation-{orientation}.jpg", quads, quality=95, subsampling=0, exif=exif)
    preview = io.BytesIO()
    quads.save(preview, "jpeg")
    # A preview with an end mark of its own in the head, as cameras write it.
    body = io.BytesIO()
    quads.save(body, "jpeg", quality=95)
    body = body.getvalue()
    block = b"\xff\xe5" + (len(preview.getvalue()) + 2).to_bytes(2, "big") + preview.getvalue()
    (HERE / "preview.jpg").write_bytes(body[:2] + block + body[2:])
    save("palette.png", quads.convert("P", palette=Image.Palette.ADAPTIVE, colors=4))
    alpha = quads.convert("RGBA")
    alpha.putalpha(Image.fromarray(np.repeat(np.repeat(np.array([[255, 0], [128, 255]], np.uint8), 8, 0), 12, 1)))
    save("alpha.png", alpha)
    save("grey16.png", Image.fromarray((np.arange(16 * 24, dtype=np.uint32).reshape(16, 24) * 171).astype(np.uint16)))
    second = Image.new("RGB", quads.size, (0, 0, 0))
    save("animated.gif", quads, save_all=True, append_images=[second], duration=100)
    save("animated.webp", quads, save_all=True, append_images=[second], duration=100, lossless=True)
    save("animated.png", quads, save_all=True, append_images=[second], duration=100)
    save("lossy.webp", quads, quality=95)
    save("rgb.bmp", quads)
    save("rgb.tiff", quads, compression="tiff_lzw")
    save("cmyk.tiff", quads.convert("CMYK"))
    golden = []
    for source, target in [((13, 17), (8, 8)), ((13, 17), (32, 29)), ((40, 9), (7, 21)), ((64, 64), (56, 56)),
                           ((5, 5), (1, 1))]:
        scaled = Image.fromarray(pattern(*source)).resize(target[::-1], Image.Resampling.BILINEAR)
        golden.append({"source": source, "target": target, "pixels": np.asarray(scaled).ravel().tolist()})
    (HERE / "resized.json").write_text(json.dumps(golden) + "\n")


main()
