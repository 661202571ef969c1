"""Small folders as people download them from the hub, with random weights, and what transformers and open_clip make of some
class names: python make_towers.py, with torch, transformers, tokenizers and open_clip_torch.

Every folder has an image and a text tower and a tokenizer.json of a few hundred tokens. features.json holds for each folder
the tokens of all texts, their features, and the unit row of each class (names and templates averaged).
"""

import json
import pathlib
import shutil
import string

import numpy as np
import open_clip
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
TEMPLATES = ["a photo of a {name}.", "{name}"]
# Hard ones: accents composed and not, other scripts, digits, apostrophes, punctuation, emoji, spaces, a very long one.
CLASSES = {
    "church": ["church", "church building"],
    "cafe": ["café", "cafe\u0301", "CAFÉ"],
    "owl": ["owl"],
    "hard": ["St. Mary's  Church, 1066!", "東京タワー", "🦉 owl", "don't\tshe'll", "ＦＵＬＬ width", "Ωμέγα & co."],
    "long": ["very " * 40 + "long name"],
}
CORPUS = [text for names in CLASSES.values() for text in names] * 4 + [
    "a photo of a church", "a photo of a cafe", "a photo of an owl", "a building in the city", "a very long name", "the church's tower",
]


def texts():
    return [template.replace("{name}", name) for names in CLASSES.values() for name in names for template in TEMPLATES]


def clip_tokenizer(folder):
    """CLIP's own pipeline over a vocabulary that is learned here."""
    base = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    whole = transformers.CLIPTokenizer(vocab={"<|startoftext|>": 0, "<|endoftext|>": 1}, merges=[])
    base.normalizer = whole._tokenizer.normalizer
    base.pre_tokenizer = whole._tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=380, end_of_word_suffix="</w>", show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    base.train_from_iterator(CORPUS, trainer)
    learned = json.loads(base.to_str())["model"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [tuple(merge) for merge in learned["merges"]]
    order = alphabet + [letter + "</w>" for letter in alphabet] + [a + b for a, b in merges]
    vocab = {}
    for token in order + ["<|startoftext|>", "<|endoftext|>"]:  # the end has the largest number, as in CLIP
        vocab.setdefault(token, len(vocab))
    tokenizer = transformers.CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=24)
    tokenizer.save_pretrained(folder)
    return tokenizer


def siglip_tokenizer(folder):
    """Pieces of a unigram model, without punctuation and in lower case, with an end of text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False,
    )
    tokenizer.train_from_iterator([canonical(text) for text in CORPUS], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "SiglipTokenizer", "do_lower_case": True, "pad_token": "</s>", "model_max_length": 16}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return tokenizer


def canonical(text):
    """The first step of SigLIP's tokenizer."""
    return " ".join(text.lower().translate(str.maketrans("", "", string.punctuation)).split())


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def result(tokens, features):
    features = features.detach().double().numpy()
    rows, at = {}, 0
    for name, names in CLASSES.items():
        n = len(names) * len(TEMPLATES)
        rows[name] = unit(unit(features[at:at + n]).mean(0))
        at += n
    rounded = lambda row: [round(float(value), 6) for value in row]
    return {"tokens": tokens, "features": [rounded(row) for row in features], "classes": {k: rounded(v) for k, v in rows.items()}}


def randomise(model):
    """Weights that leave no part of a tower without influence."""
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and tensor.ndim > 0:
            tensor.normal_(1 if tensor.ndim == 1 and name.endswith("weight") else 0, 0.25)


def preprocessor(folder, image_processor_type):
    config = {
        "image_processor_type": image_processor_type, "do_resize": True, "do_rescale": True, "do_normalize": True,
        "rescale_factor": 1 / 255, "resample": 3, "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28],
    }
    if "Siglip" in image_processor_type:
        config["size"] = {"height": 16, "width": 16}
    else:
        config.update(do_center_crop=True, size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    (folder / "preprocessor_config.json").write_text(json.dumps(config, indent=1))


@torch.no_grad()
def clip(name, end):
    folder = fresh(name)
    tokenizer = clip_tokenizer(folder)
    shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    text = dict(vocab_size=len(tokenizer), max_position_embeddings=24, eos_token_id=end or tokenizer.eos_token_id, **shape)
    vision = dict(image_size=16, patch_size=8, **shape)
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=12)).eval()
    randomise(model)
    model.save_pretrained(folder)
    preprocessor(folder, "CLIPImageProcessor")
    inputs = tokenizer(texts(), padding=True, truncation=True, return_tensors="pt")
    features = model.get_text_features(**inputs)
    features = getattr(features, "pooler_output", features)
    tokens = [[t for t, m in zip(ids, mask) if m] for ids, mask in zip(inputs.input_ids.tolist(), inputs.attention_mask.tolist())]
    return result(tokens, features)


@torch.no_grad()
def siglip():
    folder = fresh("siglip")
    tokenizer = siglip_tokenizer(folder)
    shape = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    text = dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=16, pad_token_id=1, bos_token_id=0, eos_token_id=1, **shape)
    vision = dict(image_size=16, patch_size=8, **shape)
    model = transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=vision)).eval()
    randomise(model)
    model.save_pretrained(folder)
    preprocessor(folder, "SiglipImageProcessor")
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(pad_id=1, pad_token="</s>", length=16)
    tokens = [tokenizer.encode(canonical(text)).ids for text in texts()]
    features = model.get_text_features(input_ids=torch.tensor(tokens))
    return result(tokens, getattr(features, "pooler_output", features))


@torch.no_grad()
def openclip():
    folder = fresh("open_clip")
    tokenizer = clip_tokenizer(folder)
    config = {
        "model_cfg": {
            "embed_dim": 12, "quick_gelu": True,
            "vision_cfg": {"image_size": 16, "layers": 2, "width": 16, "head_width": 8, "patch_size": 8},
            "text_cfg": {"context_length": 24, "vocab_size": len(tokenizer), "width": 16, "heads": 2, "layers": 2},
        },
        "preprocess_cfg": {"mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]},
    }
    model = open_clip.CLIP(**{k: (dict(v) if isinstance(v, dict) else v) for k, v in config["model_cfg"].items()}).eval()
    randomise(model)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps(config, indent=1))
    tokens = [tokenizer(text, truncation=True, max_length=24).input_ids for text in texts()]
    padded = torch.tensor([ids + [0] * (24 - len(ids)) for ids in tokens])
    return result(tokens, model.encode_text(padded))


def fresh(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def main():
    torch.manual_seed(17)
    results = {"clip": clip("clip", None), "clip-old": clip("clip-old", 2), "siglip": siglip(), "open_clip": openclip()}
    inputs = {"templates": TEMPLATES, "texts": texts(), "towers": results}
    (HERE / "features.json").write_text(json.dumps(inputs, ensure_ascii=False) + "\n")
    rows = "\n".join(f"[[class]]\nid = {json.dumps(k)}\nnames = {json.dumps(v, ensure_ascii=False)}\n" for k, v in CLASSES.items())
    (HERE / "classes.toml").write_text(rows)
    for folder in results:  # what nothing reads
        for name in ("special_tokens_map.json", "vocab.json", "merges.txt", "generation_config.json"):
            (HERE / folder / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
