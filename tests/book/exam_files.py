"""Files that sit the exam: right ones in several styles, and wrong ones with what is said of them.

The wrong ones are edits of the page's solution: name -> (what is there, what is put in its place,
the first part that is wrong, a piece of what it is told, further edits).
"""

from typing import NamedTuple

import nbformat

from tools.chapters import ROOT, code_cells

PAGE = ROOT / "chapters" / "the_exam.ipynb"


def solution() -> str:
    """What the page's solution cells write, one after the other."""
    cells = code_cells(nbformat.read(PAGE, as_version=4))
    return "".join(
        cell.source.partition("\n")[2] + "\n" for cell in cells if cell.id.startswith("solution-")
    )


def edited(source: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        if old not in source:
            raise ValueError(f"old must be in the source, got {old!r}")
        source = source.replace(old, new)
    return source


BY_HEAD = """\
    def book_names(self):
        def of_all_heads(name):
            parts = [getattr(head, name) for head in self.heads]
            return torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])

        return {name: of_all_heads(name) for name in ("W_q", "W_k", "W_v")}
"""
FROM_THE_EVENING = (
    ("def positions(T):  # (T, d_model)", "def positions(T, d_model):"),
    ("def __init__(self, n_words):\n", "def __init__(self, n_words, d_model):\n"),
    ("        self.rows =", "        self.d_model = d_model\n        self.rows ="),
    ("* math.sqrt(d_model)", "* math.sqrt(self.d_model)"),
    ("positions(ids.size(1))", "positions(ids.size(1), self.d_model)"),
    ("def __init__(self, d_head=d_model):", "def __init__(self, d_model, d_head):"),
    ("Attention(d_head) for", "Attention(d_model, d_head) for"),
    ("class MultiHeadAttention(nn.Module):\n    def __init__(self):",
     "class MultiHeadAttention(nn.Module):\n    def __init__(self, d_model, n_heads):"),
    ("class FeedForward(nn.Module):\n    def __init__(self):",
     "class FeedForward(nn.Module):\n    def __init__(self, d_model, d_ff):"),
    ("2 * d_model", "d_ff"),
    ("Layer(nn.Module):\n    def __init__(self):",
     "Layer(nn.Module):\n    def __init__(self, d_model, n_heads, d_ff):"),
    ("MultiHeadAttention()", "MultiHeadAttention(d_model, n_heads)"),
    ("FeedForward()", "FeedForward(d_model, d_ff)"),
    ("class Transformer(nn.Module):\n    def __init__(self):",
     "class Transformer(nn.Module):\n"
     "    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, n_layers, d_ff):"),
    ("Layer()", "Layer(d_model, n_heads, d_ff)"),
    ("Embedding(len(english))", "Embedding(src_vocab, d_model)"),
    ("Embedding(len(french))", "Embedding(tgt_vocab, d_model)"),
    ("len(french), bias", "tgt_vocab, bias"),
    ("(src != PAD)[:, None]", "padding_mask(src)"),
    ("        return self.W_o(torch.cat(answers, dim=-1))\n",
     "        return self.W_o(torch.cat(answers, dim=-1))\n\n" + BY_HEAD),
)  # fmt: skip


def from_the_evening() -> str:
    """What the reader of One evening has, changed as the page says."""
    evening = (ROOT / "chapters" / "translator.py").read_text(encoding="utf-8")
    parts = evening[evening.index("class Attention(") : evening.index("if __name__")]
    page = solution()
    scores = parts[parts.index("        scores =") : parts.index("def positions")]
    parts = parts.replace(scores, "        return attention(q, k, v, mask)\n\n\n")
    imports_and_attention = page[: page.index("def causal_mask")]
    mask = "def padding_mask(tokens):\n    return (tokens != 0)[:, None]\n\n\n"
    ids = page[page.index("def loss") :]
    return imports_and_attention + mask + edited(parts, *FROM_THE_EVENING) + ids


FUSED = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.qkv = nn.Linear(d_model, 3 * d_model)

    def forward(self, query, key, value, mask=None):
        d = query.size(-1)
        weights, biases = self.qkv.weight.split(d), self.qkv.bias.split(d)
        q, k, v = (
            (torch.einsum("btd,ed->bte", x, w) + b).unflatten(-1, (self.h, -1))
            for x, w, b in zip((query, key, value), weights, biases)
        )
        scores = torch.einsum("bthe,bshe->bhts", q, k) / math.sqrt(d // self.h)
        scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
        return self.out(torch.einsum("bhts,bshe->bthe", scores.softmax(-1), v).flatten(2))

    def book_names(self):
        q, k, v = zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3))
        return {"W_q": q, "W_k": k, "W_v": v, "W_o": self.out}
"""
BARE = """
def table(*shape):
    return nn.Parameter(torch.randn(shape) / shape[-1] ** 0.5)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.o, self.v, self.k, self.q = (table(d_model, d_model) for _ in range(4))

    def forward(self, x, memory, mask=None):
        def cut(rows):
            return rows.view(*rows.shape[:2], self.n_heads, -1).transpose(1, 2)

        answers = attention(cut(x @ self.q), cut(memory @ self.k), cut(memory @ self.v), mask)
        return answers.transpose(1, 2).reshape(x.shape) @ self.o

    def book_names(self):
        return {"W_q": self.q.T, "W_k": self.k.T, "W_v": self.v.T, "W_o": self.o.T}


class Norm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        return self.gamma * x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() + self.beta

    def book_names(self):
        return {"weight": self.gamma, "bias": self.beta}
"""
PRE = (
    ("        x = self.norm_1(x + self.self_attention(x, x, mask))\n", """\
        z = self.norm_1(x)
        x = x + self.self_attention(z, z, mask)
"""),
    ("self.norm_2(x + self.feed_forward(x))", "x + self.feed_forward(self.norm_2(x))"),
    ("        y = self.norm_1(y + self.self_attention(y, y, tgt_mask))\n", """\
        z = self.norm_1(y)
        y = y + self.self_attention(z, z, tgt_mask)
"""),
    ("self.norm_2(y + self.cross_attention(y, memory, src_mask))",
     "y + self.drop(self.cross_attention(self.norm_2(y), memory, src_mask))"),
    ("self.norm_3(y + self.feed_forward(y))", "y + self.feed_forward(self.norm_3(y))"),
    ("        self.norm_3 = nn.LayerNorm(d_model)\n", """\
        self.norm_3, self.drop = nn.LayerNorm(d_model), nn.Dropout(0.1)
"""),
)  # fmt: skip
LAST_NORMS = (
    ("        self.output = nn.Linear(d_model, tgt_vocab)\n", """\
        self.decoder_norm, self.encoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, tgt_vocab, bias=False)
        self.output.weight = self.tgt_embedding.rows.weight
"""),
    ("        for layer in self.decoder:", """\
        memory = self.encoder_norm(memory)
        for layer in self.decoder:"""),
    ("self.output(y)", "self.output(self.decoder_norm(y))"),
)  # fmt: skip


def with_heads(source: str, heads: str) -> str:
    """``source`` with other heads in the place of its own."""
    before, _, rest = source.partition("class MultiHeadAttention")
    return before + heads.lstrip() + "\n\n" + rest[rest.index("# @title") :]


def right_files() -> dict[str, str]:
    """The page's, post-LN with masks of four axes, and others that do the same otherwise."""
    page = solution()
    fused = with_heads(page, FUSED)
    for a in ("x", "y"):
        fused = fused.replace(f"self_attention({a}, {a},", f"self_attention({a}, {a}, {a},")
    fused = edited(fused, ("cross_attention(y, memory,", "cross_attention(y, memory, memory,"))
    return {
        "the page's": page,
        "the evening's, a loop over heads, masks of three axes": from_the_evening(),
        "pre-LN, dropout, tied output": edited(page, *PRE, *LAST_NORMS),
        "fused weights, einsum, query key value": fused,
        "bare parameters, turned and in another order, norms by hand": edited(
            with_heads(page, BARE), ("nn.LayerNorm(", "Norm(")
        ),
    }


class WrongFile(NamedTuple):
    old: str
    new: str
    part: str  # the first that is wrong
    text: str  # a piece of what it is told: of the one hint that comes, where one does
    also: tuple[tuple[str, str], ...] = ()  # further edits, before that one


ROOT_D = " / math.sqrt(q.size(-1))"
FILL = "masked_fill(~mask, -math.inf)"
SPLIT = "x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)"
CALL = "attention(q, k, v, mask)"
SOFTMAX = (
    "(q @ k.mT / math.sqrt(q.size(-1)) - (0 if mask is None else 1e9 * ~mask)).softmax({}) @ v"
)
JOIN = "answers.transpose(1, 2).flatten(2)"
HEADS, ENCODER, DECODER = "MultiHeadAttention", "EncoderLayer", "DecoderLayer"
SUM_1 = "self.norm_1(x + self.self_attention(x, x, mask))"
SUM_2 = "self.norm_2(y + self.cross_attention(y, memory, src_mask))"
SUM_3 = "self.norm_3(y + self.feed_forward(y))"
LIST = "nn.ModuleList(EncoderLayer(*sizes) for _ in range(n_layers))"
NORM = "self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)\n"
SCALE = "* math.sqrt(self.d_model)"
SCALE_IF = "* (math.sqrt(self.d_model) if {} else 1)"
MARKED = (("self.output =", "self.src_embedding.is_target = False\n        "
           "self.tgt_embedding.is_target = True\n        self.output ="),)  # fmt: skip
WITH_ROOT = (("self.output =", "self.root = math.sqrt(d_model)\n        self.output ="),)
BY_PLACE = "F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=0, reduction='none')"
LOSS = "F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)"
WORDS_ON_AXIS_1 = "cross_entropy wants the words on axis 1: flatten both, or logits.transpose"
WRONG_FILES = {
    "no scale": WrongFile(ROOT_D, "", "attention", "not divided by √d_k"),
    "d_k for its root": WrongFile(ROOT_D, " / q.size(-1)", "attention", "not by d_k itself"),
    "softmax over queries": WrongFile(
        "softmax(dim=-1)", "softmax(dim=-2)", "attention", "runs over the queries"
    ),
    "mask turned round": WrongFile(FILL, FILL.replace("~", ""), "attention", "other way round"),
    "mask not used": WrongFile("if mask is not None", "if False", "attention", "mask is not used"),
    "hidden keys score 0": WrongFile(
        FILL, FILL.replace("-math.inf", "0.0"), "attention", "gets the score 0"
    ),
    "mask after the softmax": WrongFile(
        f"""    if mask is not None:
        scores = scores.{FILL}
    return scores.softmax(dim=-1) @ v""",
        """    weights = scores.softmax(dim=-1)
    return (weights if mask is None else weights * mask) @ v""",
        "attention",
        "mask comes after the softmax",
    ),
    "q is changed": WrongFile(
        "    scores = q @", "    q *= 1\n    q += 0.1 * q\n    scores = q @", "attention", "differ"
    ),
    "q is scaled in place": WrongFile(
        f"scores = q @ k.transpose(-2, -1){ROOT_D}",
        "scores = q.div_(math.sqrt(q.size(-1))) @ k.transpose(-2, -1)",
        "attention",
        "it changes q itself",
    ),
    "multiplied by the root": WrongFile(
        ROOT_D, " * math.sqrt(q.size(-1))", "attention", "multiplied by √d_k; divide"
    ),
    "softmax over axis 1": WrongFile("softmax(dim=-1)", "softmax(dim=1)", "attention", "dim=1"),
    "hidden keys score -20": WrongFile(
        FILL, FILL.replace("-math.inf", "-20.0"), "attention", "numbers differ"
    ),
    "attention for one size": WrongFile(
        ROOT_D, " / 2", "attention", "shape (1, 2, 2)"
    ),
    "attention stops": WrongFile(
        "k.transpose(-2, -1)", "k.transpose(1, 2)", "attention", "your code stopped"
    ),
    "the past hidden": WrongFile(".tril()", ".triu()", "causal_mask", "shows the future"),
    "itself hidden": WrongFile(".tril()", ".tril(-1)", "causal_mask", "the diagonal is True"),
    "the future is True": WrongFile(
        "bool).tril()", "bool).triu(1)", "causal_mask", "says where it may not"
    ),
    "no past, no future": WrongFile(
        "bool).tril()", "bool)", "causal_mask", "it hides nothing, not even the future"
    ),
    "additive mask": WrongFile(
        "torch.ones(T, T, dtype=torch.bool).tril()",
        "torch.full((T, T), -math.inf).triu(1)",
        "causal_mask",
        "holds True and False",
    ),
    "padding is shown": WrongFile(
        "tokens != 0", "tokens == 0", "padding_mask", "says where there is none"
    ),
    "eos is padding": WrongFile("tokens != 0", "tokens > 2", "padding_mask", "only 0 is padding"),
    "padding is not hidden": WrongFile(
        "tokens != 0", "tokens > -1", "padding_mask", "it hides nothing, not even padding"
    ),
    "mask (B, S)": WrongFile("[:, None, None]", "", "padding_mask", "Give it an axis between"),
    "sines, then cosines": WrongFile(
        "torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)",
        "torch.cat([angles.sin(), angles.cos()], dim=-1)",
        "positions",
        "all sines, then all cosines",
    ),
    "first place 1": WrongFile(
        "torch.arange(T)[", "(torch.arange(T) + 1)[", "positions", "number 0"
    ),
    "cosines first": WrongFile(
        "[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]", "positions",
        "begins with the sine",
    ),
    "twice the exponent": WrongFile("(-torch.", "(-2 * torch.", "positions", "yours is 4i"),
    "half the exponent": WrongFile("(-torch.", "(-0.5 * torch.", "positions", "yours is i /"),
    "positions for short sentences": WrongFile(
        "torch.arange(T)[", "torch.arange(T).clamp(max=20)[", "positions", "numbers differ"
    ),
    "other arguments": WrongFile(
        "def positions(T, d_model):", "def positions(T):\n    d_model = 8", "positions",
        "the exam calls positions(T, d_model)",
    ),
    "arguments exchanged": WrongFile(
        "def positions(T, d_model):", "def positions(d_model, T):", "positions",
        "the first argument is T",
    ),
    "heads by view": WrongFile(
        SPLIT, "x.view(len(x), self.n_heads, x.size(1), -1)", HEADS, "by a view straight to"
    ),
    "heads by view there and back": WrongFile(
        SPLIT, "x.view(len(x), self.n_heads, x.size(1), -1)", HEADS,
        "here both where the rows are cut", also=((JOIN, "answers.reshape(x.shape)"),),
    ),
    "heads without the root": WrongFile(
        CALL, CALL.replace("(q,", "(q * math.sqrt(q.size(-1)),"), HEADS, "not divided by √d_k"
    ),
    "heads with √d_model": WrongFile(
        CALL, CALL.replace("(q,", "(q / math.sqrt(self.n_heads),"), HEADS, "the width of one head"
    ),
    "heads with d_k": WrongFile(
        CALL, CALL.replace("(q,", "(q / math.sqrt(q.size(-1)),"), HEADS, "not by d_k itself"
    ),
    "heads with a softmax over queries": WrongFile(
        CALL, SOFTMAX.format(-2), HEADS, "the softmax runs over the queries; it should"
    ),
    "heads with a softmax over axis 1": WrongFile(
        CALL, SOFTMAX.format(1), HEADS, "softmax(dim=1) runs over the heads"
    ),
    "heads exchanged with their width": WrongFile(
        "self.n_heads = n_heads", "self.n_heads = d_model // n_heads", HEADS,
        "there should be n_heads of them",
    ),
    "heads with dropout left on": WrongFile(
        "return self.W_o(", "return F.dropout(", HEADS, "stop at model.eval()"
    ),
    "heads turn the mask round": WrongFile(
        CALL, "attention(q, k, v, None if mask is None else ~mask)", HEADS,
        "yours hides those places",
    ),
    "memory asks for as many": WrongFile(
        "self.split(self.W_q(x))", "self.split(self.W_q(memory[:, : x.size(1)]))", HEADS,
        "its answer did not move",
    ),
    "heads joined by reshape": WrongFile(
        JOIN, "answers.reshape(x.shape)", HEADS, "transpose(1, 2) comes before the reshape"
    ),
    "one head": WrongFile("self.n_heads = n_heads", "self.n_heads = 1", HEADS, "one head as wide"),
    "two heads always": WrongFile(
        "self.n_heads = n_heads", "self.n_heads = 2", HEADS, "right for (8, 2), not for (4, 1)"
    ),
    "no W_o": WrongFile("return self.W_o(", "return (", HEADS, "W_o is not used"),
    "heads lose the mask": WrongFile(
        "attention(q, k, v, mask)", "attention(q, k, v)", HEADS, "does it reach your attention?"
    ),
    "memory asks": WrongFile(
        "q = self.split(self.W_q(x))\n        k, v = self.split(self.W_k(memory))",
        "q = self.split(self.W_q(memory))\n        k, v = self.split(self.W_k(x))",
        HEADS,
        "The queries come from x, keys and values from memory",
    ),
    "no residual": WrongFile(
        SUM_1, SUM_1.replace("x + ", ""), ENCODER, "around self-attention the plus sign is missing"
    ),
    "the normed rows are added": WrongFile(
        SUM_1, "self.norm_1(x) + self.self_attention(*[self.norm_1(x)] * 2, mask)", ENCODER,
        "at self-attention you add the normed rows",
    ),
    "a norm is not used": WrongFile(
        SUM_1, "x + self.self_attention(x, x, mask)", ENCODER, "the norm is made, but not used"
    ),
    "a norm beside": WrongFile(
        SUM_1, "self.norm_1(x) + self.self_attention(x, x, mask)", ENCODER,
        "the sub-layer does not get it",
    ),
    "self-attention left out": WrongFile(SUM_1, "self.norm_1(x)", ENCODER, "called, with x"),
    "the encoder's mask left out": WrongFile(
        "self_attention(x, x, mask)", "self_attention(x, x)", ENCODER, "Does the mask go on"
    ),
    "norms over places and features": WrongFile(
        "nn.LayerNorm(d_model)", "OverAll(d_model)", ENCODER, "over places and features at once"
    ),
    "norms by n - 1": WrongFile(
        "nn.LayerNorm(d_model)", "Sample(d_model)", ENCODER, "divides by d_model - 1"
    ),
    "norms keep the mean": WrongFile(
        "nn.LayerNorm(d_model)", "Rms(d_model)", ENCODER, "does not take the mean away"
    ),
    "GELU": WrongFile("self.W_1(x).relu()", "F.gelu(self.W_1(x))", ENCODER, "GELU stands"),
    "tanh": WrongFile(".relu()", ".tanh()", ENCODER, "tanh stands"),
    "norms over places": WrongFile(
        "nn.LayerNorm(d_model)", "Over(d_model)", ENCODER, "the norm runs over the places"
    ),
    "norms without a gain": WrongFile(
        "nn.LayerNorm(d_model)", "Bare(d_model)", ENCODER, "does not use its gain"
    ),
    "one norm for both sums": WrongFile(
        NORM, NORM.replace("self.norm_1, self.norm_2 =", "self.norm_1 = self.norm_2 =").replace(
            ", nn.LayerNorm(d_model)", ""
        ),
        ENCODER, "norm_1 and norm_2 are one and the same",
    ),
    "no ReLU": WrongFile(".relu()", "", ENCODER, "nothing bends"),
    "x is changed": WrongFile(
        SUM_1, SUM_1.replace("x + ", "x.add_(").replace("mask))", "mask)))"), ENCODER,
        "changes its argument x",
    ),
    "norm of the answer": WrongFile(
        SUM_3, "y + self.norm_3(self.feed_forward(y))", DECODER,
        "at the feed-forward network the norm is taken of the answer",
    ),
    "memory looks at y": WrongFile(
        SUM_2, SUM_2.replace("(y, memory,", "(memory, y,"), DECODER, "y asks and comes first"
    ),
    "memory not masked": WrongFile(
        SUM_2, SUM_2.replace("src_mask", "None"), DECODER, "it is still seen"
    ),
    "the future shown": WrongFile(
        "self.self_attention(y, y, tgt_mask)", "self.self_attention(y, y)", DECODER,
        "places before it moved",
    ),
    "masks exchanged": WrongFile(
        "memory, tgt_mask, src_mask):\n", "memory, src_mask, tgt_mask):\n", DECODER,
        "is tgt_mask the one before src_mask?",
    ),
    "the same heads twice": WrongFile(
        "self.cross_attention = MultiHeadAttention(d_model, n_heads)",
        "self.cross_attention = self.self_attention", DECODER,
        "self_attention and cross_attention are one and the same",
    ),
    "plain list": WrongFile(
        LIST, LIST.replace("nn.ModuleList(", "[").replace("n_layers))", "n_layers)]"),
        "Transformer", "put them into nn.ModuleList",
    ),
    "one layer n times": WrongFile(
        LIST, "nn.ModuleList([EncoderLayer(*sizes)] * n_layers)", "Transformer",
        "of 2 EncoderLayers there is only 1",
    ),
    "twice as many layers": WrongFile(
        LIST, LIST.replace("range(n_layers)", "range(2 * n_layers)"), "Transformer",
        "n_layers is 2, and the number of EncoderLayers is 4",
    ),
    "a layer less": WrongFile(
        LIST.replace("Encoder", "Decoder"),
        LIST.replace("Encoder", "Decoder").replace("range(n_layers)", "range(n_layers - 1)"),
        "Transformer", "n_layers is 2, and the number of DecoderLayers is 1",
    ),
    "padding mask of three axes": WrongFile(
        "[:, None, None]", "[:, None]", "Transformer",
        "your padding_mask has 3 axes, and your heads take masks of 4",
    ),
    "log-probabilities": WrongFile(
        "self.output(y)", "self.output(y).log_softmax(dim=-1)", "Transformer",
        "these are log-probabilities",
    ),
    "dropout left on": WrongFile(
        "self.output(y)", "self.output(F.dropout(y, 0.1))", "Transformer", "stop at model.eval()"
    ),
    "probabilities": WrongFile(
        "self.output(y)", "self.output(y).softmax(dim=-1)", "Transformer", "these are probabilities"
    ),
    "short table of positions": WrongFile(
        "x + positions(ids.size(1)", "x + positions(20", "Transformer", "your code stopped in line"
    ),
    "no causal mask": WrongFile(
        "causal_mask(tgt.size(1))\n", "padding_mask(tgt)\n",
        "Transformer, the future", "future leaks"
    ),
    "source without positions": WrongFile(
        "memory, y = self.src_embedding(src)", "memory, y = self.src_embedding.rows(src)",
        "Transformer, the source", "the encoder gets the bare rows of its words",
    ),
    "target without positions": WrongFile(
        "memory, y = self.src_embedding(src), self.tgt_embedding(tgt)",
        "memory, y = self.src_embedding(src), self.tgt_embedding.rows(tgt) * self.root",
        "Transformer, the numbers", "the words of the target have no positions", also=WITH_ROOT,
    ),
    "source without its positions": WrongFile(
        "memory, y = self.src_embedding(src), ",
        "memory, y = self.src_embedding.rows(src) * self.root, ",
        "Transformer, the source", "the words of the source have no positions", also=WITH_ROOT,
    ),
    "no positions": WrongFile(
        "return x + positions(ids.size(1), self.d_model)", "return x", "Transformer, the source",
        "no word has its position",
    ),
    "bare target": WrongFile(
        "self.tgt_embedding(tgt)", "self.tgt_embedding.rows(tgt)", "Transformer, the numbers",
        "the decoder gets the bare rows of its words",
    ),
    "bare memory": WrongFile(
        "            memory = layer(memory, src_mask)\n",
        "            layer(memory, src_mask)\n        memory = self.src_embedding.rows(src)\n",
        "Transformer, the source", "the decoder looks at the bare rows of the source",
    ),
    "encoder sees padding": WrongFile(
        "memory = layer(memory, src_mask)", "memory = layer(memory, src_mask | True)",
        "Transformer, padding", "one <pad> more",
    ),
    "sentences meet": WrongFile(
        "self.output(y)", "self.output(y + y.mean(dim=0))", "Transformer, padding",
        "a sentence gets other logits in a batch",
    ),
    "no √d_model for the source": WrongFile(
        SCALE, SCALE_IF.format("self.is_target"), "Transformer, the numbers",
        "the rows of the source are not multiplied", also=MARKED,
    ),
    "no √d_model for the target": WrongFile(
        SCALE, SCALE_IF.format("not self.is_target"), "Transformer, the numbers",
        "the rows of the target are not multiplied", also=MARKED,
    ),
    "divided by √d_model": WrongFile(
        SCALE, SCALE.replace("*", "/"), "Transformer, the numbers", "divided by √d_model; multiply"
    ),
    "d_model for its root": WrongFile(
        SCALE, "* self.d_model", "Transformer, the numbers", "multiplied by d_model; its root"
    ),
    "encoder's last norm not used": WrongFile(
        "memory = self.encoder_norm(memory)", "", "Transformer, the numbers",
        "the last norm of the encoder is not used", also=(*PRE, *LAST_NORMS),
    ),
    "decoder's last norm not used": WrongFile(
        "self.output(self.decoder_norm(y))", "self.output(y)", "Transformer, the numbers",
        "the last norm of the decoder is not used", also=(*PRE, *LAST_NORMS),
    ),
    "no √d_model": WrongFile(
        " * math.sqrt(self.d_model)", "", "Transformer, the numbers", "not multiplied by √d_model"
    ),
    "√d_model for positions, too": WrongFile(
        "x = self.rows(ids) * math.sqrt(self.d_model)\n        return x + positions(ids.size(1), "
        "self.d_model)",
        "x = self.rows(ids) + positions(ids.size(1), self.d_model)\n        return x * math.sqrt("
        "self.d_model)",
        "Transformer, the numbers", "multiplies the positions, too",
    ),
    "encoder left out": WrongFile(
        "            memory = layer(memory, src_mask)\n", "            layer(memory, src_mask)\n",
        "Transformer, the numbers", "what the encoder made of it",
    ),
    "padding counts": WrongFile(
        LOSS, LOSS.replace(", ignore_index=0", ""), "loss", "left out (section 9.2)"
    ),
    "padding counts in the step": WrongFile(
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:])",
        "F.cross_entropy(model(src, tgt[:, :-1]).transpose(1, 2), tgt[:, 1:])", "train_step",
        "as a word in the loss (section 9.2)",
    ),
    "words on the last axis": WrongFile(
        LOSS, "F.cross_entropy(logits, labels, ignore_index=0)", "loss", WORDS_ON_AXIS_1
    ),
    "labels not flattened": WrongFile(
        LOSS, LOSS.replace("labels.flatten()", "labels"), "loss", WORDS_ON_AXIS_1
    ),
    "words on the last axis in the step": WrongFile(
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:])",
        "F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:])", "train_step", WORDS_ON_AXIS_1,
    ),
    "loss summed": WrongFile(
        LOSS, LOSS.replace("=0)", "=0, reduction='sum')"), "loss", "the sum over the words"
    ),
    "padding counts in the division": WrongFile(
        LOSS, f"{BY_PLACE}.mean()", "loss", "counted when you divide"
    ),
    "each sentence counts alike": WrongFile(
        LOSS, f"({BY_PLACE}.sum(1) / (labels != 0).sum(1)).mean()", "loss",
        "each sentence counts alike",
    ),
    "two softmaxes": WrongFile(
        LOSS, LOSS.replace("logits.", "logits.softmax(-1)."), "loss", "two softmaxes"
    ),
    "the sign": WrongFile(LOSS, f"-{LOSS}", "loss", "the sign is the wrong way round"),
    "loss without gradient": WrongFile(LOSS, f"{LOSS}.detach()", "loss", "no gradient can flow"),
    "loss of the step summed": WrongFile(
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:])",
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:]) * (tgt[:, 1:] != 0).sum()", "train_step",
        "the loss of the step is summed",
    ),
    "labels not moved": WrongFile(
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:])", "loss(model(src, tgt[:, :-1]), tgt[:, :-1])",
        "train_step", "they are one word further",
    ),
    "all of tgt is read, and one label less": WrongFile(
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:])", "loss(model(src, tgt), tgt[:, 1:])",
        "train_step", "all but the last column",
    ),
    "all of tgt is read": WrongFile(
        "loss(model(src, tgt[:, :-1]), tgt[:, 1:])", "loss(model(src, tgt)[:, :-1], tgt[:, 1:])",
        "train_step", "all but the last column",
    ),
    "gradients pile up": WrongFile(
        "    optimizer.zero_grad()\n", "", "train_step", "optimizer.zero_grad() comes first"
    ),
    "no step": WrongFile("    optimizer.step()\n", "", "train_step", "then optimizer.step()"),
    "bos is kept": WrongFile("return tgt[:, 1:]", "return tgt", "greedy_decode", "still in front"),
    "eos is left out": WrongFile(
        "return tgt[:, 1:]", "return tgt[:, 1:-1]", "greedy_decode", "<eos> belongs to what it"
    ),
    "padding for eos": WrongFile(
        "return tgt[:, 1:]", "return tgt[:, 1:].masked_fill(tgt[:, 1:] == 2, 0)", "greedy_decode",
        "<eos> belongs to what it",
    ),
    "only the last word is fed": WrongFile(
        "model(src, tgt)[:, -1]", "model(src, tgt[:, -1:])[:, -1]", "greedy_decode", "the thread"
    ),
    "stops with the first": WrongFile(
        ".any(dim=1).all()", ".any(dim=1).any()", "greedy_decode", "as soon as one sentence is done"
    ),
    "a word too many": WrongFile(
        "range(max_len)", "range(max_len + 1)", "greedy_decode", "stops a word too late"
    ),
    "does not stop": WrongFile(
        "for _ in range(max_len):", "while True:", "greedy_decode", "and max_len is 2"
    ),
    "returns nothing": WrongFile(
        "    return tgt[:, 1:]", "    tgt[:, 1:]", "greedy_decode", "Does its last line say return?"
    ),
}  # fmt: skip
NORM_TWICE = ("self.norm_2(x + self", "self.norm_1(x + self")
OF_LAYERS = {"Transformer", *(f"Transformer, {x}" for x in ("the future", "the source", "padding"))}
OF_LAYERS |= {"Transformer, the numbers"}
WAITING = {  # what is wrong, the edits, and who waits for it, though a mistake of its own is there
    "no √d_k in the heads": (
        HEADS,
        (("attention(q, k, v, mask)", "attention(q * 2, k, v, mask)"), NORM_TWICE),
        {ENCODER, DECODER, *OF_LAYERS},
    ),
    "one size of heads": (
        HEADS,
        (("self.n_heads = n_heads", "self.n_heads = 2"), NORM_TWICE),
        {ENCODER, DECODER, *OF_LAYERS},
    ),
    "one norm twice": (ENCODER, (NORM_TWICE, (SCALE, "")), OF_LAYERS),
    "the mask of the encoder": (
        ENCODER, (("self_attention(x, x, mask)", "self_attention(x, x)"),), OF_LAYERS
    ),
    "one layer n times": (
        "Transformer",
        ((LIST, "nn.ModuleList([EncoderLayer(*sizes)] * n_layers)"), (SCALE, "")),
        OF_LAYERS - {"Transformer"},
    ),
}  # fmt: skip
OVER = (
    "class FeedForward(",
    """class Bare(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:])


class Over(nn.LayerNorm):
    def forward(self, x):
        x = x - x.mean(dim=1, keepdim=True)
        x = x / (x.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
        return x * self.weight + self.bias


class OverAll(nn.LayerNorm):
    def forward(self, x):
        normed = F.layer_norm(x, x.shape[1:])
        return normed * self.weight + self.bias


class Sample(nn.LayerNorm):
    def forward(self, x):
        x = (x - x.mean(dim=-1, keepdim=True)) / (x.var(dim=-1, keepdim=True) + 1e-5).sqrt()
        return x * self.weight + self.bias


class Rms(nn.LayerNorm):
    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight) + self.bias


class FeedForward(""",
)
