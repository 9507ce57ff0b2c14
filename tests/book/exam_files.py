"""Files that sit the exam: right ones in several styles, and wrong ones with what is said of them.

The wrong ones are edits of the page's solution: the first part that is wrong -> (a piece of what it
is told, of the one hint that comes where one does; pairs of what is there and what replaces it).
"""

import nbformat

from tools.chapters import ROOT, code_cells
from transformer_book.exam.parts import PARTS

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


ROOT_D = " / math.sqrt(q.size(-1))"
FILL = "masked_fill(~mask, -math.inf)"
SPLIT = "x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)"
CALL = "attention(q, k, v, mask)"
JOIN = "answers.transpose(1, 2).flatten(2)"
SUM_1 = "self.norm_1(x + self.self_attention(x, x, mask))"
SUM_2 = "self.norm_2(y + self.cross_attention(y, memory, src_mask))"
SUM_3 = "self.norm_3(y + self.feed_forward(y))"
LIST = "nn.ModuleList(EncoderLayer(*sizes) for _ in range(n_layers))"
SCALE = "* math.sqrt(self.d_model)"
BY_PLACE = "F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=0, reduction='none')"
LOSS = "F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)"
WORDS_ON_AXIS_1 = "cross_entropy wants the words on axis 1: flatten both, or logits.transpose"
STEP = "loss(model(src, tgt[:, :-1]), tgt[:, 1:])"
VIEW = "x.view(len(x), self.n_heads, x.size(1), -1)"


def norm_as(formula: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Norms by a formula of their own."""
    norm = f"class Norm(nn.LayerNorm):\n    def forward(self, x):\n        return {formula}\n\n\n"
    return ("class FeedForward(", f"{norm}class FeedForward("), ("nn.LayerNorm(", "Norm(")


UNBIASED = "(x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()"
OTHER = "the book's gives other numbers"
WRONG_FILES: dict[str, list[tuple]] = {
    "attention": [
        ("not divided by √d_k", (ROOT_D, "")),
        ("runs over the queries", ("softmax(dim=-1)", "softmax(dim=-2)")),
        ("other way round", (FILL, FILL.replace("~", ""))),
        ("mask is not used", ("if mask is not None", "if False")),
        ("gets the score 0", (FILL, FILL.replace("-math.inf", "0.0"))),
        ("mask comes after the softmax",
         (f"""    if mask is not None:
        scores = scores.{FILL}
    return scores.softmax(dim=-1) @ v""",
          """    weights = scores.softmax(dim=-1)
    return (weights if mask is None else weights * mask) @ v""")),
        ("it changes q itself",
         (f"scores = q @ k.transpose(-2, -1){ROOT_D}",
          "scores = q.div_(math.sqrt(q.size(-1))) @ k.transpose(-2, -1)")),
        ("dim=1", ("softmax(dim=-1)", "softmax(dim=1)")),
        ("your code stopped", ("k.transpose(-2, -1)", "k.transpose(1, 2)")),
    ],
    "causal_mask": [
        ("shows the future", (".tril()", ".triu()")),
        ("the diagonal is True", (".tril()", ".tril(-1)")),
        ("says where it may not", ("bool).tril()", "bool).triu(1)")),
        ("holds True and False",
         ("torch.ones(T, T, dtype=torch.bool).tril()", "torch.full((T, T), -math.inf).triu(1)")),
    ],
    "padding_mask": [
        ("says where there is none", ("tokens != 0", "tokens == 0")),
        ("Give it an axis between", ("[:, None, None]", "")),
    ],
    "positions": [
        ("all sines, then all cosines",
         ("torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)",
          "torch.cat([angles.sin(), angles.cos()], dim=-1)")),
        ("yours is 4i", ("(-torch.", "(-2 * torch.")),
        ("yours is i /", ("(-torch.", "(-0.5 * torch.")),
        ("the exam calls positions(T, d_model)",
         ("def positions(T, d_model):", "def positions(T):\n    d_model = 8")),
    ],
    "MultiHeadAttention": [
        ("by a view straight to", (SPLIT, VIEW)),
        ("here both where the rows are cut",
         (SPLIT, VIEW), (JOIN, "answers.reshape(x.shape)")),
        ("not divided by √d_k", (CALL, CALL.replace("(q,", "(q * math.sqrt(q.size(-1)),"))),
        ("the width of one head", (CALL, CALL.replace("(q,", "(q / math.sqrt(self.n_heads),"))),
        ("stop at model.eval()", ("return self.W_o(", "return F.dropout(")),
        ("yours hides those places", (CALL, "attention(q, k, v, None if mask is None else ~mask)")),
        ("its answer did not move",
         ("self.split(self.W_q(x))", "self.split(self.W_q(memory[:, : x.size(1)]))")),
        ("transpose(1, 2) comes before the reshape", (JOIN, "answers.reshape(x.shape)")),
        ("your code stopped in line", (CALL, "attention(q, k, v, mask or None)")),
        (OTHER, ("self.n_heads = n_heads", "self.n_heads = d_model // n_heads")),
        ("one head as wide", ("self.n_heads = n_heads", "self.n_heads = 1")),
        ("right for (8, 2), not for (4, 1)", ("self.n_heads = n_heads", "self.n_heads = 2")),
        ("W_o is not used", ("return self.W_o(", "return (")),
        ("does it reach your attention?", ("attention(q, k, v, mask)", "attention(q, k, v)")),
        ("The queries come from x, keys and values from memory",
         ("q = self.split(self.W_q(x))\n        k, v = self.split(self.W_k(memory))",
          "q = self.split(self.W_q(memory))\n        k, v = self.split(self.W_k(x))")),
    ],
    "EncoderLayer": [
        ("around self-attention the plus sign is missing", (SUM_1, SUM_1.replace("x + ", ""))),
        ("at self-attention you add the normed rows",
         (SUM_1, "self.norm_1(x) + self.self_attention(*[self.norm_1(x)] * 2, mask)")),
        ("the norm is made, but not used", (SUM_1, "x + self.self_attention(x, x, mask)")),
        ("with x for both of its arguments?", (SUM_1, "self.norm_1(x)")),
        ("Does the mask go on", ("self_attention(x, x, mask)", "self_attention(x, x)")),
        ("divides by d_model - 1", *norm_as(f"{UNBIASED} * self.weight + self.bias")),
        ("GELU stands", ("self.W_1(x).relu()", "F.gelu(self.W_1(x))")),
        ("norm_1 and norm_2 are one and the same",
         ("self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)\n",
          "self.norm_1 = self.norm_2 = nn.LayerNorm(d_model)\n")),
        ("nothing bends", (".relu()", "")),
        (OTHER, *norm_as("F.rms_norm(x, x.shape[-1:], self.weight) + self.bias")),
        ("changes its argument x",
         (SUM_1, SUM_1.replace("x + ", "x.add_(").replace("mask))", "mask)))"))),
    ],
    "DecoderLayer": [
        ("at the feed-forward network the norm is taken of the answer",
         (SUM_3, "y + self.norm_3(self.feed_forward(y))")),
        ("y asks and comes first", (SUM_2, SUM_2.replace("(y, memory,", "(memory, y,"))),
        ("it is still seen", (SUM_2, SUM_2.replace("src_mask", "None"))),
        ("places before it moved",
         ("self.self_attention(y, y, tgt_mask)", "self.self_attention(y, y)")),
        ("is tgt_mask the one before src_mask?",
         ("memory, tgt_mask, src_mask):\n", "memory, src_mask, tgt_mask):\n")),
        ("with y for both of its arguments?",
         ("self.norm_1(y + self.self_attention(y, y, tgt_mask))", "self.norm_1(y)")),
        ("Keys and values of the second attention", (SUM_2, "self.norm_2(y)")),
        ("self_attention and cross_attention are one and the same",
         ("self.cross_attention = MultiHeadAttention(d_model, n_heads)",
          "self.cross_attention = self.self_attention")),
    ],
    "Transformer": [
        ("put them into nn.ModuleList",
         (LIST, LIST.replace("nn.ModuleList(", "[").replace("n_layers))", "n_layers)]"))),
        ("of 3 EncoderLayers there is only 1",
         (LIST, "nn.ModuleList([EncoderLayer(*sizes)] * n_layers)")),
        ("n_layers is 3, and the number of EncoderLayers is 6",
         (LIST, LIST.replace("range(n_layers)", "range(2 * n_layers)"))),
        ("your padding_mask has 3 axes, and your heads take masks of 4",
         ("[:, None, None]", "[:, None]")),
        ("stop at model.eval()", ("self.output(y)", "self.output(F.dropout(y, 0.1))")),
        ("these are probabilities", ("self.output(y)", "self.output(y).softmax(dim=-1)")),
        ("Does a mask leave some query nothing at all?",
         ("causal_mask(tgt.size(1))\n", "causal_mask(tgt.size(1)).tril(-1)\n")),
        ("makes no nn.Module", ("class Transformer(nn.Module)", "class Transformer"),
         ("tgt_vocab, d_model, n_heads, n_layers, d_ff):\n        super().__init__()",
          "tgt_vocab, d_model, n_heads, n_layers, d_ff):")),
        ("has shape (2, 7, 3), and (2, 3, 7) is wanted",
         ("self.output(y)", "self.output(y).transpose(1, 2)")),
        ("gives a tuple, and a tensor is wanted", ("self.output(y)", "self.output(y), memory")),
    ],
    "Transformer, the future": [
        ("future leaks", ("causal_mask(tgt.size(1))\n", "padding_mask(tgt)\n")),
        ("Does each place see itself and all before it?",
         ("causal_mask(tgt.size(1))\n", "torch.eye(tgt.size(1)).bool()\n")),
    ],
    "Transformer, the source": [
        ("Does the decoder look at what the encoder made?",
         ("            memory = layer(memory, src_mask)\n",
          "            memory = layer(memory, src_mask)\n"
          "        name = f'{memory.shape} {src_mask.all()}'\n"
          "        memory = self.__dict__.setdefault(name, memory)\n")),
        ("Does the decoder look at what the encoder made?",
         ("y = layer(y, memory,", "y = layer(y, memory * 0,")),
        ("no word has its position",
         ("return x + positions(ids.size(1), self.d_model)", "return x")),
    ],
    "Transformer, the numbers": [
        (OTHER, ("self.output(y)", "self.output(y).log_softmax(dim=-1)")),
        (OTHER, ("self.tgt_embedding(tgt)", "self.tgt_embedding.rows(tgt)")),
        (OTHER, *PRE, *LAST_NORMS, ("self.output(self.decoder_norm(y))", "self.output(y)")),
        ("not multiplied by √d_model", (" * math.sqrt(self.d_model)", "")),
        ("multiplies the positions, too",
         (SCALE, ""), ("return x + positions(ids.size(1), self.d_model)",
                       "return (x + positions(ids.size(1), self.d_model)) " + SCALE)),
        ("what the encoder made of it",
         ("            memory = layer(memory, src_mask)\n",
          "            layer(memory, src_mask)\n")),
    ],
    "Transformer, padding": [
        ("one <pad> more",
         ("memory = layer(memory, src_mask)", "memory = layer(memory, src_mask | True)")),
        ("a sentence gets other logits in a batch",
         ("self.output(y)", "self.output(y + y.mean(dim=0))")),
    ],
    "loss": [
        ("left out (section 9.2)", (LOSS, LOSS.replace(", ignore_index=0", ""))),
        (WORDS_ON_AXIS_1, (LOSS, "F.cross_entropy(logits, labels, ignore_index=0)")),
        (WORDS_ON_AXIS_1, (LOSS, LOSS.replace("labels.flatten()", "labels"))),
        ("the sum over the words", (LOSS, LOSS.replace("=0)", "=0, reduction='sum')"))),
        ("counted when you divide", (LOSS, f"{BY_PLACE}.mean()")),
        ("two softmaxes", (LOSS, LOSS.replace("logits.", "logits.softmax(-1)."))),
        ("no gradient can flow", (LOSS, f"{LOSS}.detach()")),
    ],
    "train_step": [
        (WORDS_ON_AXIS_1, (STEP, "F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:])")),
        ("they are one word further", (STEP, "loss(model(src, tgt[:, :-1]), tgt[:, :-1])")),
        ("all but the last column", (STEP, "loss(model(src, tgt), tgt[:, 1:])")),
        ("all but the last column", (STEP, "loss(model(src, tgt)[:, :-1], tgt[:, 1:])")),
        ("get src as its first", (STEP, "loss(model(tgt[:, :-1], src), tgt[:, 1:])")),
        ("model is never called", (STEP, "torch.zeros(1, requires_grad=True)")),
        ("the loss is wanted, a number", ("return mean.item()", "return 'done'")),
        ("optimizer.zero_grad() comes first", ("    optimizer.zero_grad()\n", "")),
        ("then optimizer.step()", ("    optimizer.step()\n", "")),
        ("one optimizer.step(), and nothing else",
         ("    optimizer.step()", "    optimizer.step()\n    optimizer.step()")),
    ],
    "greedy_decode": [
        ("expected: [[5, 4, 2]]", ("return tgt[:, 1:]", "return tgt[:, 1:-1]")),
        ("still in front", ("return tgt[:, 1:]", "return tgt")),
        ("the thread", ("model(src, tgt)[:, -1]", "model(src, tgt[:, -1:])[:, -1]")),
        ("as soon as one sentence is done", (".any(dim=1).all()", ".any(dim=1).any()")),
        ("greedy_decode gives list", ("return tgt[:, 1:]", "return tgt[:, 1:].tolist()")),
        ("you gave",
         ("model, src, max_len):\n    tgt", "model, src, max_len, kept={}):\n    tgt"),
         ("    return tgt[:, 1:]", "    return kept.setdefault(str(src), tgt[:, 1:])")),
        ("and max_len is 2", ("for _ in range(max_len):", "while True:")),
        ("Does its last line say return?", ("    return tgt[:, 1:]", "    tgt[:, 1:]")),
    ],
}  # fmt: skip

NORM_TWICE = ("self.norm_2(x + self", "self.norm_1(x + self")
OF_LAYERS = {name for name in PARTS if name.startswith("Transformer")}
WAITING = [  # what is wrong, who waits for it, and the edits, which hold a mistake of theirs
    ("MultiHeadAttention", {"EncoderLayer", "DecoderLayer"} | OF_LAYERS,
     ("self.n_heads = n_heads", "self.n_heads = 2"), NORM_TWICE),
    ("EncoderLayer", OF_LAYERS, NORM_TWICE, (SCALE, "")),
    ("Transformer", OF_LAYERS - {"Transformer"},
     (LIST, "nn.ModuleList([EncoderLayer(*sizes)] * n_layers)"), (SCALE, "")),
]  # fmt: skip
