"""Special tokens: vocabulary entries that stand for structure rather than for text.

Source: Devlin et al. 2019, section 3 ([CLS], [SEP], [MASK]); [BOS] and [EOS] as in sequence-to-sequence practice.
"""

PAD, UNK, CLS, SEP, MASK, BOS, EOS = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[BOS]", "[EOS]")

# Every vocabulary trained here begins with SPECIAL_TOKENS, so that their ids are the same in all of them.
PAD_ID, UNK_ID, CLS_ID, SEP_ID, MASK_ID, BOS_ID, EOS_ID = range(len(SPECIAL_TOKENS))

# What vocabularies trained elsewhere call the same thing, most specific name first.
NAMES_ELSEWHERE = {
    PAD: ("<pad>", "<|pad|>"),
    UNK: ("<unk>",),
    CLS: ("<s>",),
    SEP: ("</s>",),
    MASK: ("<mask>",),
    BOS: ("<s>", "<|startoftext|>", "<|begin_of_text|>", "<|endoftext|>"),
    EOS: ("</s>", "<|end_of_text|>", "<|endoftext|>"),
}
