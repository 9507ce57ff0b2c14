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


def loss_of(model, pairs):
    tokens = padded([source for source, _ in pairs], english, BOS)
    given, wanted = tokens[:, :-1], tokens[:, 1:]
    scores = model(given).flatten(0, 1)
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


n_layers = 2


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = Embedding(len(english))
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(n_layers))
        self.output = nn.Linear(d_model, len(english), bias=False)

    def forward(self, tokens):
        x, mask = self.embedding(tokens), causal_mask(tokens.size(1))
        for layer in self.layers:
            x = layer(x, mask)
        return self.output(x)


@torch.no_grad()
def write(model, beginning, n_sentences):
    tokens = padded([beginning] * n_sentences, english, BOS)[:, :-1]  # no <eos> yet
    words = list(english)
    for _ in range(20):
        likely = model(tokens)[:, -1].softmax(dim=-1)
        tokens = torch.cat([tokens, torch.multinomial(likely, 1)], dim=1)
    lines = [" ".join(words[i] for i in row) for row in tokens[:, 1:].tolist()]
    return [line.partition("<eos>")[0].strip() for line in lines]


if __name__ == "__main__":
    gpt = train(GPT)
    for line in write(gpt, "", 6) + write(gpt, "the black cat", 3):
        print(line)
