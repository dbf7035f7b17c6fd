"""A transformer of two layers with random weights and a vocabulary of its own, in a folder."""

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, BertConfig, RobertaConfig

GOOD = ["zwin bzaf", "3jebni had", "مزيان بزاف", "mzyan hada", "Bnin w zwin!", "واعر عجبني"]
BAD = ["khayb bzaf", "ma3jebnich had", "خايب بزاف", "khayb hada", "Ghali w khayb.", "ماعجبنيش"]
TEXTS = (GOOD + BAD) * 2
LABELS = (["good"] * 6 + ["bad"] * 6) * 2
NEW = ["zwwwin bzzaf", "khayyyb", "", "zzqqxx", "👍", "مزيان, BZAF"]


def wordpieces():
    """WordPiece of the texts' words and letters; [CLS] text [SEP], cut after 8 by default."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    said = " ".join([*TEXTS, "good bad other a"]).lower()
    words = sorted({word.strip("!.") for word in said.split()})
    letters = sorted(set("".join(words)))
    # A trainer would number and choose pieces otherwise in every process.
    pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *words])
    vocab = {piece: number for number, piece in enumerate(pieces)}
    tokenizer.model = models.WordPiece(vocab, unk_token="[UNK]")
    tokenizer.add_special_tokens(special)
    pair = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=pair
    )
    tokenizer.enable_truncation(8)  # as published files have it; it is not to matter
    tokenizer.enable_padding(length=8)
    return tokenizer


def make_model(folder, kind=BertConfig, auto=AutoModel, **given):
    """Write the folder of a random model, of the class `auto`; returns its path as text."""
    tokenizer = wordpieces()
    sizes = {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 48, "pad_token_id": 0,
    }  # fmt: skip
    if kind is RobertaConfig:
        sizes["pad_token_id"] = 1
    config = kind(vocab_size=tokenizer.get_vocab_size(), **sizes, **given)
    torch.manual_seed(0)
    model = auto.from_config(config)
    # Random weights of their usual size would make every text's vector about the same.
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder)


def bytewise(folder, special=("[PAD]", "[UNK]", "[CLS]", "[SEP]")):
    """Give a model a tokenizer of single bytes, as byte-level BPE without a merge has them."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    used = sorted({b for piece, _ in split.pre_tokenize_str(" ".join(TEXTS)) for b in piece})
    numbers = {token: number for number, token in enumerate([*special, *used])}
    made = Tokenizer(models.BPE(numbers, [], unk_token="[UNK]" if "[UNK]" in special else None))
    made.pre_tokenizer = split
    made.add_special_tokens([*special])
    around = [(name, numbers[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, around)
    made.save(str(folder / "tokenizer.json"))
