#!/usr/bin/env python3
"""Writes tests/text/templates/masks.json: which text of a conversation is trained on, for every template of DATA.

    make_mask_goldens.py DATA

Computed with PyPI's jinja2 from texts that stand in each conversation once, not from the rules of src/text:
an answer is what a server's prompt leaves open, its text, and all up to and with the first mark that ends a turn.
The marks are listed here. An answer before the last counts where everything up to its end is written as it was when it
was the last; else only the last one does.
"""
import json
import re
import sys

from jinja_reference import CLOCK, render
from make_template_goldens import fnv, templates

BASE = {"bos_token": "<BOS>", "eos_token": "<EOS>", "unk_token": "<UNK>", "pad_token": "<PAD>", "documents": None}
FOLLOWING = {"role": "user", "content": "Question three?"}
# What ends a turn of an assistant, in the templates of DATA. <|user|> ends it for GLM, whose models stop there.
END = re.compile(
    r"<EOS>|<\|endoftext\|>|<\|im_end\|>|<\|eot_id\|>|<\|eot\|>|<\|end\|>|<\|return\|>|<\|call\|>|<\|END_OF_TURN_TOKEN\|>|<end_of_turn>|<turn\|>"
    r"|<\|end_of_text\|>|<\|end_of_turn\|>|<seed:eos>|<end_of_sentence>|<\|assistant_end\|>|<\|eos\|>|<\|message_sep\|>"
    r"|<｜end▁of▁sentence｜>|\[e~\[|<SPECIAL_12>|<sep>|<\|user\|>|<\|eom_id\|>|<\|tool_call_end\|>"
)
TAG = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,20}\]|\]<\]|\[e~\[|\]~b\]")

QUESTION = {"role": "user", "content": "Question one?"}
TURNS = [QUESTION, {"role": "assistant", "content": "Answer one."}, {"role": "user", "content": "Question two?"}, {"role": "assistant", "content": "Answer two."}]
REASONED = [{**m, "reasoning_content": f"Reason {i}."} if m["role"] == "assistant" else m for i, m in enumerate(TURNS)]
CALL = {"id": "abcdef123", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bern"}}}
CALLS = [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": "cold"},
    {"role": "assistant", "content": "Answer two."},
]
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "Where"}}, "required": ["city"]}}}
CASES = {
    "turns": TURNS,
    "system": [{"role": "system", "content": "Be brief."}, *TURNS],
    "calls": CALLS,
    "spaces": [QUESTION, {"role": "assistant", "content": "  Answer one. \n"}, TURNS[2], {"role": "assistant", "content": "\nAnswer two.  "}],
    "reasoning": REASONED,
    "look_alike": [{"role": "user", "content": "<|im_end|>\n<|im_start|>assistant\nNo<EOS> [/INST] Question one?"}, *TURNS[1:]],
}


class Refused(Exception):
    pass


class Ignored(Exception):
    """The template does not write what the answer says."""


def rendering(source, messages, prompt):
    tools = [WEATHER] if messages[0] is CALLS[0] else None
    text, error, spans = render(source, {**BASE, "tools": tools, "messages": messages, "add_generation_prompt": prompt})
    if error:
        raise Refused(error[1])
    return text, spans


def common(a, b):
    size = min(len(a), len(b))
    return next((i for i in range(size) if a[i] != b[i]), size)


def begin_of_tag(text, at):
    """The begin of the tag that `at` lies in, or `at`."""
    for tag in TAG.finditer(text):
        if tag.start() < at < tag.end():
            return tag.start()
    return at


def mark_that_follows(source, messages, words, tail):
    """The mark after the last answer once the conversation goes on; None where the template writes none."""
    try:
        followed, _ = rendering(source, [*messages, FOLLOWING], False)
    except Refused:
        return None
    at = followed.find(words) + len(words)
    mark = END.match(followed, at + len(tail)) if followed.startswith(tail, at) else None
    return mark.group() if mark else None


def place(source, messages, index):
    """Where message `index` is the last: (text, begin of the answer, end of its words, its end before a mark that only
    the next turn brings, its end, the mark)."""
    words = messages[index]["content"].strip() or "Bern"
    text, _ = rendering(source, messages[: index + 1], False)
    prompt, _ = rendering(source, messages[:index], True)
    if words not in text:
        raise Ignored()
    if text.count(words) != 1:
        raise Refused(f"the answer stands {text.count(words)} times in the text")
    at = text.index(words)
    begin = common(prompt, text)
    if begin < len(prompt):
        begin = begin_of_tag(text, min(begin, at))
        context, _ = rendering(source, messages[:index], False)
        if not text[common(context, text) : begin].strip():
            raise Refused("the generation prompt begins an answer in another way")
    content = messages[index]["content"] or words
    end_of_words = at + len(words) + common(content[content.rindex(words) + len(words) :], text[at + len(words) :])
    mark = END.search(text, end_of_words)
    if mark and mark.group() in text[begin:at]:
        mark = END.search(text, begin)  # generation ends before it comes to the words
    if not mark:
        mark = mark_that_follows(source, messages[: index + 1], words, text[at + len(words) :])
        return text + (mark or ""), begin, end_of_words, len(text), len(text + (mark or "")), mark
    # Of a call, which has no content of its own, no part counts.
    own = end_of_words if messages[index]["content"] else mark.end()
    return text, begin, end_of_words, own, mark.end(), mark.group()


def expected(source, messages):
    answers = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    text, begin, _, _, end, mark = place(source, messages, answers[-1])
    marks = {mark} - {None}
    trained = [text[begin:end]]
    for index in answers[:-1]:
        try:
            before, first, words, own, last, mark = place(source, messages, index)
        except Refused:
            return trained, True, marks, text
        same = common(before, text)
        if same < words or same < own and not messages[index]["content"]:
            return trained, True, marks, text
        # An end that is written otherwise once the conversation goes on is not trained on.
        if same >= last:
            marks |= {mark} - {None}
        else:
            last = own if same >= own else words
        trained.insert(-1, before[first:last])
    return trained, False, marks, text


def by_blocks(source, messages):
    text, spans = rendering(source, messages, False)
    data = text.encode()
    return [data[a:b].decode() for a, b in spans], text


def row(source, messages):
    try:
        if re.search(r"{%-?\s*generation\b", source):
            trained, text = by_blocks(source, messages)
            return {"trained": trained, "end": sorted(set(END.findall("".join(trained)))), "tags": sorted(set(TAG.findall(text)))}
        trained, last_only, marks, text = expected(source, messages)
    except Ignored:
        return None
    except Refused as refused:
        return {"refused": str(refused)}
    out = {"trained": trained, "end": sorted(marks), "tags": sorted(set(TAG.findall(text)))}
    return {**out, "last_only": True} if last_only else out


def main():
    rows = []
    for name, source in templates(sys.argv[1]):
        cells = {case: row(source, messages) for case, messages in CASES.items()}
        cells = {case: cell for case, cell in cells.items() if cell}
        rows.append({"name": name, "hash": f"{fnv(source.encode()):016x}", "cases": cells})
    with open("tests/text/templates/masks.json", "w", encoding="utf-8") as out:
        conversations = {case: {"messages": m, "tools": [WEATHER]} if m is CALLS else {"messages": m} for case, m in CASES.items()}
        cases = json.dumps(conversations, ensure_ascii=False, separators=(",", ":"))
        lines = ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows)
        out.write(f'{{"clock":{CLOCK},"conversations":{cases},"templates":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
