"""A style sheet without the values (``--name: …``) and the motions that nothing asks for."""

import re
from collections import defaultdict
from collections.abc import Iterator

import tinycss2

from website.extensions.lean_styles import ASKED, GROUPS


def parts_of(body: list) -> Iterator[tuple[str, str]]:
    """The declarations of a rule: the name of the value that one sets, or "", and its text."""
    part: list = []
    for token in [*body, None]:
        if token is not None and token != ";":
            part.append(token)
            continue
        text = tinycss2.serialize(part).strip()
        if text:
            found = re.match(r"(--[\w-]+)\s*:", text)
            yield found[1] if found else "", text
        part = []


def rules_in(rules: list) -> Iterator:
    for rule in rules:
        if rule.type == "at-rule" and rule.at_keyword in GROUPS:
            yield from rules_in(tinycss2.parse_rule_list(rule.content, True, True))
        else:
            yield rule


def needed(rules: list, asked: set[str]) -> set[str]:
    """The values that are asked for, also by another one that is."""
    behind: defaultdict[str, set[str]] = defaultdict(set)
    ahead = set(asked)
    for rule in rules_in(rules):
        for name, text in parts_of(rule.content or []):
            (behind[name] if name else ahead).update(ASKED.findall(text))
    found: set[str] = set()
    while ahead:
        name = ahead.pop()
        found.add(name)
        ahead |= behind[name] - found
    return found


def kept(rules: list, names: set[str]) -> str:
    out = []
    for rule in rules:
        if rule.type == "qualified-rule":
            body = [text for name, text in parts_of(rule.content) if not name or name in names]
            if body:
                out.append(f"{tinycss2.serialize(rule.prelude)}{{{';'.join(body)}}}")
        elif rule.at_keyword in GROUPS:
            if inside := kept(tinycss2.parse_rule_list(rule.content, True, True), names):
                out.append(
                    f"@{rule.at_keyword} {tinycss2.serialize(rule.prelude).strip()}{{{inside}}}"
                )
        else:
            out.append(rule.serialize())
    return "\n".join(out)


def moves(rule, css: str) -> bool:
    """Whether a rule is no ``@keyframes``, or one whose name is that of some animation."""
    if rule.type != "at-rule" or rule.at_keyword != "keyframes":
        return True
    name = re.escape(tinycss2.serialize(rule.prelude).strip())
    return re.search(rf"animation(-name)?\s*:[^;}}]*(?<![\w-]){name}(?![\w-])", css) is not None


def without_unasked(css: str, asked: set[str]) -> str:
    """``css`` without values that neither it nor ``asked`` asks for, and without idle motions."""
    parsed = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    rules = [rule for rule in parsed if moves(rule, css)]
    return kept(rules, needed(rules, asked))
