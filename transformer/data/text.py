"""The text of a line; sentences to ids and back, as words and byte pairs (chapters 9, 11)."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from transformer.checks import check_positive
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Ids, Sentence
from transformer.files import replace_file
from transformer.saved import read_json

_FORMAT = "transformer.data.text.Vocabulary"


def clean_line(line: str, *, lowercase: bool = False) -> str:
    r"""The text of a line, as it is cleaned wherever lines are read or written; chapter 11.

    A control character (``\r``, NUL, U+0085 …), a line or paragraph separator and the
    zero-width space, U+200B, become a space each; the byte-order mark, U+FEFF, is dropped wherever
    it stands. Letters and their marks are put in Unicode's normal form C, and white space around
    the line is dropped. All else stays to the letter: tabs, no-break spaces, runs of spaces,
    joiners.

    ``lowercase`` makes small letters, as ``str.lower`` does: a Σ that ends a word becomes ς.
    """
    return line_normalizer(lowercase=lowercase).normalize_str(line)


@lru_cache
def line_normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    """``clean_line`` for the ``tokenizers`` library, which writes it into what is exported."""
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(Regex(r"[^\P{Cc}\t]|[\p{Zl}\p{Zp}\x{200B}]"), " "),
        normalizers.Replace("\ufeff", ""),
    ]
    if lowercase:
        last_in_a_word = r"\p{Cased}\p{Case_Ignorable}*\KΣ(?!\p{Case_Ignorable}*\p{Cased})"
        steps += [normalizers.Replace(Regex(last_in_a_word), "ς"), normalizers.Lowercase()]
    return normalizers.Sequence([*steps, normalizers.NFC(), normalizers.Strip()])


class Vocabulary:
    """A table of words: the four specials, then ``words`` in the order given; chapter 9.

    Words are compared in Unicode's normal form C, so that é is one word however it was typed. The
    specials belong to no text: to ``encode``, a literal "<eos>" is an unknown word.

    Raises ValueError for a word that comes twice, is empty, holds white space or is a special.
    """

    def __init__(self, words: Iterable[str]):
        _check_sentences(words=words)
        self._words = list(SPECIALS)
        self._ids: dict[str, int] = {}
        for word in _split(list(words)):
            if word.split() != [word]:
                raise ValueError(f"words must be without white space and not empty, got {word!r}")
            if word in self._ids or word in SPECIALS:
                raise ValueError(f"words must differ from each other and {SPECIALS}, got {word!r}")
            self._ids[word] = len(self._words)
            self._words.append(word)

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sentence], *, min_count: int = 1, max_size: int | None = None
    ) -> "Vocabulary":
        """The words of ``sentences``, the most frequent first, ties in alphabetical order.

        ``max_size`` bounds the length of the vocabulary, specials included.

        Raises ValueError for a single str, ``min_count`` below 1, ``max_size`` below 5.
        """
        _check_sentences(sentences=sentences)
        check_positive(min_count=min_count)
        if max_size is not None:
            check_positive(max_size=max_size)
            if max_size <= len(SPECIALS):
                raise ValueError(
                    f"max_size must be at least 5, four specials and a word, got {max_size}"
                )
        counts = Counter(word for sentence in sentences for word in _split(sentence))
        words = [w for w, n in counts.items() if n >= min_count and w not in SPECIALS]
        words.sort(key=lambda word: (-counts[word], word))
        return cls(words if max_size is None else words[: max_size - len(SPECIALS)])

    def __len__(self) -> int:
        return len(self._words)

    def encode(self, text: Sentence) -> list[int]:
        """One id a word, without <bos> and <eos>; a str is split at white space."""
        return [self._ids.get(word, UNK_ID) for word in _split(text)]

    def decode(self, ids: Ids) -> str:
        """The words before the first <eos>, joined by spaces; specials are left out."""
        return " ".join(self._words[i] for i in _before_eos(ids, len(self)) if i >= len(SPECIALS))

    def words(self, ids: Ids) -> list[str]:
        """The word of each id, specials included: labels for an axis."""
        return [self._words[i] for i in _listed(ids, len(self))]

    def save(self, path: str | Path) -> None:
        """Writes JSON in one step: whoever reads the file meets the old one or the new one."""
        stored = {"format": _FORMAT, "words": list(self._ids)}
        replace_file(path, json.dumps(stored, ensure_ascii=False, indent=0))

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """The vocabulary of a file; ValueError, which names it, if ``save`` did not write it."""
        stored = read_json(Path(path), _FORMAT, "a saved Vocabulary", words=list)
        try:
            return cls(stored["words"])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a saved Vocabulary: {error!r}") from error


class BytePairEncoding:
    """Pieces of words, merged from bytes: Sennrich et al. (2016), section 3.2; chapter 11.

    Starting from bytes as Radford et al. (2019), section 2.2, do, it meets no unknown character.
    Text is put in Unicode's normal form C, and comes back from ``decode`` to the letter, spaces
    included. Lower-casing is the caller's. Made by ``train`` or ``load``.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._tokenizer.encode_special_tokens = True  # a literal "<eos>" is text like any other

    @classmethod
    def train(cls, lines: Iterable[str], *, vocab_size: int) -> "BytePairEncoding":
        """Merges the most frequent pair again and again, up to ``vocab_size`` tokens.

        That counts the specials and the 256 bytes. Fewer come out where no pair is seen twice.

        Raises ValueError for a single str and for ``vocab_size`` below 260.
        """
        _check_sentences(lines=lines)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        if vocab_size < len(SPECIALS) + len(alphabet):
            raise ValueError(
                f"vocab_size must be at least 260, specials and bytes, got {vocab_size}"
            )
        tokenizer = Tokenizer(models.BPE())
        # A space in front, so that the first word is written like those that follow.
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Prepend(" ")])
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=2,
            special_tokens=list(SPECIALS),
            initial_alphabet=alphabet,
            show_progress=False,
        )
        tokenizer.train_from_iterator(lines, trainer)
        return cls(tokenizer)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def encode(self, text: Sentence) -> list[int]:
        """The ids of a line, or of words joined by spaces, without <bos> and <eos>."""
        return self._tokenizer.encode(text if isinstance(text, str) else " ".join(text)).ids

    def decode(self, ids: Ids) -> str:
        """The text of the pieces before the first <eos>; specials are left out."""
        return self._tokenizer.decode(_before_eos(ids, len(self)))

    def words(self, ids: Ids) -> list[str]:
        """The text of each piece, specials included; one that starts a word starts with a space."""
        show = decoders.ByteLevel().decode
        pieces = map(self._tokenizer.id_to_token, _listed(ids, len(self)))
        return [show([piece]) for piece in pieces if piece is not None]  # all are in the vocabulary

    def save(self, path: str | Path) -> None:
        """Writes the JSON of the ``tokenizers`` library in one step."""
        replace_file(path, self.to_json())

    def to_json(self) -> str:
        """The JSON that ``Tokenizer.from_str`` of the ``tokenizers`` library reads."""
        return self._tokenizer.to_str()

    @classmethod
    def load(cls, path: str | Path) -> "BytePairEncoding":
        """The tokenizer of a file; ValueError, which names it, if ``save`` did not write it."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{path} is not a saved BytePairEncoding: {error}") from error

    @classmethod
    def from_json(cls, data: str | bytes) -> "BytePairEncoding":
        """The tokenizer that ``to_json`` wrote; ValueError for anything else."""
        try:
            tokenizer = Tokenizer.from_buffer(data.encode() if isinstance(data, str) else data)
        except Exception as error:  # the library's own errors are of no narrower class
            raise ValueError(str(error)) from error
        if [tokenizer.token_to_id(word) for word in SPECIALS] != [PAD_ID, BOS_ID, EOS_ID, UNK_ID]:
            raise ValueError(f"{SPECIALS} are not 0 to 3")
        return cls(tokenizer)

    def __reduce__(self) -> tuple[Any, ...]:
        return BytePairEncoding.from_json, (self.to_json(),)


Tokenizing = Vocabulary | BytePairEncoding


def _split(text: Sentence) -> list[str]:
    words = text.split() if isinstance(text, str) else text
    return [unicodedata.normalize("NFC", word) for word in words]


def _listed(ids: Ids, size: int) -> list[int]:
    if isinstance(ids, Tensor) and ids.dim() != 1:
        raise ValueError(f"ids must be those of one sentence, got shape {tuple(ids.shape)}")
    ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
    for i in ids:
        if not 0 <= i < size:
            raise ValueError(f"ids must lie between 0 and {size - 1}, got {i}")
    return ids


def _before_eos(ids: Ids, size: int) -> list[int]:
    ids = _listed(ids, size)
    return ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids


def _check_sentences(**strings: Iterable[Sentence]) -> None:
    for name, value in strings.items():
        if isinstance(value, str):
            raise ValueError(f"{name} must be an iterable of {name}, got the str {value!r:.60}")
