"""The conversations that every chat template is rendered with."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather for a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city, e.g. Zürich <center>"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": ["integer", "null"], "description": "How many days"},
            },
            "required": ["city"],
        },
        "return": {"type": "object", "description": "The weather"},
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search for 'things' & \"more\"",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "filters": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"field": {"type": "string"}, "limit": {"type": "number"}}},
                },
                "exact": {"type": "boolean"},
            },
            "required": ["query", "filters"],
        },
    },
}
NOTHING = {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}}

HELLO = {"role": "user", "content": "Hello, how are you?"}
REPLY = {"role": "assistant", "content": "I am fine, thanks!"}
SYSTEM = {"role": "system", "content": "You are a terse assistant."}


def call(arguments, identifier="abcdef123", name="get_weather"):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_turns(arguments, content=None, name_in_result=True):
    result = {"role": "tool", "tool_call_id": "abcdef123", "content": '{"temperature": 21.5, "sky": "晴れ"}'}
    if name_in_result:
        result["name"] = "get_weather"
    return [
        {"role": "user", "content": "Weather in Zürich?"},
        {"role": "assistant", "content": content, "tool_calls": [call(arguments)]},
        result,
    ]


TOOL = tool_turns({"city": "Zürich", "days": 3})
BASE = {"bos_token": "<BOS>", "eos_token": "<EOS>", "unk_token": "<UNK>", "pad_token": "<PAD>"}


def case(messages, prompt=True, **more):
    return {**BASE, "messages": messages, "add_generation_prompt": prompt, **more}


def parts(*items):
    return [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]


def conversations():
    return {
        "single": case([HELLO]),
        "single_no_prompt": case([HELLO], prompt=False),
        "turns": case([HELLO, REPLY, {"role": "user", "content": "Good. And now?"}]),
        "turns_no_prompt": case([HELLO, REPLY, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Bye."}], prompt=False),
        "ends_with_assistant": case([HELLO, REPLY]),
        "system": case([SYSTEM, HELLO]),
        "system_turns": case([SYSTEM, HELLO, REPLY, {"role": "user", "content": "Again"}], prompt=False),
        "system_late": case([HELLO, REPLY, SYSTEM, {"role": "user", "content": "Again"}]),
        "developer": case([{"role": "developer", "content": "Be kind."}, HELLO]),
        "unknown_role": case([{"role": "observer", "content": "I watch."}, HELLO]),
        "two_users": case([HELLO, {"role": "user", "content": "Anyone?"}]),
        "assistant_first": case([REPLY, HELLO]),
        "no_messages": case([]),
        "no_messages_no_prompt": case([], prompt=False),
        "empty_content": case([{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "user", "content": " "}]),
        "null_content": case([HELLO, {"role": "assistant", "content": None}, HELLO]),
        "missing_content": case([HELLO, {"role": "assistant"}, HELLO]),
        "spaces": case([{"role": "system", "content": "  \n system \t"}, {"role": "user", "content": "\n\n a  b \r\n\u3000"}]),
        "parts": case([{"role": "system", "content": parts("You are", " kind.")}, {"role": "user", "content": parts("Hello ", "there")}, {"role": "assistant", "content": parts("Hi.")}, {"role": "user", "content": parts("More?")}]),
        "parts_image": case([{"role": "user", "content": parts({"type": "image"}, "What is this?", {"type": "image_url", "image_url": {"url": "http://x/y.png"}})}]),
        "cjk": case([{"role": "system", "content": "你是一个助手。"}, {"role": "user", "content": "日本語で「こんにちは」と言って 👋🏽👨‍👩‍👧"}, {"role": "assistant", "content": "こんにちは！🎉"}, {"role": "user", "content": "감사합니다 ﬁ İ ß"}]),
        "braces": case([{"role": "user", "content": "{{ messages }} {% for %} {# c #} }} <|im_end|> ' \" \\n & < >"}]),
        "tools": case([HELLO], tools=[WEATHER, SEARCH]),
        "tools_system": case([SYSTEM, HELLO], tools=[WEATHER, SEARCH, NOTHING]),
        "tools_empty": case([SYSTEM, HELLO], tools=[]),
        "tools_null": case([SYSTEM, HELLO], tools=None),
        "tool_result": case(TOOL, tools=[WEATHER]),
        "tool_result_no_tools": case(TOOL),
        "tool_result_answer": case([SYSTEM, *TOOL, {"role": "assistant", "content": "21.5 degrees."}, HELLO], tools=[WEATHER, SEARCH]),
        "tool_string_arguments": case(tool_turns('{"city": "Zürich"}', "Let me look."), tools=[WEATHER]),
        "tool_no_name": case(tool_turns({"city": "Bern", "deep": {"list": [1, 2.5, None, True], "text": "a\"b"}}, "", False), tools=[WEATHER]),
        "tool_two_calls": case(
            [
                HELLO,
                {"role": "assistant", "content": "", "tool_calls": [call({"city": "Bern"}, "callaaaa1"), call({"query": "x", "filters": []}, "callbbbb2", "search")]},
                {"role": "tool", "tool_call_id": "callaaaa1", "name": "get_weather", "content": "cold"},
                {"role": "tool", "tool_call_id": "callbbbb2", "name": "search", "content": "nothing"},
            ],
            tools=[WEATHER, SEARCH],
        ),
        "tool_choice": case([HELLO], tools=[WEATHER], tool_choice="auto", tools_in_user_message=False, parallel_tool_calls=True),
        "thinking_on": case([SYSTEM, HELLO], enable_thinking=True, thinking=True),
        "thinking_off": case([SYSTEM, HELLO], enable_thinking=False, thinking=False),
        "reasoning": case([HELLO, {"role": "assistant", "reasoning_content": "Say hello.\nBriefly.", "reasoning": "Say hello.", "thinking": "Say hello.", "content": "Hello!"}, {"role": "user", "content": "Bye"}]),
        "reasoning_last": case([HELLO, {"role": "assistant", "reasoning_content": "Say hello.", "content": "Hello!"}], prompt=False, enable_thinking=True),
        "think_tags": case([HELLO, {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nHello!"}, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "<think>x</think>Bye"}], prompt=False),
        "reasoning_tools": case([HELLO, {"role": "assistant", "reasoning_content": "Call it.", "content": "", "tool_calls": [call({"city": "Bern"})]}, {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": "cold"}], tools=[WEATHER], enable_thinking=True),
        "documents": case([SYSTEM, HELLO], documents=[{"title": "Penguins", "text": "They swim.", "contents": "They swim.", "doc_id": 1}, {"title": "Sand", "text": "It is dry.", "contents": "It is dry.", "doc_id": 2}]),
        "effort": case([SYSTEM, HELLO], reasoning_effort="high", model_identity="You are a test.", builtin_tools=["python", "browser"], tools=[WEATHER]),
        "dates": case([SYSTEM, HELLO], date_string="01 Jan 2025", custom_tools=[WEATHER], current_date="2025-01-01"),
    }
