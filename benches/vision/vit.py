"""The same vision transformers in PyTorch on the CPU (timm's, which use its fused attention): one line of JSON each."""
import json
import sys
import time

sys.path.pop(0)  # the files beside this one have names of packages
import timm  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(int(sys.argv[1]))


def per_second(images, work):
    work()
    best = 0.0
    for _ in range(5):
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < 2:
            work()
            calls += 1
        best = max(best, calls * images / (time.perf_counter() - start))
    return best


for name, model, images in (("ViT-S/14", "vit_small_patch14_dinov2", 8), ("ViT-B/16", "vit_base_patch16_224", 8)):
    options = {"init_values": None} if "dinov2" in model else {}
    network = timm.create_model(model, num_classes=0, img_size=224, **options).eval()
    x = torch.randn(images, 3, 224, 224)
    with torch.inference_mode():
        embed = per_second(images, lambda: network(x))
    print(json.dumps({"network": name, "size": 224, "batch": images, "embed": embed}), flush=True)
