"""Features of vision transformers by transformers, timm and open_clip: vit_small.json, and vit_real.json with real sizes.

    pip install transformers timm open_clip_torch
    python make_vit.py

Weights and pixels come from a formula that the test computes as well, so that only features are stored. Every model of
transformers is saved, filled by the names in its file and loaded again: the names are those of the hub's files.
"""
import json
import pathlib
import tempfile

import numpy as np
import open_clip
import timm
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
MEAN, DEVIATION = [0.48, 0.45, 0.40], [0.27, 0.26, 0.28]


def uniform(name, n):
    """n numbers in [-1, 1) by name: FNV-1a of the name, then SplitMix64 by position."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & (2**64 - 1)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(40)).astype(np.float64) / 2**23 - 1


def values(name, shape):
    u = uniform(name, int(np.prod(shape)))
    if len(shape) >= 2 and shape[0] > 1 and "position" not in name:
        numbers = u * (3 / np.prod(shape[1:])) ** 0.5
    elif len(shape) == 1 and name.endswith("weight"):
        numbers = 1 + 0.2 * u  # of a normalisation
    elif any(part in name for part in ("lambda", "gamma")):
        numbers = 0.5 + 0.25 * u
    else:
        numbers = 0.4 * u
    return torch.from_numpy(numbers.astype(np.float32)).view(list(shape))


def pixels(n, size):
    return ((uniform("pixels", n * size[0] * size[1] * 3) + 1) * 128).astype(np.uint8).reshape(n, *size, 3)


def inputs(n, size):
    x = (pixels(n, size).astype(np.float64) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(x.astype(np.float32)).permute(0, 3, 1, 2).contiguous()


def filled(tensors):
    return {name: values(name, t.shape) if t.is_floating_point() else t for name, t in tensors.items()}


def case(name, config, tensors, size, features):
    shapes = {k: list(t.shape) for k, t in tensors.items() if t.is_floating_point() and not k.startswith(("text_", "transformer.", "token_"))}
    rows = [[float(f"{v:.7g}") for v in row] for row in features.detach().double().numpy()]
    print(name, size, len(rows[0]), flush=True)
    return {"name": name, "config": config, "size": list(size), "tensors": shapes, "features": rows}


def hub(name, model, features, size, n):
    """A model of transformers, through a folder."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        path = pathlib.Path(folder) / "model.safetensors"
        tensors = filled(load_file(path))
        save_file(tensors, path, {"format": "pt"})
        config = json.loads((path.parent / "config.json").read_text())
        model = type(model).from_pretrained(folder).eval()
    with torch.no_grad():
        return case(name, config, tensors, size, features(model, inputs(n, size)))


def other(name, config, model, features, size, n):
    """A model of timm or open_clip, by its state."""
    tensors = filled(model.state_dict())
    model.load_state_dict(tensors)
    with torch.no_grad():
        return case(name, config, tensors, size, features(model.eval(), inputs(n, size)))


def pooled(out):
    return out if isinstance(out, torch.Tensor) else out.pooler_output


def clip_features(model, x):
    if hasattr(model, "get_image_features"):
        return pooled(model.get_image_features(pixel_values=x, interpolate_pos_encoding=True))
    return model(pixel_values=x, interpolate_pos_encoding=True).image_embeds


def flexible_features(model, x):
    """SigLIP 2 NaFlex: patches in a row, as its processor makes them."""
    p = model.config.vision_config.patch_size
    n, c, h, w = x.shape
    patches = x.view(n, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(n, -1, p * p * c)
    mask = torch.ones(n, patches.shape[1], dtype=torch.long)
    shapes = torch.tensor([[h // p, w // p]] * n)
    return pooled(model.get_image_features(pixel_values=patches, pixel_attention_mask=mask, spatial_shapes=shapes))


def pooler(model, x):
    return model(pixel_values=x).pooler_output


def first_token(model, x):
    return model(pixel_values=x, interpolate_pos_encoding=True).last_hidden_state[:, 0]


def timm_config(name, model, size, **extra):
    return {"architecture": name, "num_features": model.num_features, "global_pool": model.global_pool,
            "pretrained_cfg": {"input_size": [3, *size], "mean": MEAN, "std": DEVIATION}, **extra}


def timm_case(name, size, n, at=None, **kwargs):
    model = timm.create_model(name, num_classes=0, img_size=size, **kwargs)
    config = timm_config(name, model, size)
    if at is None:
        return other(name, config, model, lambda m, x: m(x), size, n)
    weights = filled(model.state_dict())
    larger = timm.create_model(name, num_classes=0, img_size=at, **kwargs)
    state = timm.models.vision_transformer.checkpoint_filter_fn(dict(weights), larger)
    larger.load_state_dict(state)
    with torch.no_grad():
        return case(name, config, weights, at, larger.eval()(inputs(n, at)))


def open_clip_case(name, vision, size, n, dim=8, quick=False, at=None):
    text = {"context_length": 4, "vocab_size": 10, "width": 8, "heads": 1, "layers": 1}
    config = {"model_cfg": {"embed_dim": dim, "vision_cfg": vision, "text_cfg": text, "quick_gelu": quick}}
    make = lambda v: (open_clip.CustomTextCLIP if "timm_model_name" in v else open_clip.CLIP)(dim, v, text, quick_gelu=quick)
    model = make(vision)
    encode = lambda m, x: m.encode_image(x)
    if at is None:
        return other(name, config, model, encode, size, n)
    weights = filled(model.state_dict())
    larger, state = make({**vision, "image_size": list(at)}), dict(weights)
    from open_clip.model import resize_pos_embed
    resize_pos_embed(state, larger)
    larger.load_state_dict(state)
    with torch.no_grad():
        return case(name, config, weights, at, encode(larger.eval(), inputs(n, at)))


def small():
    n = 2
    sizes = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=40)
    square = dict(image_size=24, patch_size=8, **sizes)
    text = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, vocab_size=10)
    clip = lambda act: hf.CLIPModel(hf.CLIPConfig(vision_config={**square, "hidden_act": act}, text_config=text, projection_dim=10))
    for act in ("quick_gelu", "gelu"):
        yield hub(f"clip, {act}", clip(act), clip_features, (24, 24), n)
    yield hub("clip, other size", clip("quick_gelu"), clip_features, (32, 44), n)
    yield hub("clip, vision alone", hf.CLIPVisionModelWithProjection(hf.CLIPVisionConfig(**square, projection_dim=10)), clip_features, (24, 24), n)
    siglip = hf.SiglipModel(hf.SiglipConfig(vision_config=square, text_config=text))
    yield hub("siglip", siglip, clip_features, (24, 24), n)
    yield hub("siglip, other size", siglip, clip_features, (40, 16), n)
    flexible = dict(patch_size=8, num_patches=9, **sizes)
    siglip2 = hf.Siglip2Model(hf.Siglip2Config(vision_config=flexible, text_config=text))
    yield hub("siglip2", siglip2, flexible_features, (24, 24), n)
    yield hub("siglip2, other size", siglip2, flexible_features, (16, 32), n)
    dino = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=24, patch_size=8)
    yield hub("dinov2", hf.Dinov2Model(hf.Dinov2Config(**dino)), pooler, (24, 24), n)
    yield hub("dinov2, other size", hf.Dinov2Model(hf.Dinov2Config(**dino)), pooler, (40, 16), n)
    yield hub("dinov2, swiglu", hf.Dinov2Model(hf.Dinov2Config(**dino, use_swiglu_ffn=True)), pooler, (24, 24), n)
    yield hub("dinov2, classifier", hf.Dinov2ForImageClassification(hf.Dinov2Config(**dino)), lambda m, x: m.dinov2(x).pooler_output, (24, 24), n)
    registers = lambda: hf.Dinov2WithRegistersModel(hf.Dinov2WithRegistersConfig(**dino, num_register_tokens=3))
    yield hub("dinov2 with registers", registers(), pooler, (24, 24), n)
    yield hub("dinov2 with registers, other size", registers(), pooler, (16, 40), n)
    dinov3 = lambda **more: hf.DINOv3ViTModel(hf.DINOv3ViTConfig(**square, num_register_tokens=4, **more))
    yield hub("dinov3", dinov3(), pooler, (24, 24), n)
    yield hub("dinov3, gated, other size", dinov3(use_gated_mlp=True, hidden_act="silu"), pooler, (40, 24), n)
    yield hub("vit", hf.ViTModel(hf.ViTConfig(**square)), first_token, (24, 24), n)
    yield hub("vit, other size", hf.ViTModel(hf.ViTConfig(**square, qkv_bias=False)), first_token, (32, 40), n)
    classifier = hf.ViTForImageClassification(hf.ViTConfig(**square))
    yield hub("vit, classifier", classifier, lambda m, x: m.vit(x).last_hidden_state[:, 0], (24, 24), n)
    yield hub("deit", hf.DeiTModel(hf.DeiTConfig(**square)), first_token, (24, 24), n)
    yield hub("deit, other size", hf.DeiTModel(hf.DeiTConfig(**square)), first_token, (16, 32), n)

    tiny = dict(embed_dim=64, depth=2, num_heads=1)
    yield timm_case("vit_small_patch16_224", (32, 48), n, **tiny)
    yield timm_case("vit_small_patch16_224", (48, 48), n, at=(32, 64), **tiny)
    yield timm_case("deit_small_distilled_patch16_224", (32, 32), n, **tiny)
    yield timm_case("deit3_small_patch16_224", (32, 32), n, **tiny)
    yield timm_case("vit_base_patch16_clip_quickgelu_224", (32, 32), n, **tiny)
    yield timm_case("vit_base_patch16_clip_224", (32, 32), n, **tiny)
    yield timm_case("vit_base_patch16_siglip_224", (32, 32), n, **tiny)
    yield timm_case("vit_base_patch16_siglip_gap_224", (32, 32), n, **tiny)
    yield timm_case("vit_so400m_patch16_siglip_256", (32, 32), n, **tiny)
    yield timm_case("vit_small_patch14_dinov2", (28, 28), n, **tiny)
    yield timm_case("vit_small_patch14_reg4_dinov2", (28, 42), n, **tiny)
    yield timm_case("vit_giant_patch14_reg4_dinov2", (28, 28), n, **{**tiny, "mlp_ratio": 2})
    yield timm_case("vit_base_patch16_reg4_gap_256", (32, 32), n, **tiny)
    yield timm_case("vit_small_patch16_dinov3", (32, 48), n, **tiny)
    yield timm_case("vit_small_patch16_dinov3_qkvb", (32, 32), n, global_pool="token", **tiny)
    yield timm_case("vit_small_plus_patch16_dinov3", (32, 32), n, **tiny)

    vision = dict(image_size=24, layers=2, width=24, head_width=12, patch_size=8)
    yield open_clip_case("open_clip", vision, (24, 24), n)
    yield open_clip_case("open_clip, quick_gelu, layer scale", {**vision, "ls_init_value": 0.1}, (24, 24), n, quick=True)
    yield open_clip_case("open_clip, other size", vision, (24, 24), n, at=(32, 40))
    average = {"pool_type": "avg", "no_ln_pre": True, "final_ln_after_pool": True, "mlp_ratio": 3}
    yield open_clip_case("open_clip, average", {**vision, **average}, (24, 24), n)


def real():
    """The published sizes; one image each."""
    yield hub("clip-vit-base-patch32", hf.CLIPVisionModelWithProjection(hf.CLIPVisionConfig()), clip_features, (224, 224), 1)
    yield hub("siglip-base-patch16-224", hf.SiglipVisionModel(hf.SiglipVisionConfig()), pooler, (224, 224), 1)
    small = dict(hidden_size=384, num_attention_heads=6)
    dinov2 = dict(image_size=518, **small)
    yield hub("dinov2-small", hf.Dinov2Model(hf.Dinov2Config(**dinov2)), pooler, (224, 224), 1)
    registers = hf.Dinov2WithRegistersConfig(**dinov2)
    yield hub("dinov2-with-registers-small", hf.Dinov2WithRegistersModel(registers), pooler, (224, 224), 1)
    dinov3 = hf.DINOv3ViTConfig(num_register_tokens=4)
    yield hub("dinov3-vits16", hf.DINOv3ViTModel(dinov3), pooler, (224, 224), 1)
    yield hub("vit-base-patch16-224", hf.ViTModel(hf.ViTConfig(), add_pooling_layer=False), first_token, (224, 224), 1)
    tiny = hf.DeiTConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768)
    yield hub("deit-tiny-distilled-patch16-224", hf.DeiTModel(tiny, add_pooling_layer=False), first_token, (224, 224), 1)
    yield timm_case("vit_small_patch14_reg4_dinov2.lvd142m", (518, 518), 1, at=(224, 224))
    base = {"image_size": 224, "layers": 12, "width": 768, "patch_size": 32}
    yield open_clip_case("open_clip ViT-B-32", base, (224, 224), 1, dim=512)
    trunk = {"image_size": 224, "timm_model_name": "vit_base_patch16_siglip_224", "timm_pool": "map", "timm_proj": "none"}
    yield open_clip_case("open_clip ViT-B-16-SigLIP", trunk, (224, 224), 1, dim=768)


torch.manual_seed(0)
torch.set_num_threads(2)
for path, cases in (("vit_small.json", small()), ("vit_real.json", real())):
    text = {"mean": MEAN, "deviation": DEVIATION, "cases": list(cases)}
    (HERE / path).write_text(json.dumps(text, separators=(",", ":")) + "\n")
