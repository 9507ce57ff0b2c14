import math
import random

import torch
import torch.nn.functional as F
from torch import nn

with open("pairs.tsv", encoding="utf-8") as file:
    pairs = [line.strip().split("\t") for line in file]
train_pairs, test_pairs = pairs[:12_000], pairs[12_000:]

marks = ["<pad>", "<bos>", "<eos>"]
PAD, BOS, EOS = 0, 1, 2


def numbered(sentences):
    words = {word for sentence in sentences for word in sentence.split()}
    return {word: i for i, word in enumerate(marks + sorted(words))}


def padded(sentences, number_of, *first):  # first: what comes in front
    rows = []
    for sentence in sentences:
        ids = [number_of[word] for word in sentence.split()]
        rows.append(torch.tensor([*first, *ids, EOS]))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


english = numbered(source for source, _ in pairs)
french = numbered(target for _, target in pairs)


def loss_of(model, pairs):
    sources, targets = zip(*pairs)
    src, tgt = padded(sources, english), padded(targets, french, BOS)
    given, wanted = tgt[:, :-1], tgt[:, 1:]
    scores = model(src, given).flatten(0, 1)
    return F.cross_entropy(scores, wanted.flatten(), ignore_index=PAD)


def train(make, n_steps=400, rate=0.005, seed=3):
    torch.manual_seed(seed)
    random.seed(seed)
    model = make()
    adam = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    shorter = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.0, n_steps)  # to 0
    for step in range(n_steps):
        loss = loss_of(model, random.sample(train_pairs, 32))
        adam.zero_grad()
        loss.backward()
        adam.step()
        shorter.step()
        if step % (n_steps // 4) == 0:
            print(f"step {step}: loss {loss.item():.2f}")
    return model


@torch.no_grad()
def translate(model, sentences):
    src, words = padded(sentences, english), list(french)
    tgt = torch.full((len(src), 1), BOS)
    for _ in range(20):  # our longest sentences are shorter
        likeliest = model(src, tgt)[:, -1].argmax(dim=-1)
        tgt = torch.cat([tgt, likeliest[:, None]], dim=1)
    lines = [" ".join(words[i] for i in row) for row in tgt[:, 1:].tolist()]
    return [line.partition("<eos>")[0].strip() for line in lines]


four = ["the black cat sleeps", "the dog sees the cat", "the cat sees the dog"]
four += ["the old queen does not often see the black cats"]


@torch.no_grad()
def report(model):
    sources, targets = zip(*test_pairs)
    written = translate(model, sources)
    right = sum(line == target for line, target in zip(written, targets)) / 600
    loss = loss_of(model, test_pairs).item()
    print(f"600 new sentences: loss {loss:.2f}, right {100 * right:.0f} %")
    for source, line in zip(four, translate(model, four)):
        print(f"  {source} → {line}")


d_model = 64


class Attention(nn.Module):
    def __init__(self, d_head=d_model):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_head)
        self.W_k = nn.Linear(d_model, d_head)
        self.W_v = nn.Linear(d_model, d_head)

    def forward(self, x, memory, mask):
        q, k, v = self.W_q(x), self.W_k(memory), self.W_v(memory)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.size(-1))  # (B, T, S)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        self.weights = weights.detach()  # kept for us to look at
        return weights @ v  # (B, T, d_head)


def positions(T):  # (T, d_model)
    speeds = 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(T)[:, None] * speeds
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class Embedding(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.rows = nn.Embedding(n_words, d_model)
        nn.init.normal_(self.rows.weight, std=1 / math.sqrt(d_model))

    def forward(self, ids):
        x = self.rows(ids) * math.sqrt(d_model)
        return x + positions(ids.size(1))


def causal_mask(T):  # (T, T), the same for every sentence
    return torch.ones(T, T, dtype=torch.bool).tril()


n_heads = 4


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        d_head = d_model // n_heads
        self.heads = nn.ModuleList(Attention(d_head) for _ in range(n_heads))
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask):
        answers = [head(x, memory, mask) for head in self.heads]
        return self.W_o(torch.cat(answers, dim=-1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_1 = nn.Linear(d_model, 2 * d_model)
        self.W_2 = nn.Linear(2 * d_model, d_model)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attention = MultiHeadAttention()
        self.feed_forward = FeedForward()
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)

    def forward(self, x, mask):
        x = self.norm_1(x + self.self_attention(x, x, mask))
        return self.norm_2(x + self.feed_forward(x))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attention = MultiHeadAttention()
        self.cross_attention = MultiHeadAttention()
        self.feed_forward = FeedForward()
        self.norm_1 = nn.LayerNorm(d_model)
        self.norm_2 = nn.LayerNorm(d_model)
        self.norm_3 = nn.LayerNorm(d_model)

    def forward(self, y, memory, tgt_mask, src_mask):
        y = self.norm_1(y + self.self_attention(y, y, tgt_mask))
        y = self.norm_2(y + self.cross_attention(y, memory, src_mask))
        return self.norm_3(y + self.feed_forward(y))


n_layers = 2


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_embedding = Embedding(len(english))
        self.tgt_embedding = Embedding(len(french))
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range(n_layers))
        self.output = nn.Linear(d_model, len(french), bias=False)

    def forward(self, src, tgt):
        src_mask = (src != PAD)[:, None]
        tgt_mask = causal_mask(tgt.size(1))
        x, y = self.src_embedding(src), self.tgt_embedding(tgt)
        for layer in self.encoder:
            x = layer(x, src_mask)
        for layer in self.decoder:
            y = layer(y, x, tgt_mask, src_mask)
        return self.output(y)


if __name__ == "__main__":
    model = train(Transformer, n_steps=1200)
    report(model)
