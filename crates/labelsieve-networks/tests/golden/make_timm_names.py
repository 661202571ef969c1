"""What timm's names of vision transformers stand for: timm_names.json, [width, heads, activation, eps], or null where blocks,
patches or positions are of another kind than those of the plain vision transformer and of DINOv3.

    pip install timm
    python make_timm_names.py
"""
import json
import pathlib

import timm
import torch
from timm.models.eva import Eva, EvaBlock
from timm.models.vision_transformer import Block, VisionTransformer

PARTS = {"norm1", "attn.qkv", "attn.proj", "ls1.gamma", "norm2", "mlp.fc1", "mlp.fc2", "ls2.gamma", "attn.q_bias", "attn.v_bias",
         "gamma_1", "gamma_2", "mlp.fc1_g", "mlp.fc1_x"}
TOP = {"cls_token", "reg_token", "dist_token", "pos_embed", "patch_embed.proj", "norm", "fc_norm", "norm_pre", "head", "head_dist"}
ACTIVATIONS = {"GELU": "gelu", "GELUTanh": "gelu_tanh", "QuickGELU": "quick_gelu", "SiLU": "silu"}


def facts(name):
    with torch.device("meta"):
        model = timm.create_model(name)
    is_plain = isinstance(model, VisionTransformer) and type(model.blocks[0]) is Block
    is_dinov3 = isinstance(model, Eva) and type(model.blocks[0]) is EvaBlock and "dinov3" in name
    keys = {key.removesuffix(".weight").removesuffix(".bias") for key in model.state_dict()}
    parts = {key.removeprefix("blocks.0.") for key in keys if key.startswith("blocks.0.")}
    top = {key for key in keys if not key.startswith(("blocks.", "attn_pool."))}
    if not (is_plain or is_dinov3) or not parts <= PARTS or not top <= TOP:
        return None
    block = model.blocks[0]
    return [model.embed_dim, block.attn.num_heads, ACTIVATIONS[type(block.mlp.act).__name__], block.norm1.eps]


names = timm.list_models("vit_*") + timm.list_models("deit*")
table = {name: facts(name) for name in names}
text = ",\n".join(f"{json.dumps(name)}:{json.dumps(fact, separators=(',', ':'))}" for name, fact in table.items())
(pathlib.Path(__file__).parent / "timm_names.json").write_text("{\n" + text + "\n}\n")
