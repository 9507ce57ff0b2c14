"""All experiments of the book, by name; none is imported before it is asked for."""

from importlib import import_module

from transformer_book.experiments.experiment import Experiment

HOMES = {
    "translators": "transformer_book.experiments.translator.experiment:TRANSLATORS",
    "trained": "transformer_book.experiments.translator.experiment:TRAINED",
    "real_sentences": "transformer_book.experiments.real_sentences.experiment:REAL_SENTENCES",
    "blocks": "transformer_book.experiments.family.experiment:BLOCKS",
    "scaling": "transformer_book.experiments.family.experiment:SCALING",
    "scaling_back": "transformer_book.experiments.family.experiment:SCALING_BACK",
    "evening": "transformer_book.experiments.evening:evening",
    "shares": "transformer_book.experiments.chapter_00:shares",
    "first_word": "transformer_book.experiments.chapter_01:first_word",
    "code": "transformer_book.experiments.chapter_01:code",
    "neck": "transformer_book.experiments.chapter_01.neck:neck",
    "reach": "transformer_book.experiments.chapter_02:reach",
    "scores": "transformer_book.experiments.chapter_02:scores",
    "looks": "transformer_book.experiments.chapter_02.looks:looks",
    "sources": "transformer_book.experiments.chapter_03:sources",
    "phrase_book": "transformer_book.experiments.chapter_03.small:phrase_book",
    "circle": "transformer_book.experiments.chapter_03.small:circle",
    "recall": "transformer_book.experiments.chapter_04:recall",
    "scale": "transformer_book.experiments.chapter_04.scale:scale",
    "masks": "transformer_book.experiments.chapter_04.masks:masks",
    "one_head": "transformer_book.experiments.chapter_05:one_head",
    "heads": "transformer_book.experiments.chapter_05:heads",
    "lengths": "transformer_book.experiments.chapter_06:lengths",
    "short": "transformer_book.experiments.chapter_06:short",
    "by_turns": "transformer_book.experiments.chapter_06:by_turns",
    "longer": "transformer_book.experiments.chapter_06:longer",
    "who_sees": "transformer_book.experiments.chapter_06.who_sees:who_sees",
    "aliases": "transformer_book.experiments.chapter_06.aliases:aliases",
    "leak": "transformer_book.experiments.chapter_06.leak:leak",
    "orders": "transformer_book.experiments.chapter_07:orders",
    "twice": "transformer_book.experiments.chapter_07:twice",
    "wires": "transformer_book.experiments.chapter_07.wires:wires",
    "handing_on": "transformer_book.experiments.chapter_07.wires:handing_on",
    "stacks": "transformer_book.experiments.chapter_07.stacks:stacks",
    "by_heart": "transformer_book.experiments.chapter_07.by_heart:by_heart",
    "recurrence": "transformer_book.experiments.chapter_08:recurrence",
    "start_and_step": "transformer_book.experiments.chapter_08.start_and_step:start_and_step",
    "elsewhere": "transformer_book.experiments.chapter_08.elsewhere:elsewhere",
    "mistakes": "transformer_book.experiments.chapter_09:mistakes",
    "few": "transformer_book.experiments.chapter_09:few",
    "schedules": "transformer_book.experiments.chapter_09.schedules:schedules",
    "smoothing": "transformer_book.experiments.chapter_09.smoothing:smoothing",
    "one_layer": "transformer_book.experiments.chapter_09.rates:one_layer",
    "two_thousand": "transformer_book.experiments.chapter_09.rates:two_thousand",
    "beams": "transformer_book.experiments.chapter_10:beams",
    "inside": "transformer_book.experiments.chapter_12:inside",
    "article": "transformer_book.experiments.chapter_12.article:article",
    "half": "transformer_book.experiments.chapter_13:half",
    "half_first": "transformer_book.experiments.chapter_13:half_first",
    "half_neighbours": "transformer_book.experiments.chapter_13:half_neighbours",
    "induction": "transformer_book.experiments.chapter_14:induction",
    "looks_forbidden": "transformer_book.experiments.chapter_14.looks:looks_forbidden",
    "masking": "transformer_book.experiments.chapter_14:masking",
    "labels": "transformer_book.experiments.chapter_14.labels:labels",
    "agreement": "transformer_book.experiments.chapter_14.agreement:agreement",
    "parity": "transformer_book.experiments.chapter_18.parity:parity",
    "qk_norm": "transformer_book.experiments.chapter_15.qk_norm:qk_norm",
    "experts": "transformer_book.experiments.chapter_15.experts:experts",
    "experts_in_text": "transformer_book.experiments.chapter_15.experts_in_text:experts_in_text",
    "rewards": "transformer_book.experiments.chapter_18.rewards:rewards",
    "blocks_longer": "transformer_book.experiments.chapter_15.blocks_longer:blocks_longer",
    "from_zero": "transformer_book.experiments.chapter_15.looking_back:from_zero",
    "looking_back": "transformer_book.experiments.chapter_15.looking_back:looking_back",
    "caches": "transformer_book.experiments.chapter_16.caches:caches",
    "caches_longer": "transformer_book.experiments.chapter_16.caches:caches_longer",
    "thinking": "transformer_book.experiments.chapter_18.thinking:thinking",
    "distilling": "transformer_book.experiments.chapter_18.distilling:distilling",
}


def experiment(name: str) -> Experiment:
    """The experiment of this name. Raises ValueError, which lists the names, for another."""
    if name not in HOMES:
        raise ValueError(f"name must be one of {', '.join(HOMES)}, got {name!r}")
    module, _, attribute = HOMES[name].partition(":")
    return getattr(import_module(module), attribute)
