"""Tokenizers in the manner of published ones: other special tokens, other pipelines, other ids."""

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from transformer_core.text import Tokenizer


def loaded(pipeline: tokenizers.Tokenizer) -> Tokenizer:
    return Tokenizer.from_json(pipeline.to_str())


def byte_vocabulary(*words: str) -> dict[str, int]:
    return {token: id_ for id_, token in enumerate([*sorted(pre_tokenizers.ByteLevel.alphabet()), *words])}


def test_like_bert_uncased() -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "##s", "un", "##aff"]
    pipeline = tokenizers.Tokenizer(models.WordPiece({w: 100 + k for k, w in enumerate(words)}, unk_token="[UNK]"))
    pipeline.normalizer = normalizers.BertNormalizer(lowercase=True)
    pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pipeline.post_processor = processors.BertProcessing(("[SEP]", 103), ("[CLS]", 102))
    pipeline.add_special_tokens(words[:5])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("CAFÉS [MASK] zoo", "Unaff")
    assert tokenizer.kind == "wordpiece"
    assert encoding.labels == ("[CLS]", "cafe", "·s", "[MASK]", "zoo", "[SEP]", "un", "·aff", "[SEP]")
    assert encoding.unknown.index(True) == 4
    assert [encoding.surface(k) for k in (1, 2, 4, 6)] == ["CAFÉ", "S", "zoo", "Un"]
    assert encoding.segment_ids == (0,) * 6 + (1,) * 3
    assert (tokenizer.pad_id, tokenizer.cls_id, tokenizer.mask_id, tokenizer.bos_id) == (100, 102, 104, None)
    assert tokenizer.vocab_size == 109
    assert tokenizer.label_of(0) == "<unused>"


def test_like_gpt_2() -> None:
    vocabulary = byte_vocabulary("Ġc", "Ġca", "Ġcat", "<|endoftext|>")
    pipeline = tokenizers.Tokenizer(models.BPE(vocabulary, [("Ġ", "c"), ("Ġc", "a"), ("Ġca", "t")], dropout=0.5))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pipeline.post_processor = processors.ByteLevel(trim_offsets=False)
    pipeline.decoder = decoders.ByteLevel()
    pipeline.add_special_tokens(["<|endoftext|>"])
    pipeline.add_tokens(["Ġ龍"])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("a cat你<|endoftext|>Ġ龍")
    assert tokenizer.kind == "bpe"
    assert encoding.labels == ("a", "␣cat", "你 1/3", "你 2/3", "你 3/3", "<|endoftext|>", "Ġ龍")
    assert encoding.special == (False,) * 5 + (True, False)
    assert encoding.surface(1) == " cat"
    assert tokenizer.bos_id == tokenizer.eos_id == 259
    assert tokenizer.pad_id is tokenizer.unk_id is tokenizer.cls_id is None
    assert {tokenizer.encode("a cat").ids for _ in range(20)} == {encoding.ids[:2]}


def test_like_roberta() -> None:
    vocabulary = byte_vocabulary("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    pipeline = tokenizers.Tokenizer(models.BPE(vocabulary, []))
    pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    pipeline.post_processor = processors.RobertaProcessing(("</s>", 258), ("<s>", 256))
    pipeline.decoder = decoders.ByteLevel()
    mask = AddedToken("<mask>", lstrip=True, special=True)
    pipeline.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", mask])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("a <mask>", "b", max_len=9)
    assert encoding.labels == ("<s>", "␣", "a", "<mask>", "</s>", "</s>", "␣", "b", "</s>")
    assert encoding.segment_ids == (0, 0, 0, 0, 0, 0, 1, 1, 0)
    assert [encoding.surface(k) for k in (1, 2, 3, 7)] == ["", "a", "<mask>", "b"]
    assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.mask_id) == (256, 257, 258, 260)


def test_like_llama() -> None:
    words = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "c",
        "a",
        "t",
        "▁c",
        "at",
        "▁cat",
    ]
    vocabulary = {word: id_ for id_, word in enumerate(words)}
    merges = [("▁", "c"), ("a", "t"), ("▁c", "at")]
    model = models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    pipeline = tokenizers.Tokenizer(model)
    pipeline.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    pipeline.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    pipeline.decoder = decoders.Sequence(steps)
    pipeline.add_special_tokens(words[:3])
    tokenizer = loaded(pipeline)

    encoding = tokenizer.encode("cat 你")
    assert encoding.labels == ("<s>", "␣cat", "␣", "你 1/3", "你 2/3", "你 3/3")
    assert [encoding.surface(k) for k in (1, 3, 5)] == ["cat", "你", "你"]
    assert tokenizer.decode(encoding.ids) == "cat 你"


def test_characters_by_another_pattern() -> None:
    pipeline = tokenizers.Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, " ": 2}, unk_token="<unk>"))
    pipeline.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = loaded(pipeline)
    assert tokenizer.kind == "character"
    assert tokenizer.encode("a b").labels == ("a", "␣", "b")
    assert tokenizer.encode("a b").unknown == (False, False, True)
