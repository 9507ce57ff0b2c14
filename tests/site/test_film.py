"""The film of chapter 0 against PyTorch: where words go, all numbers, and where they are from."""

import json
import math
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from html import escape
from typing import Any

import nbformat
import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.package.unchecked import unchecked
from tools.chapters import CHAPTERS
from transformer.attention import attention_weights
from transformer.cache import Memory
from transformer.data.grammar import grammar_pairs, grammar_vocabularies
from transformer.data.grammar.lexicon import ADJECTIVES, NOUNS
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer.model import Transformer
from transformer.multihead import record_attention
from transformer.positional import sinusoidal_encoding
from transformer_book.experiments.translator import SENTENCES, trained
from transformer_book.experiments.translator.data import MAX_LEN, corpus
from website.extensions.film_files import FOLLOWED, ONE_WORD, SEED, directions, plane, rows
from website.extensions.page_parts import PARTS, copy_part
from website.extensions.translator_files import EXAMPLES

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js, which runs the film's modules")

LOADED = """
import { readFileSync } from "node:fs";
const [folder, asked] = JSON.parse(readFileSync(0, "utf8"));
const part = (name) => import(`${folder}/${name}.js`);
const { Transformer } = await part("translator/model");
const { readSafetensors } = await part("translator/safetensors");
const { watch } = await part("film/watch");
const { origin } = await part("film/origin");
const { WHY } = await part("film/why");
const { buffer } = new Uint8Array(readFileSync(`${folder}/film/weights.safetensors`));
const model = new Transformer(readSafetensors(buffer));
const text = (each) => (typeof each === "string" ? each : each.word);
"""
RUNNER = """
const { atFirst, untrained } = await part("film/untrained");
const films = asked.map(({ words, cuts, addresses }) => {
  const film = watch(model, words, { cuts });
  const { text, words: written, ended, loss, source, rounds } = film;
  const tops = rounds.map(({ input, top, written }) => [input.id, top, written.id]);
  const origins = addresses.map((address) => origin(film, address));
  return { text, words: written, ended, loss, source, tops, origins, before: untrained(film) };
});
const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
const start = atFirst(model, 0).stored.tensors;
process.stdout.write(JSON.stringify({ films, start }, plain));
"""

CUTS = (
    [{"part": "encoder", "query": 0, "key": 1}],
    [{"part": "encoder", "layer": 0, "head": 2}, {"part": "cross", "layer": 1, "head": 3}],
    [{"part": "cross", "query": 2, "key": 1}],
    [{"part": "cross", "layer": 1, "key": 2}],
    [{"part": "self", "layer": 0, "head": 1, "query": 2, "key": 0}],
    [{"part": "self"}],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The modules and weights as the site has them."""
    place = tmp_path_factory.mktemp("parts")
    with unchecked():
        for name in ("book-translator", "book-film"):
            copy_part(PARTS[name], place)
    return place


@pytest.fixture(scope="module")
def in_node(folder):
    def run(asked: list[dict[str, Any]], runner: str = RUNNER) -> Any:
        given = json.dumps([folder.as_posix(), asked])
        command = [str(NODE), "--input-type=module", "--eval", LOADED + runner]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def drawn(count: int, seed: int) -> list[str]:
    return [" ".join(pair.source) for pair in grammar_pairs(count, seed=seed, split="test")]


@pytest.fixture(scope="module")
def model():
    return trained(SEED).cpu()


# What PyTorch computes


def place(cut: dict[str, Any]) -> tuple[slice, ...]:
    """Head, query and key of a cut, as a place in (B, h, T, S)."""
    at = [cut.get(name) for name in ("head", "query", "key")]
    return (slice(None), *(slice(i, None if i is None else i + 1) for i in at))


def with_cuts(model, cuts):
    """A copy that takes looks away as chapter 12.6 does; a head with none left takes nothing."""
    twin = deepcopy(model)
    for part, name in (
        ("encoder", "encoder.layers.{}.self_attention"),
        ("self", "decoder.layers.{}.self_attention"),
        ("cross", "decoder.layers.{}.cross_attention"),
    ):
        for layer in range(2):
            ours = [c for c in cuts if c["part"] == part and c.get("layer", layer) == layer]
            module = twin.get_submodule(name.format(layer))

            def attend(q, k, v, mask, bias=None, module=module, ours=ours):
                weights = attention_weights(q, k, mask).clone()
                for cut in ours:
                    weights[place(cut)] = 0
                weights = (weights / weights.sum(dim=-1, keepdim=True)).nan_to_num(0.0)
                module.record(weights)
                return weights @ v

            if ours:
                module.attend = attend
    return twin


class Run:
    """A sentence through the model, greedily: what all its modules took and gave."""

    @torch.inference_mode()
    def __init__(self, model, sentence, cuts=()):
        model = with_cuts(model, cuts)
        self.english, self.french = grammar_vocabularies()
        self.model, self.written = model, [BOS_ID]
        self.ids = [*self.english.encode(sentence.split()), EOS_ID]
        self.given: dict[str, torch.Tensor] = {}
        self.out: dict[str, torch.Tensor] = {}
        for name, module in model.named_modules():
            module.register_forward_hook(self.keep(name))
        with record_attention(model) as self.weights:
            while len(self.written) <= MAX_LEN and self.written[1:][-1:] != [EOS_ID]:
                logits = model(torch.tensor([self.ids]), torch.tensor([self.written]))[0]
                best = logits[-1].softmax(dim=-1).argsort(descending=True)
                self.written.append(best[best != PAD_ID][0].item())
        self.logits = logits
        self.words = self.french.words([i for i in self.written[1:] if i != EOS_ID])

    def keep(self, name):
        def hook(_, given, out):
            self.out[name] = out[0]
            if given:
                self.given[name] = given[0][0]

        return hook

    def heads(self, attention, name):
        """All heads' queries, keys or values: (heads, T, 16)."""
        return self.out[f"{attention}.{name}"].unflatten(-1, (4, 16)).transpose(0, 1)

    @property
    def rows(self):
        """The encoder's rows, as they go in and after each part: (5, S, 64)."""
        names = [f"encoder.layers.{i}.residual_{n}" for i in range(2) for n in (1, 2)]
        return torch.stack([self.given[names[0]], *(self.out[name] for name in names)])

    def at(self, of, part, layer, head, query, key, cell, id):
        """The number at this address of the film; see origin.js."""
        side = "encoder" if part in ("encoder", "encoder-feed", "source") else "decoder"
        place = f"{side}.layers.{layer}"
        attention = f"{place}.{'cross' if part == 'cross' else 'self'}_attention"
        feeds = part == "encoder-feed"
        ids, table = (
            (self.ids, self.model.src_embedding)
            if side == "encoder"
            else (self.written, self.model.tgt_embedding)
        )
        if of in ("query", "key", "value", "product", "score", "taken"):
            q, k, v = (self.heads(attention, f"W_{name}")[head] for name in "qkv")
        if of in ("share", "taken"):
            weights = self.weights[attention][0]
            weights = weights.mean(dim=0) if head is None else weights[head]
        numbers: dict[str, Callable[[], torch.Tensor]] = {
            "embedding": lambda: 8 * table.tokens.weight[ids[query], cell],
            "position": lambda: sinusoidal_encoding(MAX_LEN + 1, 64)[query, cell],
            "input": lambda: self.given[f"{side}.layers.0.residual_1"][query, cell],
            "query": lambda: q[query, cell],
            "key": lambda: k[key, cell],
            "value": lambda: v[key, cell],
            "product": lambda: q[query, cell] * k[key, cell],
            "score": lambda: q[query] @ k[key] / 4,
            "share": lambda: weights[query, key],
            "taken": lambda: weights[query] @ v[:, cell],
            "out": lambda: self.out[f"{place}.feed_forward" if feeds else attention][query, cell],
            "sum": lambda: self.out[f"{place}.residual_{2 if feeds else 1}"][query, cell],
            "hidden": lambda: self.out[f"{place}.feed_forward.W_1"][query, cell].relu(),
            "memory": lambda: self.out["encoder.norm"][query, cell],
            "last": lambda: self.out["decoder.norm"][query, cell],
            "logit": lambda: self.logits[query, id],
            "power": lambda: self.logits[query, id].exp(),
            "probability": lambda: self.logits[query].softmax(dim=-1)[id],
        }
        return numbers[of]().item()


@pytest.mark.usefixtures("unchecked")
def test_before_training_it_is_a_model_that_begins_as_the_packages_do(in_node, model):
    found = in_node([{"words": sentence, "addresses": []} for sentence in SENTENCES])
    fresh = Transformer(model.config)
    state = fresh.state_dict()
    begun = {
        name: torch.tensor(tensor["data"], dtype=torch.float32).view(state[name].shape)
        for name, tensor in found["start"].items()
    }
    for name, wanted in state.items():
        if wanted.dim() == 1:
            assert torch.equal(begun[name], wanted), name
        else:
            assert begun[name].std().item() == pytest.approx(wanted.std().item(), rel=0.05), name
            assert begun[name].mean().abs() < 0.01, name
            if "embedding" not in name:
                most = begun[name].abs().max().item()
                assert most == pytest.approx(wanted.abs().max().item(), rel=0.02), name
    fresh.load_state_dict(begun)
    for film in found["films"]:
        written = [BOS_ID, *(written for *_, written in film["tops"])]
        with torch.inference_mode():
            logits = fresh(torch.tensor([film["source"]["ids"]]), torch.tensor([written[:-1]]))[0]
        wanted = logits.softmax(dim=-1)[torch.arange(len(logits)), written[1:]]
        assert film["before"] == pytest.approx(wanted.tolist(), rel=1e-5, abs=1e-6)


# Where a number comes from

ENCODER = ("encoder",)
WITHIN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("embedding", "position"), ("source",)),
    "input": ("source", "target"),
    **dict.fromkeys(("query", "key", "value", "product", "score", "share", "taken"), ENCODER),
    "mean share": ("encoder", "self", "cross"),
    **dict.fromkeys(("sum", "out"), ("encoder", "encoder-feed")),
    "hidden": ("encoder-feed",),
    **dict.fromkeys(("memory", "last", "logit", "power", "probability"), ("",)),
}
WIDTH = {"hidden": 128} | dict.fromkeys(("query", "key", "value", "product", "taken"), 16)


def address(kind: str, part: str, run: Run, draw: random.Random) -> dict[str, Any]:
    """An address of this kind by chance, with all fields, though its kind may not ask for some."""
    n_source, n_rounds = len(run.ids), len(run.logits)
    reads = part in ("encoder", "encoder-feed", "source") or kind == "memory"
    query = draw.randrange(n_source if reads else n_rounds)
    return {
        **{"of": kind.split()[-1], "part": part, "layer": draw.randrange(2)},
        "head": None if kind == "mean share" else draw.randrange(4),
        **{"query": query, "key": draw.randrange(query + 1 if part == "self" else n_source)},
        **{"cell": draw.randrange(WIDTH.get(kind, 64)), "id": draw.randrange(316)},
    }


@pytest.mark.usefixtures("unchecked")
def test_a_number_is_pytorchs_and_the_sum_of_what_it_is_said_to_come_from(in_node, model):
    """One of each kind by chance, in sentences of the book and others; then with looks cut."""
    draw = random.Random(46)
    asked: list[tuple[str, Any]] = [(s, []) for s in (*SENTENCES, *drawn(16, seed=46))]
    asked += zip(drawn(len(CUTS), seed=12), CUTS, strict=True)
    runs = [Run(model, sentence, cuts) for sentence, cuts in asked]
    addresses = [
        [address(kind, part, run, draw) for kind, parts in WITHIN.items() for part in parts]
        for run in runs
    ]
    # Of a head that looks nowhere no share comes from scores.
    addresses = [
        [a for a in each if not (cuts and a["of"] in ("score", "share") and a["head"] is not None)]
        for each, (_, cuts) in zip(addresses, asked, strict=True)
    ]
    given = [[{n: v for n, v in a.items() if v is not None} for a in each] for each in addresses]
    films = in_node(
        [
            {"words": sentence, "cuts": cuts, "addresses": each}
            for (sentence, cuts), each in zip(asked, given, strict=True)
        ]
    )["films"]
    for film, run, places in zip(films, runs, addresses, strict=True):
        assert film["source"] == {"ids": run.ids, "words": run.english.words(run.ids)}
        assert film["words"] == run.words
        assert film["text"] == " ".join(run.words).replace("' ", "'")
        assert film["ended"] == (run.written[-1] == EOS_ID)
        loss = cross_entropy(run.logits, torch.tensor(run.written[1:])).item()
        assert film["loss"] == pytest.approx(loss, rel=1e-4, abs=1e-6)
        logits = run.logits.index_fill(1, torch.tensor([PAD_ID]), -math.inf)
        best = logits.argsort(dim=-1, descending=True)[:, :5].tolist()
        rounds = zip(run.written[:-1], best, run.written[1:], strict=True)
        assert film["tops"] == [list(each) for each in rounds]
        for at, origin in zip(places, film["origins"], strict=True):
            told = [term["value"] for term in origin["terms"]]
            size = sum(map(abs, told)) + abs(origin["rest"]["sum"])
            wanted = pytest.approx(run.at(**at), rel=1e-4, abs=2e-6 * max(1, size))
            assert origin["value"] == wanted, at
            in_all = sum(told) + origin["rest"]["sum"] + origin["bias"]
            assert origin["sum"] == pytest.approx(in_all, rel=1e-9, abs=1e-9), at
            if origin["rest"]["count"]:
                assert told == sorted(told, key=abs, reverse=True), at
            for term in origin["terms"]:
                made = term["value"] if term["b"] is None else term["a"] * term["b"]
                assert term["value"] == pytest.approx(made), at
            assert not re.search("NaN|undefined|Infinity", origin["text"] + origin["label"]), at


# What the film says

TELLER = """
const { factsOf, toldAt } = await part("film/told");
const { STEPS } = await part("film/steps");
const { Scene } = await part("film/scene");
const HOW = STEPS.filter((step) => !WHY.includes(step));
const measure = (letters, size) => 0.55 * size * letters.length;
function drawn(step, told, w, h) {
  const scene = new Scene(told, { S: { x: 0, y: 0, w, h }, measure });
  step.draw(scene);
  const asked = scene.things.filter(({ does }) => does?.address).map((thing) => {
    const { "aria-label": label, does } = thing;
    const { from = 0, ...address } = does.address;
    const trace = address.cut ? told.cut : told.trace;
    const { label: what, text, value } = origin(trace, { ...address, cell: from + does.count - 1 });
    return { label, count: does.count, value, origin: `${what}: ${text}` };
  });
  return { things: JSON.stringify(scene.things), asked };
}
const films = asked.map(({ words, cut }, i) => {
  const trace = watch(model, words);
  const facts = factsOf(trace);
  const steps = HOW.map((step) => {
    const told = toldAt(facts, step, { cuts: step === HOW.at(-1) ? [cut] : [] });
    const { name } = step;
    const says = step.says(told);
    const picture = i % 2 ? drawn(step, told, 900, 440) : drawn(step, told, 370, 420);
    const { asks, at } = told;
    const cutTo = told.cut && { ...told.cut.rounds[at], text: told.cut.text };
    const said = { name, parts: says, says: says.map(text).join(""), seen: step.seen(told) };
    return { ...said, picture, asks, at, cutTo };
  });
  const { model: _, ...whole } = trace;
  const { before } = facts;
  const all = HOW.find(({ name }) => name === "Until the end");
  const rounds = trace.rounds.map((_, r) => {
    const told = toldAt(facts, all, { chosen: { rounds: r } });
    return all.says(told).map(text).join("");
  });
  return { trace: whole, before, steps, rounds };
});
const idle = new Set("x normed out sum queries query keys values scores taken logits".split(" "));
const plain = (name, value) => {
  if (idle.has(name)) return undefined; // or 200 sentences are a hundred megabytes
  return ArrayBuffer.isView(value) ? [...value] : value;
};
process.stdout.write(JSON.stringify(films, plain));
"""


@pytest.fixture(scope="module")
def tellings(in_node):
    """What is said and drawn of 200 sentences of the grammar; in the last step with a look cut."""
    asked = [{"words": s, "cut": i % 3} for i, s in enumerate((*SENTENCES, *drawn(196, seed=3)))]
    return in_node(asked, TELLER)


def test_no_text_has_a_hole(tellings):
    for film in tellings:
        for step in film["steps"]:
            texts = [step["name"], step["says"], step["seen"], step["picture"]["things"]]
            texts += [asked["origin"] for asked in step["picture"]["asked"]]
            holes = [x for x in texts if re.search("undefined|NaN|null|Infinity|object", x)]
            assert not holes, (film["trace"]["text"], step["name"])


def amount(text: str) -> tuple[float, float] | None:
    """The number at the end of a text, from the least that it may be to the most."""
    found = re.search(r"([<>] )?([−-]?[\d.]+)(\u00a0%)?$", text)
    if not found:
        return None
    sign, digits, is_percent = found.groups()
    number = float(digits.replace("−", "-"))
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    low, high = {"< ": (0.0, number), "> ": (number, 100.0)}.get(
        sign, (number - half, number + half)
    )
    return (low / 100, high / 100) if is_percent else (low, high)


def test_a_number_in_the_picture_is_what_its_origin_comes_to(tellings):
    kinds = set()
    for film in tellings:
        for step in film["steps"]:
            for asked in step["picture"]["asked"]:
                shown = amount(asked["label"])
                if asked["count"] > 1 or shown is None:
                    continue
                kinds.add(step["name"])
                low, high = shown
                slack = 1e-6 * max(1, abs(high))
                assert low - slack <= asked["value"] <= high + slack, (step["name"], asked)
    assert len(kinds) >= 6, "or the numbers of the pictures were not looked at"


COUNTED = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
COUNTED += ["eleven", "twelve"]
BEHIND = {a.english: {f for forms in a.french for f in forms} for a in ADJECTIVES if not a.precedes}
NOUN_FORMS = {form.split()[0] for noun in NOUNS for form in noun.english}  # swimming pool


def told_counts(text: str) -> dict[str, int]:
    """The counts in "two look most at the and one at cat", or "all four look most at the"."""
    found = re.findall(r"(\w+) (?:looks? most )?at (\S+?)(?:,| and|$)", text)
    return {word: COUNTED.index(count) for count, word in found}


def counts(rows: list[list[float]], named: list[str]) -> Counter[str]:
    """How many of these rows of weights have their most where."""
    return Counter(named[row.index(max(row))] for row in rows)


def looked(heads: list[dict[str, Any]], row: int | None = None) -> tuple[int, float]:
    """Where several heads together look most, and the mean share; of one row, if they have more."""
    weights = [head["weights"] if row is None else head["weights"][row] for head in heads]
    means = torch.tensor(weights, dtype=torch.float64).mean(dim=0)
    return int(means.argmax()), means.max().item()


def test_what_it_says_is_so_for_every_sentence(tellings):
    """What a text says of this sentence is found again in the trace, by what it says it with."""
    seen: Counter[str] = Counter()
    for film in tellings:
        trace = film["trace"]
        words, rounds = trace["source"]["words"], trace["rounds"]
        [first, _] = layers_read = trace["encoder"]
        for step in film["steps"]:
            asks, at, says = step["asks"], step["at"], step["says"]

            def found(kind, pattern, says=says):
                match = re.search(pattern, says)
                seen[kind] += match is not None
                return match

            def is_so(text, share, says=says):
                low, high = amount(text) or (2, 2)
                assert low - 1e-6 <= share <= high + 1e-6, (says, share)

            if here := found("number", r"(\S+) is number (\d+) of (\d+) in"):
                ids = trace["source"]["ids"]
                assert (here[1], int(here[2]), here[3]) == (words[asks], ids[asks], "210")
            head = (
                r"drawn, (\S+) looks most at (\S+) \(([^;]*); the mean of all four is ([^)]*)\)\."
            )
            if here := found("head", head):
                named = [*words[:asks], "itself", *words[asks + 1 :]]
                looks = [head["weights"][asks] for head in first["attention"]["heads"]]
                whom = looks[3].index(max(looks[3]))
                assert (here[1], here[2]) == (words[asks], named[whom])
                is_so(here[3], looks[3][whom])
                is_so(here[4], sum(look[whom] for look in looks) / 4)
            if here := found("average", r"drawn: (.*) most\."):
                [*_, fourth] = first["attention"]["heads"]
                s = fourth["weights"][asks].index(max(fourth["weights"][asks]))
                assert here[1] == ("its own" if s == asks else f"that of {words[s]}")
            memory = (
                r"heads, (\S+) looks most at (\S+) in (?:both|the first, at (\S+) in the second)\."
            )
            if here := found("memory", memory):
                layers = [looked(layer["attention"]["heads"], asks)[0] for layer in layers_read]
                assert here[1] == words[asks]
                whom = ["itself" if s == asks else words[s] for s in layers]
                assert whom == [here[2], here[3] or here[2]]
            if here := found("hidden", r"\((\S+) of (\S+) stays?\)"):
                above = sum(x > 0 for x in first["feedForward"]["hidden"][asks])
                many = COUNTED[above] if above <= 12 else str(above)
                assert (here[2], here[1]) == (words[asks], many if above else "none")
            across = r"In the second layer (.*?)\.(?: It has asked (\S+)\.)? What they hand over"
            if here := found("first round", across):
                heads = rounds[0]["layers"][1]["cross"]["heads"]
                assert told_counts(here[1]) == counts([head["weights"] for head in heads], words)
                s, _ = looked(heads)
                asked, _ = looked(layers_read[1]["attention"]["heads"], s)
                has_asked = words[s] == "the" and asked != s
                assert here[2] == (words[asked] if has_asked else None)
            if here := found("first word", r"^(\S+) goes back in"):
                assert here[1] == rounds[0]["written"]["word"]
            if here := found("loss", r"chances, (\S+) before training, (.+) after it\."):
                before = -sum(map(math.log, film["before"])) / len(film["before"])
                is_so(here[1], before)
                is_so(here[2], trace["loss"])
            if here := found("likeliest", r"The first is (.+?) \(([^)]*)\), and it is"):
                assert here[1] == rounds[at]["written"]["word"]
                is_so(here[2], max(rounds[at]["probabilities"]))
            if here := found("cut", r"^Without its look at (\S+), (\S+) (falls|stays)"):
                cut, before = step["cutTo"], rounds[at]["written"]
                now, was = (p["probabilities"][before["id"]] for p in (cut, rounds[at]))
                assert here[2] == before["word"]
                assert (here[3] == "falls") == (cut["written"]["id"] != before["id"])
                if here := found("in part", r"stays, but falls from (.*) to (.*)\. So it depends"):
                    assert was - now > 0.05
                    is_so(here[1], was)
                    is_so(here[2], now)
                elif here := found("stays", r"stays \(([^)]*)\)\. Here it can do without"):
                    assert was - now <= 0.05
                    is_so(here[1], now)
                elif here := found("falls", r" falls\. .* now (\S+) \(([^()]*)\)\."):
                    assert here[1] == cut["written"]["word"]
                    is_so(here[2], max(cut["probabilities"]))
                if then := found("becomes", r"The sentence becomes (.*)\.$"):
                    assert then[1] == cut["text"]
    everywhere = ("number", "head", "average", "memory", "hidden", "first round", "first word")
    always = [seen[kind] for kind in (*everywhere, "likeliest", "loss", "cut")]
    assert always == len(always) * [len(tellings)]
    assert seen["cut"] == seen["falls"] + seen["stays"] + seen["in part"]
    assert min(seen[kind] for kind in ("falls", "stays", "becomes")) > 5, seen
    assert seen["in part"] > 1
    longest = max((step["says"] for film in tellings for step in film["steps"]), key=len)
    assert len(longest) <= 265, longest


def test_each_round_says_where_its_line_goes(tellings):
    """That lines cross by a rule is said only where an adjective is written behind its noun."""
    seen: Counter[str] = Counter()
    for film in tellings:
        words, rounds = film["trace"]["source"]["words"], film["trace"]["rounds"]
        across = [looked(r["layers"][1]["cross"]["heads"]) for r in rounds]
        for at, says in enumerate(film["rounds"]):
            (s, most), written = across[at], rounds[at]["written"]["word"]
            here = re.search(r"In round (\d+) (\S+) looks most at (\S+) \(([^)]*)\)", says)
            assert here
            assert (int(here[1]) - 1, here[2]) == (at, rounds[at]["input"]["word"])
            low, high = amount(here[4]) or (2, 2)
            assert here[3] == words[s]
            assert low - 1e-6 <= most <= high + 1e-6, says
            assert f". {written} is written." in says
            before = across[at - 1][0] if at else 0
            goes_back = s < before and written != "<eos>"
            assert ("where the last line starts" in says or "lines cross" in says) == goes_back
            seen["rule" if "lines cross" in says else "back" if goes_back else "on"] += 1
            if "lines cross" in says:
                assert f"which comes before {words[before]} in English" in says
                assert written in BEHIND.get(words[s], ()), says
                assert words[before] in NOUN_FORMS
                assert set(words[s + 1 : before]) <= {a.english for a in ADJECTIVES}
            elif goes_back:
                assert f"before {words[before]}, where the last line starts." in says
    assert min(seen.values()) > 5, seen
    assert len(seen) == 3


@pytest.mark.usefixtures("unchecked")
def test_the_model_has_learned_from_none_of_the_examples():
    """As the film says of each of them."""
    assert not {" ".join(pair.source) for pair in corpus().train} & set(EXAMPLES)


def in_html(part: str | dict[str, str]) -> str:
    if isinstance(part, str):
        return escape(part, quote=False)
    language = f' lang="{part["lang"]}"' if "lang" in part else ""
    return f"<{part['mark']}{language}>{escape(part['word'])}</{part['mark']}>"


def test_without_scripts_chapter_0_says_what_the_film_does(tellings, moved):
    """Of its first sentence, and in the last step of the look that weighs most."""
    [cat] = [film for film in moved["nouns"] if film["noun"] == "cat"]
    [cell] = [c for c in nbformat.read(CHAPTERS[0], as_version=4).cells if c.id == "film"]
    inside = re.search(r'<div class="book-film">.*?<ol>\n(.*?)\n</ol>', cell.source, re.DOTALL)
    steps = cat["says"][0] + tellings[0]["steps"]
    texts = ["".join(map(in_html, step["parts"])) for step in steps]
    wanted = [f"<li>{text}</li>" for text in texts]
    assert inside
    assert inside[1].split("\n") == wanted, "\n".join(wanted)


# Where a word goes

MOVER = """
const { Moves, pulls, scoresAt } = await part("film/moves");
const moves = new Moves(model);
const kept = ({ trace, words, ways, article }) => ({ text: trace.text, words, ways, article });
const nouns = moves.nouns.map((noun) => {
  const { place } = moves.told(noun);
  const both = [`0 ${place}`, `1 ${place}`];
  const said = (cuts) => WHY.map((step) => {
    const told = step.twice ? moves.twice : moves.told(noun, step.cuts ? cuts : []);
    const parts = step.says(told);
    return { name: step.name, parts, says: parts.map(text).join(""), seen: step.seen(told) };
  });
  const whole = moves.told(noun);
  return {
    noun, ...kept(whole), looks: whole.looks, arrows: whole.arrows, value: whole.value,
    color: moves.field(whole.end[0]), start: moves.field(whole.ways[0][0]),
    cuts: [both, [both[0]], [both[1]]].map((cuts) => {
      const { field, now } = moves.told(noun, cuts);
      return { ...kept(now), color: field(now.end[0]), looks: now.looks };
    }),
    all: moves.all([both[1]]).map(({ article, right }) => [article, right]),
    says: [both, [both[1]], [`0 ${place + 1}`], []].map(said),
  };
});
const unasked = moves.of(Moves.sentence("horses"), ["0 2", "1 2"]).trace;
const { twice } = moves;
const second = { ...kept(twice), looks: twice.looks, arrows: pulls(twice.trace, 1, 3) };
const fields = asked.map((spot) => moves.field(spot));
const told = { nouns, twice: second, fields, scores: scoresAt(unasked, asked) };
process.stdout.write(JSON.stringify(told, (_, x) => (ArrayBuffer.isView(x) ? [...x] : x)));
"""
CORNERS = {(-8, -4): "le", (8, -4): "la", (0, 9): "les"}  # as the film says to who does not see it
SPOTS = [*CORNERS, *((x + 0.3, y + 0.4) for x in range(-13, 14, 3) for y in range(-6, 12, 2))]
ARTICLES = ("le", "la", "les")


@pytest.fixture(scope="module")
def moved(in_node):
    return in_node(SPOTS, MOVER)


@pytest.fixture(scope="module")
def axes():
    found = plane()
    return torch.tensor(found["axes"]), torch.tensor(found["middle"])


def cut_looks(layers):
    """Cuts of the looks of *the* at the noun of "the black NOUN sleeps"."""
    return [{"part": "encoder", "layer": layer, "query": 0, "key": 2} for layer in layers]


def ways_of(run, axes):
    """Where each word is after each part of the encoder: (5, S, 2)."""
    return run.rows @ axes[0].T - axes[1]


def look_of(run, layer, t=0):
    """How much word t looks at each, the mean of the heads."""
    return run.weights[f"encoder.layers.{layer}.self_attention"][0, :, t].mean(dim=0)


def arrows_of(run, layer, t, axes, whole=False):
    """What the look of word t brings from each word, in the plane: (S, 2)."""
    attention = f"encoder.layers.{layer}.self_attention"
    W, b = (p.detach() for p in run.model.get_submodule(attention).W_o.parameters())
    values, shares = run.heads(attention, "W_v"), run.weights[attention][0, :, t]
    shares = torch.ones_like(shares) if whole else shares
    hands = values @ W.T.unflatten(0, (4, 16)) + b / 4
    return (shares[..., None] * hands).sum(dim=0) @ axes[0].T


def close(ours, wanted, what):
    far = (torch.tensor(ours) - wanted).abs().max().item()
    assert far < 2e-4, (what, far)  # ten and more long, and the directions have five digits


@pytest.mark.usefixtures("unchecked")
def test_every_nouns_way_is_what_pytorch_computes(moved, model, axes):
    """Places, shares and arrows; and the arrows of a look add up to the move."""
    assert len(moved["nouns"]) == 2 * len(FOLLOWED)
    for film in moved["nouns"]:
        noun, sentence = film["noun"], " ".join(film["words"][:-1])
        run = Run(model, sentence)
        ways = ways_of(run, axes)
        close(film["ways"], ways, noun)
        assert (film["text"], film["article"]) == (" ".join(run.words), run.words[0])
        for layer, (before, after) in enumerate(((0, 1), (2, 3))):
            close(film["looks"][layer], look_of(run, layer), noun)
            close(film["arrows"][layer], arrows_of(run, layer, 0, axes), noun)
            together = torch.tensor(film["arrows"][layer]).sum(dim=0).tolist()
            close(together, (ways[after] - ways[before])[0], noun)
        close(film["value"], arrows_of(run, 0, 0, axes, whole=True)[2], noun)
        for cut, layers in zip(film["cuts"], ((0, 1), (0,), (1,)), strict=True):
            without = Run(model, sentence, cut_looks(layers))
            close(cut["ways"], ways_of(without, axes), noun)
            assert cut["text"] == " ".join(without.words)
            for layer, look in enumerate(cut["looks"]):
                close(look, look_of(without, layer), noun)
    run = Run(model, " ".join(moved["twice"]["words"][:-1]))
    close(moved["twice"]["ways"], ways_of(run, axes), "twice")
    close(moved["twice"]["arrows"], arrows_of(run, 1, 3, axes).T, "twice")


@pytest.mark.usefixtures("unchecked")
def test_the_colours_are_what_the_decoder_would_write(moved, model, axes):
    """At spots all over the plane, where none of the nodes lies, too."""
    english, french = grammar_vocabularies()
    source = torch.tensor([[*english.encode(["the", "black", "horses", "sleep"]), EOS_ID]])
    deaf = with_cuts(model, cut_looks((0, 1)))
    ids = french.encode(list(ARTICLES))
    with torch.inference_mode(), record_attention(deaf):
        rows_ = deaf.src_embedding(source)
        for layer in deaf.encoder.layers:
            rows_ = layer(rows_, None)
        here = rows_[0, 0] @ axes[0].T - axes[1]
        for spot, ours, color in zip(SPOTS, moved["scores"], moved["fields"], strict=True):
            other = rows_.clone()
            other[0, 0] += (torch.tensor(spot) - here) @ axes[0]
            memory = Memory(deaf.encoder.norm(other))
            logits = deaf.decode(torch.tensor([[BOS_ID]]), memory)[0, 0]
            assert ours[:3] == pytest.approx(logits[ids].tolist(), abs=1e-3)
            logits[[PAD_ID]] = -math.inf
            best = french.words([int(logits.argmax())])[0]
            assert color == (best if best in ARTICLES else None)


def test_each_noun_sends_the_to_its_articles_colour_and_the_cut_to_one(moved):
    assert moved["fields"][:3] == list(CORNERS.values())
    for film in moved["nouns"]:
        noun = next(n for n in FOLLOWED if film["noun"] in n.english)
        is_many = film["noun"] == noun.english[1]
        right = "les" if is_many else "la" if noun.feminine else "le"
        assert (film["article"], film["color"], film["start"]) == (right, right, "les")
        assert film["cuts"][0]["article"] == "les"
        assert all(cut["color"] == cut["article"] for cut in film["cuts"])
        assert film["cuts"][1]["article"] == right  # the second look alone is enough, as "?" says
    ends = torch.tensor([film["cuts"][0]["ways"][-1][0] for film in moved["nouns"]])
    whole = torch.tensor([film["ways"][-1][0] for film in moved["nouns"]])
    assert torch.cdist(ends, ends).max() < 0.2 * torch.cdist(whole, whole).max()


def test_what_the_first_act_says_is_so_for_every_noun(moved):
    seen: Counter[str] = Counter()
    for film in moved["nouns"]:
        words, looks, noun = film["words"], film["looks"], film["noun"]
        for said in film["says"]:
            text = {step["name"]: step["says"] for step in said}
            for step in said:
                assert len(step["says"]) <= 265, (len(step["says"]), step["says"])
                assert not re.search("undefined|NaN|null|object", step["says"] + step["seen"])
            here = re.search(r"average (\S+) gets most, (\d+)", text["So it asks"])
            most = looks[0].index(max(looks[0]))
            assert here
            assert (here[1], int(here[2])) == (words[most], round(100 * max(looks[0])))
            assert (most == 2) or f"and {noun} {round(100 * looks[0][2])}" in text["So it asks"]
            seen[f"most {'verb' if most == 3 else 'noun' if most == 2 else words[most]}"] += 1
            assert f"{noun} gets {round(100 * looks[1][2])}" in text["Then it asks once more"]
            assert film["ways"][2][0][1] > film["ways"][1][0][1] + 1, "the network moves it up"
            assert f"{film['article']}: {film['text']}." in text["Then it asks once more"]
            x, y = (v - u for u, v in zip(film["ways"][0][0], film["ways"][1][0], strict=True))
            goes = text["The answers move it"].rpartition("moves: ")[2]
            across = f"{abs(x):.1f} to the {'right' if x > 0 else 'left'}"
            up = f"{abs(y):.1f} {'up' if y > 0 else 'down'}"
            assert (across in goes, up in goes) == (abs(x) >= 0.05, abs(y) >= 0.05)
        both, second, other, none = (said[-1]["says"] for said in film["says"])
        assert f"not look at {noun} at all" in both
        assert f"writes {film['cuts'][0]['text']}. It says les before all 14 nouns" in both
        assert "right for 7 (full dots;" in both
        assert f"not look at {noun} in its second look" in second
        wanted = [f["article"] for f in moved["nouns"]]
        assert [right for _, right in film["all"]] == [
            article == own for (article, _), own in zip(film["all"], wanted, strict=True)
        ]
        right = sum(right for _, right in film["all"])
        assert f"Its article is right before {right} of 14 nouns" in second
        assert f"not look at {words[3]} in its first look" in other
        assert "may look at all words again" in none
    assert seen["most noun"] > 5
    assert seen["most verb"] > 5
    assert len(seen) == 2
    [said] = {
        step["says"]
        for film in moved["nouns"]
        for step in film["says"][0]
        if "twice" in step["says"]
    }
    looks = moved["twice"]["looks"]
    for t, s in ((0, 1), (3, 5)):
        figures = [round(100 * look[t][s]) for look in looks]
        assert (
            f"{moved['twice']['words'][s]} ({figures[0]}\u00a0%, then {figures[1]}\u00a0%)" in said
        )
        assert all(look[t].index(max(look[t])) == s for look in looks)


def test_the_directions_tell_gender_and_number_of_nouns_that_did_not_make_them():
    """Made from every second noun; the others are told apart by them."""
    axes = directions(ONE_WORD[::2])
    assert torch.allclose(axes, torch.tensor(plane()["axes"]), atol=1e-5)  # not of all nouns
    made, found = rows(ONE_WORD[::2]), rows(ONE_WORD[1::2])

    def right(stage, axis, labels, among):
        """Told apart halfway between the means of those that made the direction."""
        own, others = (x.the[stage] @ axes[axis] for x in (made, found))
        keep = among(made)
        is_one = labels(made)
        halfway = (own[keep & is_one].mean() + own[keep & ~is_one].mean()) / 2
        hits = (others > halfway) == labels(found)
        return hits[among(found)].float().mean().item()

    single, everyone = (lambda x: ~x.many), (lambda x: torch.ones_like(x.many))
    for stage, least in ((1, 0.85), (2, 0.95)):
        assert right(stage, 0, lambda x: x.feminine, single) > least
        assert right(stage, 1, lambda x: x.many, everyone) > least
