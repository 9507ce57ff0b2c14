"""A decoder without an encoder: GPT, and the models of today (chapters 14 and 15)."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.cache import Caches, KeyValueCache, Rows, WindowCache, takes_cache
from transformer.checks import check_positive, has_values
from transformer.family.config import FamilyConfig
from transformer.family.stack import Stack
from transformer.layers import initialise
from transformer.masks import decoder_mask, note_of, noted, padding_mask, word_positions


class DecoderOnly(Stack):
    """p(token | the tokens before it): a stack of blocks under the causal mask; chapter 14.

    Radford et al. (2018), Eq. 2. ``model(tokens)`` gives the logits of the token after each.
    Decoding (chapter 10) goes on from prompts.

    Layers with a window see the last ``config.window`` positions alone, and keep no others.

    Tokens equal to ``config.pad_id`` are padding, which nothing attends to and no position is
    counted for; prompts of different lengths are padded on the left. With a ``pad_id`` of None, as
    in the published GPT-2, every token is text, wherever it stands: prompts that are decoded
    together are of one length, or a ``pad_id`` is chosen that stands in none of them.
    """

    def __init__(self, config: FamilyConfig):
        super().__init__(config)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        initialise(self.output)
        if config.tie_embeddings:
            self.output.weight = self.embedding.tokens.weight

    @property
    def tgt_vocab_size(self) -> int:
        return self.config.vocab_size

    @property
    def takes_cache(self) -> bool:
        """Whether all attention takes a cache; parts from elsewhere may not."""
        return all(map(takes_cache, self.blocks))

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T vocab_size"]:
        """The logits after each token; ValueError for unknown ids and lengths past ``max_len``."""
        return self.read(tokens, self.padding_mask(tokens))

    def read(
        self,
        tokens: Int[Tensor, "B T"],
        words: Bool[Tensor, "B 1 1 T"],
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "B T vocab_size"]:
        """The logits after each token; ``words`` is a mask, ``caches``, if any, are empty."""
        x = self.embedding(tokens, word_positions(words))
        mask, window = decoder_mask(words), self.config.window
        local = mask if window is None else decoder_mask(words, window)
        return self.output(self.run(x, mask, caches, local=local))

    def encode(self, src: Int[Tensor, "B P"]) -> "PromptMemory":
        """The prompts, as what decoding without a cache reads anew at each step."""
        if src.size(1):
            self._prompt(src)
        return PromptMemory(src)

    def decode(
        self, tgt: Int[Tensor, "B T"], memory: "PromptMemory"
    ) -> Float[Tensor, "B T vocab_size"]:
        """The logits after each token of ``tgt``, which follows the prompt."""
        return self(torch.cat([memory.tokens, tgt], dim=1))[:, memory.tokens.size(1) :]

    def start_decoding(self, src: Int[Tensor, "B P"], *, max_len: int) -> "PromptState":
        """Reads the prompts at once, and makes room for ``max_len`` tokens more; chapter 10."""
        check_positive(max_len=max_len)
        length = src.size(1) + max_len
        if length > self.max_len:
            raise ValueError(
                f"the prompt and max_len together must be at most {self.max_len}, got {length}"
            )
        caches = [
            KeyValueCache(length) if window is None else WindowCache(length, window)
            for window in self.config.windows
        ]
        if not src.size(1):
            return PromptState(noted(padding_mask(src), "full"), caches)
        words = self._prompt(src)
        self.read(src, words, caches)
        return PromptState(words, caches)

    def decode_next(
        self, tokens: Int[Tensor, " B"], state: "PromptState"
    ) -> Float[Tensor, "B vocab_size"]:
        """The logits after one more token of each text; ``state`` grows by it.

        The tokens are not checked: they are what the last step's logits chose.
        """
        x = self.embedding(tokens[:, None], state.next_position())
        local = state.mask(self.config.window)
        return self.output(self.run(x, state.mask(), state.caches, local=local))[:, 0]

    def _prompt(self, src: Tensor) -> Bool[Tensor, "B 1 1 P"]:
        """A mask, True at the words of prompts; ValueError where padding stands behind one."""
        words = self.padding_mask(src, "src")
        if note_of(words) != "full" and has_values(src):
            ends = words[:, 0, 0]
            if (ends[:, 1:] < ends[:, :-1]).any():
                raise ValueError(
                    f"src must be padded on the left, for what is written follows the prompt; got "
                    f"the padding id {self.pad_id} behind a word"
                )
        return words


class PromptMemory:
    """A prompt, as the memory of decoding without a cache; chapter 14."""

    def __init__(self, tokens: Int[Tensor, "B P"]):
        self.tokens = tokens

    def select(self, rows: Rows) -> "PromptMemory":
        """The prompts of these texts alone, in this order."""
        return PromptMemory(self.tokens[rows])


class PromptState(Caches):
    """The state between steps: caches, and which of their positions are words; chapter 14."""

    def __init__(self, words: Bool[Tensor, "B 1 1 P"], caches: Sequence[KeyValueCache]):
        super().__init__(caches)
        if note_of(words) != "full":
            self.n_padding = (~words).sum(dim=-1)[:, 0]  # (B, 1)
            room = caches[0].max_len - words.size(-1)
            self.words = F.pad(words, (0, room), value=True)  # what is written is a word

    def join(self, other: "PromptState") -> None:
        """Puts the texts of another state below these, however much each has read; chapter 17.

        Raises ValueError where prompts are padded, or none was read yet.
        """
        if self.words is not None or other.words is not None:
            raise ValueError("prompts of states that join must be without padding, got some")
        for mine, its in zip(self.caches, other.caches, strict=True):
            mine.join(its)

    def select(self, rows: Rows) -> None:
        """Keeps these texts, in this order."""
        super().select(rows)
        if self.words is not None:
            self.words = self.words[rows]
        if isinstance(self.n_padding, Tensor):
            self.n_padding = self.n_padding[rows]
