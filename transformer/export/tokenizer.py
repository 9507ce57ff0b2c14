"""Our words and byte pairs as a fast tokenizer of Hugging Face's ``transformers`` (chapter 11)."""

import json
from pathlib import Path

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from transformer.data.text import BytePairEncoding, Tokenizing, Vocabulary, line_normalizer
from transformer.data.tokens import EOS_ID, SPECIALS
from transformer.files import replace_file

_PAD, _BOS, _EOS, _UNK = SPECIALS


def save_tokenizer(
    tokenizer: Tokenizing, folder: str | Path, *, max_len: int, lowercase: bool = False
) -> None:
    """Writes what ``AutoTokenizer.from_pretrained(folder)`` loads; chapter 11.

    It gives the ids that ``translate`` reads: those of ``tokenizer.encode`` for the line as
    ``clean_line`` leaves it, in small letters if ``lowercase``, and then <eos>.
    """
    made = _words(tokenizer) if isinstance(tokenizer, Vocabulary) else _byte_pairs(tokenizer)
    line = line_normalizer(lowercase=lowercase)
    made.normalizer = normalizers.Sequence([line, made.normalizer])
    made.post_processor = processors.TemplateProcessing(
        single=f"$A {_EOS}", pair=f"$A {_EOS} $B {_EOS}", special_tokens=[(_EOS, EOS_ID)]
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{"pad_token": _PAD, "bos_token": _BOS, "eos_token": _EOS, "unk_token": _UNK},
        "split_special_tokens": True,  # a literal "<eos>" is text like any other
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": max_len,
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / "tokenizer.json", made.to_str(pretty=True))
    replace_file(folder / "tokenizer_config.json", json.dumps(settings, indent=1) + "\n")


def _byte_pairs(tokenizer: BytePairEncoding) -> Tokenizer:
    return Tokenizer.from_str(tokenizer.to_json())


def _words(vocabulary: Vocabulary) -> Tokenizer:
    """A table of words that knows no specials in a text, as ours does."""
    words = vocabulary.words(range(len(vocabulary)))
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=_UNK))
    made.add_special_tokens([AddedToken(word, special=True) for word in SPECIALS])
    a_special = Regex(rf"(?<!\S)({'|'.join(SPECIALS)})(?!\S)")
    made.normalizer = normalizers.Replace(a_special, _UNK)
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made
