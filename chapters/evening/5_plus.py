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


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_embedding = Embedding(len(english))
        self.tgt_embedding = Embedding(len(french))
        self.cross_attention = Attention()
        self.output = nn.Linear(d_model, len(french), bias=False)

    def forward(self, src, tgt):
        src_mask = (src != PAD)[:, None]
        x, y = self.src_embedding(src), self.tgt_embedding(tgt)
        y = y + self.cross_attention(y, x, src_mask)
        return self.output(y)


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

    def forward(self, ids):
        return self.rows(ids) + positions(ids.size(1))


if __name__ == "__main__":
    report(train(Translator))
