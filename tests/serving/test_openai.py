"""OpenAI's own client, unmodified, against a running server; the numbers against the module itself."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import numpy as np
import openai
import pytest
import torch
from running import Running

from every_task import language_model
from heedful.families import GenerationDefaults
from heedful.generation import GenerationConfig
from heedful.serving.openai.logprobs import Replay
from heedful.tasks.language_model import CausalLanguageModel
from heedful.tasks.language_model.predictor import LanguageModelSettings

PROMPT = "The cat reads "


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def writer(server: Running) -> CausalLanguageModel:
    result: CausalLanguageModel = server.state.models["writer"].predictor
    return result


def greedy(writer: CausalLanguageModel, prompt: str, length: int) -> str:
    (text,) = writer.predict([prompt], beam=1, max_new_tokens=length)
    return text


def test_models_are_listed_and_found(client: openai.OpenAI, server: Running) -> None:
    assert [model.id for model in client.models.list()] == list(server.state.models)
    assert client.models.retrieve("writer").model_dump()["task"] == "language-model"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("../writer")
    assert refused.value.status_code == 404


def test_greedy_completions_say_what_the_model_says(client: openai.OpenAI, writer: CausalLanguageModel) -> None:
    prompts = [PROMPT, "나는 정원에서"]
    result = client.completions.create(model="writer", prompt=prompts, temperature=0, max_tokens=11, n=2)
    texts = [greedy(writer, prompt, 11) for prompt in prompts]
    assert [choice.text for choice in result.choices] == [texts[0], texts[0], texts[1], texts[1]]
    assert [choice.index for choice in result.choices] == [0, 1, 2, 3]
    answers = writer.answers(prompts, beam=1, max_new_tokens=11)
    reasons = ["stop" if answer.finished else "length" for answer in answers for _ in range(2)]
    assert [choice.finish_reason for choice in result.choices] == reasons
    usage = result.usage
    assert usage is not None
    assert usage.prompt_tokens == sum(len(writer.tokenizer.encode(prompt)) for prompt in prompts)
    assert usage.completion_tokens == sum(2 * answer.n_tokens for answer in answers)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert result.object == "text_completion"
    assert result.id.startswith("cmpl-")


def test_token_ids_are_prompts_too(client: openai.OpenAI, writer: CausalLanguageModel) -> None:
    ids = writer.tokenizer.encode(PROMPT)
    for prompt in (ids, [ids]):
        result = client.completions.create(model="writer", prompt=prompt, temperature=0, echo=True)
        assert result.choices[0].text == PROMPT + greedy(writer, PROMPT, 16)
    with pytest.raises(openai.BadRequestError, match="token ids") as refused:
        client.completions.create(model="writer", prompt=[10**6])
    assert refused.value.param == "prompt"


def streamed(events: Any) -> dict[int, str]:
    """The text of every choice; a reason ends each."""
    texts: dict[int, str] = {}
    ended = set()
    for event in events:
        for choice in event.choices:
            assert choice.index not in ended
            texts[choice.index] = texts.get(choice.index, "") + choice.text
            if choice.finish_reason is not None:
                ended.add(choice.index)
    assert ended == set(texts)
    return texts


def test_a_stream_is_the_same_text_bit_by_bit(client: openai.OpenAI) -> None:
    parameters: dict[str, Any] = {"model": "writer", "prompt": [PROMPT, ""], "n": 3, "seed": 5, "max_tokens": 24}
    whole = client.completions.create(**parameters)
    events = list(client.completions.create(**parameters, stream=True, stream_options={"include_usage": True}))
    assert streamed(events) == {choice.index: choice.text for choice in whole.choices}
    assert len(events) > 12
    assert events[-1].usage == whole.usage
    assert not events[-1].choices
    assert {event.id for event in events} == {events[0].id}
    indices = [event.choices[0].index for event in events[:-1]]
    assert indices != sorted(indices)  # they come side by side
    assert all(event.usage is None for event in client.completions.create(**parameters, stream=True))


def test_a_seed_gives_the_same_text_alone_and_in_a_crowd(server: Running, writer: CausalLanguageModel) -> None:
    async def crowd() -> tuple[list[str], list[str]]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:

            async def ask(seed: int | None, **more: Any) -> str:
                parameters: dict[str, Any] = {"model": "writer", "prompt": PROMPT, "seed": seed, "top_p": 0.9, **more}
                if seed == 3:
                    return "".join(
                        [e.choices[0].text async for e in await client.completions.create(**parameters, stream=True)]
                    )
                return (await client.completions.create(**parameters)).choices[0].text

            single = [await ask(seed) for seed in range(6)]
            others = [ask(None, max_tokens=length, prompt="물을 마시고") for length in (3, 30)]
            return single, (await asyncio.gather(*others, *map(ask, range(6))))[2:]

    single, concurrent = asyncio.run(crowd())
    assert single == concurrent
    assert len(set(single)) > 3
    options: dict[str, Any] = {"sample": True, "top_p": 0.9, "max_new_tokens": 16}
    assert single == [writer.predict([PROMPT], seed=seed, **options)[0] for seed in range(6)]


def test_without_a_seed_every_answer_is_another(client: openai.OpenAI) -> None:
    texts = {client.completions.create(model="writer", prompt=PROMPT).choices[0].text for _ in range(4)}
    assert len(texts) > 1
    both = client.completions.create(model="writer", prompt=[PROMPT] * 2, seed=1)
    twice = client.completions.create(model="writer", prompt=PROMPT, seed=1, n=2)
    assert [choice.text for choice in both.choices] == [choice.text for choice in twice.choices]
    assert both.choices[0].text != both.choices[1].text


def test_best_of_gives_the_most_likely_a_token(client: openai.OpenAI) -> None:
    parameters: dict[str, Any] = {"model": "writer", "prompt": PROMPT, "seed": 7, "max_tokens": 5, "logprobs": 0}
    every = client.completions.create(**parameters, n=4)
    best = client.completions.create(**parameters, n=2, best_of=4)
    assert best.usage == every.usage

    def mean(choice: Any) -> float:
        return sum(choice.logprobs.token_logprobs) / len(choice.logprobs.token_logprobs)

    cut = [choice for choice in every.choices if choice.finish_reason == "length"]
    assert len(cut) == 4  # so that no end is missing among the tokens
    wanted = sorted(cut, key=mean, reverse=True)[:2]
    assert [choice.text for choice in best.choices] == [choice.text for choice in wanted]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_is_never_shown(client: openai.OpenAI, writer: CausalLanguageModel, *, stream: bool) -> None:
    whole = greedy(writer, PROMPT, 30)
    for first in (3, 9):  # one across tokens
        stop = whole[first : first + 4]
        parameters: dict[str, Any] = {"model": "writer", "prompt": PROMPT, "temperature": 0, "max_tokens": 30}
        parameters["stop"] = ["never written", stop]
        if stream:
            events = list(client.completions.create(**parameters, stream=True))
            text, reason = streamed(events)[0], events[-1].choices[0].finish_reason
        else:
            choice = client.completions.create(**parameters).choices[0]
            text, reason = choice.text, choice.finish_reason
        assert (text, reason) == (whole[: whole.find(stop)], "stop")


@torch.inference_mode()
def test_logprobs_are_those_of_the_module(client: openai.OpenAI, writer: CausalLanguageModel) -> None:
    """The prompt's and the answer's, by the formula: log softmax of the module's own logits."""
    prompt, tokenizer = PROMPT + "한글", writer.tokenizer
    parameters: dict[str, Any] = {"model": "writer", "prompt": prompt, "temperature": 0, "max_tokens": 9, "logprobs": 3}
    choice = client.completions.create(**parameters, echo=True).choices[0]
    (hypothesis,) = writer.generate(writer.inputs(prompt), GenerationConfig(max_new_tokens=9))[0]
    ids = [*tokenizer.encode(prompt), *hypothesis.tokens]
    logprobs = writer.module(torch.tensor([ids])).log_softmax(-1)[0]
    reference = [logprobs[place, came].item() for place, came in enumerate(ids[1:])]
    result = choice.logprobs
    assert result is not None
    assert result.token_logprobs is not None
    assert result.top_logprobs is not None
    assert result.tokens is not None
    assert result.token_logprobs[0] is None
    assert result.token_logprobs[1:] == pytest.approx(reference, abs=1e-4)
    assert result.top_logprobs[0] is None
    for place, (top, token) in enumerate(zip(result.top_logprobs[1:], result.tokens[1:], strict=True)):
        best = logprobs[place].topk(3).values.tolist()
        assert sorted(top.values(), reverse=True)[:3] == pytest.approx(best, abs=1e-4)
        assert len(top) == 3 + (reference[place] < best[-1])
        assert top[token] == pytest.approx(reference[place], abs=1e-4)
    # Where a token is text, it stands at its place; one that is a byte has its name and its character's place.
    assert result.text_offset == sorted(result.text_offset or [])
    named = [token.startswith("<0x") for token in result.tokens]
    assert {*named} == {True, False}
    for token, offset, is_name in zip(result.tokens, result.text_offset or [], named, strict=True):
        assert is_name or choice.text[offset:].startswith(token)
    # Without the echo, and bit by bit, it is the same; how much is read at once moves the last digits.
    n_prompt = len(tokenizer.encode(prompt))
    plain = client.completions.create(**parameters).choices[0].logprobs
    events = list(client.completions.create(**parameters, stream=True))
    bits: dict[str, Any] = {
        field: [entry for event in events for entry in getattr(event.choices[0].logprobs, field)]
        for field in ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    }
    assert plain is not None
    for visible in (plain.model_dump(), bits):
        assert visible["tokens"] == result.tokens[n_prompt:]
        assert visible["token_logprobs"] == pytest.approx(reference[n_prompt - 1 :], abs=1e-4)
        assert visible["text_offset"] == [offset - len(prompt) for offset in (result.text_offset or [])[n_prompt:]]
        for top, same in zip(visible["top_logprobs"], result.top_logprobs[n_prompt:], strict=True):
            assert top == pytest.approx(same, abs=1e-4)


def test_a_prompt_can_be_scored_alone(client: openai.OpenAI, writer: CausalLanguageModel) -> None:
    result = client.completions.create(model="writer", prompt=PROMPT, max_tokens=0, echo=True, logprobs=0)
    (choice,) = result.choices
    assert (choice.text, choice.finish_reason) == (PROMPT, "length")
    assert result.usage is not None
    assert result.usage.completion_tokens == 0
    assert choice.logprobs is not None
    assert choice.logprobs.token_logprobs is not None
    assert choice.logprobs.top_logprobs is None
    row = torch.tensor([writer.tokenizer.encode(PROMPT)])
    with torch.inference_mode():
        nats = torch.nn.functional.cross_entropy(writer.module(row)[0, :-1], row[0, 1:], reduction="sum")
    assert -sum(choice.logprobs.token_logprobs[1:]) == pytest.approx(nats.item(), abs=1e-3)


def test_a_replay_scores_tokens_beyond_the_context_as_generation_did() -> None:
    writer = language_model()
    writer.settings = LanguageModelSettings(tokens=GenerationDefaults(start=2, end=()), context=9)
    ids = writer.tokenizer.encode("The cat")
    ((written,),) = writer.generate([ids], GenerationConfig(max_new_tokens=50))
    assert len(written.tokens) == 50
    for size in (1, 4, 50):  # however it is read
        replay = Replay(writer, ids[0], 2)
        places = replay.score(ids[1:])
        for begin in range(0, len(written.tokens), size):
            places += replay.score(written.tokens[begin : begin + size])
        result = [place.logprob for place in places[len(ids) - 1 :]]
        assert result == pytest.approx(written.token_logprobs, abs=1e-4)


def test_embeddings_are_the_models_vectors(client: openai.OpenAI, server: Running) -> None:
    embedder = server.state.models["vectors"].predictor
    texts = ["The cat reads a book.", "물을 마시고"]
    wanted = embedder.predict(texts)
    result = client.embeddings.create(model="vectors", input=texts)  # the client asks for base64
    assert [entry.embedding for entry in result.data] == [pytest.approx(vector, abs=1e-6) for vector in wanted]
    assert result.usage.prompt_tokens == sum(len(embedder.tokenizer.encode(text)) for text in texts)
    plain = client.embeddings.create(model="vectors", input=texts[1], encoding_format="float", dimensions=32)
    assert plain.data[0].embedding == pytest.approx(wanted[1], abs=1e-6)
    ids = embedder.tokenizer.encode(texts[0])
    by_ids = client.embeddings.create(model="vectors", input=[ids, ids[1:-1]])
    assert [entry.embedding for entry in by_ids.data] == [pytest.approx(wanted[0], abs=1e-6)] * 2
    raw = httpx2.post(
        f"{server.url}/v1/embeddings", json={"model": "vectors", "input": texts[0], "encoding_format": "base64"}
    ).json()["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(raw), "<f4") == pytest.approx(wanted[0], abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": "nobody"}, "model"),
        ({"model": "vectors"}, "model"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", 5]}, "prompt"),
        ({"prompt": "a" * 20_001}, "prompt"),
        ({"prompt": "the cat " * 60}, "prompt"),
        ({"prompt": "a\ud800"}, "prompt"),
        ({"prompt": ["a"] * 30, "n": 8}, "n"),
        ({"max_tokens": 1025}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 1.1}, "top_p"),
        ({"n": 9}, "n"),
        ({"n": 3, "best_of": 2}, "best_of"),
        ({"best_of": 3, "stream": True}, "best_of"),
        ({"logprobs": 6}, "logprobs"),
        ({"stop": list("abcde")}, "stop"),
        ({"stop": ""}, "stop"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"frequency_penalty": -0.5}, "frequency_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"suffix": "."}, "suffix"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"mirostat": 1}, "mirostat"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(server: Running, changes: dict[str, Any], param: str) -> None:
    body = json.dumps({"model": "writer", "prompt": PROMPT, **changes})
    answer = httpx2.post(f"{server.url}/v1/completions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == (404 if changes.get("model") == "nobody" else 400)
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"]) == ("invalid_request_error", param)
    assert len(error["message"]) < 400


def test_what_changes_nothing_is_taken(client: openai.OpenAI) -> None:
    client.completions.create(
        model="writer",
        prompt=None,
        presence_penalty=0,
        frequency_penalty=0,
        logit_bias={},
        suffix="",
        user="me",
        stop=[],
    )


def test_embeddings_and_chats_that_cannot_be(client: openai.OpenAI) -> None:
    for ids_sent, param in (
        ({"input": ""}, None),
        ({"input": []}, "input"),
        ({"input": "the cat " * 60}, "input"),
        ({"dimensions": 8}, "dimensions"),
        ({"model": "writer"}, "model"),
        ({"input": [10**6]}, "input"),
    ):
        parameters: dict[str, Any] = {"model": "vectors", "input": "a", **ids_sent}
        if param is None:  # its tokeniser puts something around nothing
            client.embeddings.create(**parameters)
            continue
        with pytest.raises(openai.BadRequestError) as refused:
            client.embeddings.create(**parameters)
        assert refused.value.param == param
    with pytest.raises(openai.NotFoundError, match="/v1/completions"):
        client.chat.completions.create(model="writer", messages=[{"role": "user", "content": "hello"}])


def test_a_key_opens_and_others_do_not(serving: Callable[..., Running]) -> None:
    url = f"{serving('writer', api_keys=('sesame',)).url}/v1"
    with openai.OpenAI(base_url=url, api_key="sesame", max_retries=0) as client:
        assert streamed(client.completions.create(model="writer", prompt="a", max_tokens=3, stream=True))
    with openai.OpenAI(base_url=url, api_key="sesam", max_retries=0) as client:
        for ask in (client.models.list, lambda: client.completions.create(model="writer", prompt="a")):
            with pytest.raises(openai.AuthenticationError) as refused:
                ask()
            assert "sesam" not in str(refused.value)


def test_a_client_that_leaves_frees_its_place(server: Running) -> None:
    """Straight to the app, whose client is gone once it has seen the first event."""
    worker = server.state.models["writer"].worker
    sent: list[bytes] = []

    async def leave() -> None:
        body = json.dumps({"model": "writer", "prompt": "", "max_tokens": 60, "n": 4, "stream": True}).encode()
        arriving = [{"type": "http.request", "body": body, "more_body": False}]
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if arriving:
                return arriving.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if message.get("body"):
                gone.set()

        scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "method": "POST"}
        scope |= {"path": "/v1/completions", "raw_path": b"/v1/completions", "query_string": b"", "http_version": "1.1"}
        scope |= {"headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]}
        scope |= {"scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
        await server.app(scope, receive, send)
        for _ in range(2):  # a step between them
            await worker.call(lambda: None)

    asyncio.run(leave())
    assert any(sent)
    assert not any(b"[DONE]" in body for body in sent)
    assert (worker.running, worker.waiting) == (0, 0)
