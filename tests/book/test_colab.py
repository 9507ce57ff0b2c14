"""The cell that runs on Colab alone: run here, with a stub of Colab and random weights."""

import sys
from types import ModuleType

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

from tools.chapters import CHAPTERS
from transformer.family import DecoderOnly, FamilyConfig
from transformer_book.experiments.cells import chapter
from transformer_book.notebooks import cells_of, chapter_path

COLAB = "google.colab"
END = "<|endoftext|>"


def small_tokenizer() -> GPT2TokenizerFast:
    """GPT-2's, but that it knows bytes only: no part of a word is learnt."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: id for id, letter in enumerate([*letters, END])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return GPT2TokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, unk_token=END
    )


def small_gpt2() -> GPT2LMHeadModel:
    """GPT-2 with few random weights; as there, the last id ends a text, and none is padding."""
    end = len(small_tokenizer()) - 1
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": end + 1}
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=end, eos_token_id=end)).eval()


def test_gpt2_writes_on_colab(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, COLAB, ModuleType(COLAB))
    for kind, made in ((GPT2LMHeadModel, small_gpt2), (GPT2TokenizerFast, small_tokenizer)):
        monkeypatch.setattr(kind, "from_pretrained", lambda name, made=made: made())
    cell = cells_of(chapter_path(14))["real-gpt2"]
    names = vars(chapter(14, "imports*").names())
    capsys.readouterr()
    torch.manual_seed(1)
    exec(cell.source, names)
    assert capsys.readouterr().out not in ("", cell.printed)  # it has done what it does on Colab


def test_no_other_cell_runs_on_colab_alone():
    found = [name for path in CHAPTERS for name, c in cells_of(path).items() if COLAB in c.source]
    assert found == ["real-gpt2"]


def test_the_pages_ten_lines_bring_gpt2_into_our_class():
    theirs = small_gpt2()
    c = theirs.config
    sizes = {"d_model": c.n_embd, "n_heads": c.n_head, "n_layers": c.n_layer}
    sizes |= {"d_ff": 4 * c.n_embd, "max_len": c.n_positions}
    ours = DecoderOnly(FamilyConfig.gpt2(c.vocab_size, **sizes, dropout=0.0)).eval()
    page = chapter(14, "imports*", definitions=("gpt2-bring",)).names()
    page.bring({name: 5 * x for name, x in theirs.state_dict().items()}, ours)
    theirs.load_state_dict({name: 5 * x for name, x in theirs.state_dict().items()})
    ids = torch.randint(c.vocab_size, (2, 9))
    with torch.no_grad():
        assert torch.allclose(ours(ids), theirs(ids).logits, atol=1e-3)
