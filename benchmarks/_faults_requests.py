"""Faults of requests: hostile bodies and heads, slow clients, streams, models that break while they are served."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from _faults import Bench, Seen, fault
from _faults_bundles import INF, change_weights, fill, put
from _faults_data import png
from _faults_published import change_tokenizer
from _faults_server import KEY, MAX_HEALTH_MS, Answer, Pulse, ask, at_once, raw, served, statuses

GROUP = "Requests"
MIB = 2**20
PROMPTS = b'{"model":"lm","prompt":[' + b"[1]," * 261_000 + b"[1]]}"  # a megabyte
BODY_MIB = 1  # the server's limit
BEARER = {"Authorization": f"Bearer {KEY}"}
COMPLETE = {"model": "lm", "prompt": "the cat", "max_tokens": 4}


@fault(GROUP, "serve-inf", "`heedful serve` with a weight that is inf", "it does not start; the error names the tensor")
def _inf(bench: Bench) -> Seen:
    change_weights(bench.copy("classifier"), put(INF))
    ended = bench.run("serve", bench.folder / "classifier", "--port", "0", seconds=40)
    return Seen(ended.code == 1 and "holds NaN or inf" in ended.err, ended.message.replace(f"{bench.folder}/", ""))


@fault(
    GROUP,
    "serve-overflow",
    "weights of 1e30 are served, and a text is sent",
    "status 500 with a reason; no NaN in JSON",
)
def _overflow(bench: Bench) -> Seen:
    change_weights(bench.copy("classifier"), fill(1e30))
    with served(bench, bench.folder / "classifier") as server:
        answer = ask(server, "/v1/predict/classifier", {"inputs": ["the cat reads"]})
        return Seen(answer.status == 500 and b"NaN or inf" in answer.body, f"{answer.status}: {answer.error}")


def bodies() -> dict[str, tuple[str, bytes]]:
    """Return hostile bodies with their paths."""
    completions, predict, translate = "/v1/completions", "/v1/predict/classifier", "/translate"
    completion = b'{"model":"lm","prompt":%s,"max_tokens":4}'
    return {
        "empty": (completions, b""),
        "not JSON": (completions, b"\xff\xfe{"),
        "a list": (completions, b"[]"),
        "deep lists": (completions, completion % (b"[" * 100_000 + b"]" * 100_000)),
        "deep objects": (completions, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        "a number of 100,000 digits": (completions, completion % (b"1" * 100_000)),
        "an exponent": (completions, completion % b"[1e400]"),
        "NaN": (completions, completion % b"[NaN]"),
        "a negative id": (completions, completion % b"[-1]"),
        "an id beyond the vocabulary": (completions, completion % b"[2147483647]"),
        "half a surrogate pair": (completions, completion % rb'"\ud800"'),
        "a NUL": (completions, completion % rb'"a\u0000b"'),
        "keys given twice": (completions, b'{"model":"lm","model":"x","prompt":"a"}'),
        "100,000 keys": (completions, b"{" + b",".join(b'"%d":1' % n for n in range(100_000)) + b"}"),
        "a quarter of a million lists": (completions, PROMPTS),
        "a million commas": (completions, completion % (b"[" + b"1," * 500_000 + b"1]")),
        "a model of 900,000 letters": (completions, b'{"model":"' + b"x" * 900_000 + b'","prompt":"a"}'),
        "a path as a model": (completions, b'{"model":"../../etc/passwd","prompt":"a"}'),
        "max_tokens beyond the limit": (completions, b'{"model":"lm","prompt":"a","max_tokens":1000000000}'),
        "n beyond the limit": (completions, b'{"model":"lm","prompt":"a","n":1000000,"best_of":1000000}'),
        "a temperature of 1e308": (completions, b'{"model":"lm","prompt":"a","temperature":1e308}'),
        "a stop of 900,000 letters": (completions, b'{"model":"lm","prompt":"a","stop":"' + b"x" * 900_000 + b'"}'),
        "min_new_tokens beyond the limit": ("/v1/predict/lm", b'{"inputs":["a"],"min_new_tokens":1000000}'),
        "a beam of a million": ("/v1/predict/lm", b'{"inputs":["a"],"beam":1000000}'),
        "no_repeat_ngram_size of 2^63": (
            "/v1/predict/lm",
            b'{"inputs":["a"],"no_repeat_ngram_size":9223372036854775808}',
        ),
        "129 texts": (predict, json.dumps({"inputs": ["a"] * 129}).encode()),
        "100,000 empty texts": (predict, b'{"inputs":[' + b'"",' * 100_000 + b'""]}'),
        "a text of a million letters": (predict, b'{"inputs":["' + b"a" * 1_000_000 + b'"]}'),
        "a combining mark 20,000 times": (predict, json.dumps({"inputs": ["a" + "\u0301" * 19_999]}).encode()),
        "a number as a text": (predict, b'{"inputs":[1]}'),
        "20,000 quotation marks": (translate, json.dumps({"q": '"' * 20_000, "source": "en", "target": "ko"}).encode()),
        "HTML of 5,000 open tags": (
            translate,
            json.dumps({"q": "<b>" * 5_000, "source": "en", "target": "ko", "format": "html"}).encode(),
        ),
        "an unknown language": (translate, b'{"q":"a","source":"' + b"x" * 100_000 + b'","target":"ko"}'),
    }


@fault(
    GROUP, "bodies", "33 hostile bodies, one after another", "none gets a 500 or no answer; the server still answers"
)
def _bodies(bench: Bench) -> Seen:
    with served(bench, "lm", "classifier", "translator") as server:
        ask(server, "/v1/completions", COMPLETE)
        before = server.peak_mib
        answers = {name: ask(server, path, body) for name, (path, body) in bodies().items()}
        sound = ask(server, "/v1/completions", COMPLETE)
        peak = server.peak_mib
    wrong = [f"{name}: {answer.status}" for name, answer in answers.items() if answer.status in (0, 500)]
    wrong += [f"{name}: {answer.seconds:.1f} s" for name, answer in answers.items() if answer.seconds > 10]
    if peak > 2 * (before + BODY_MIB):
        wrong.append(f"{peak:,.0f} MiB, {before:,.0f} before")
    text = f"{statuses([*answers.values()])}; then {sound.status}; {peak:,.0f} MiB, {before:,.0f} before"
    return Seen(not wrong and sound.status == 200, "; ".join([text, *wrong]))


def _flood(bench: Bench, *, keys: bool, headers: dict[str, str], expected: Callable[[Answer], bool]) -> Seen:
    with served(bench, "lm", keys=keys) as server:
        ask(server, "/v1/completions", COMPLETE, **BEARER)
        before = server.peak_mib
        with Pulse(server) as pulse:
            answers = at_once([lambda: ask(server, "/v1/completions", PROMPTS, **headers)] * 64)
            time.sleep(0.5)
        peak = server.peak_mib
    justified = 2 * (before + 64 * BODY_MIB)
    passed = all(map(expected, answers)) and pulse.p99 < MAX_HEALTH_MS and peak < justified
    text = f"{statuses(answers)}; /health 99th percentile {pulse.p99:.0f} ms; {peak:,.0f} MiB, {before:,.0f} before"
    return Seen(passed, text)


@fault(
    GROUP,
    "large-bodies",
    "64 megabytes of `[1],[1],…` at once, as prompts",
    "400 or 503; /health within 100 ms (99th percentile); no more memory than twice the bodies",
)
def _large(bench: Bench) -> Seen:
    return _flood(bench, keys=False, headers={}, expected=lambda answer: answer.status in (400, 503))


@fault(
    GROUP,
    "large-bodies-strangers",
    "the same from clients without a key, where keys are needed",
    "401 before the body is read; /health within 100 ms",
)
def _strangers(bench: Bench) -> Seen:
    return _flood(bench, keys=True, headers={}, expected=lambda answer: answer.status in (0, 401, 503))


@fault(GROUP, "large-bodies-keyed", "the same from clients with a key", "400 or 503; /health within 100 ms")
def _keyed(bench: Bench) -> Seen:
    return _flood(bench, keys=True, headers=BEARER, expected=lambda answer: answer.status in (400, 503))


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HEADS: dict[str, tuple[int, bytes]] = {
    "Content-Length with Transfer-Encoding": (
        400,
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "two lengths": (400, POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}"),
    "a negative length": (400, POST + b"Content-Length: -1\r\n\r\n"),
    "a length of 5,000 digits": (400, POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"),
    "a length of 2^63": (400, POST + b"Content-Length: 9223372036854775808\r\nConnection: close\r\n\r\n"),
    "a bare line feed": (400, b"GET /health HTTP/1.1\nHost: localhost\n\n"),
    "HTTP/9.9": (505, HEALTH.replace(b"1.1", b"9.9") + b"\r\n"),
    "a head of 100 KB in one write": (431, HEALTH + b"X: " + b"x" * 100_000 + b"\r\n\r\n"),
    "10,000 headers": (431, HEALTH + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n"),
    "a NUL in a header": (400, HEALTH + b"X: a\0b\r\n\r\n"),
    "no HTTP": (505, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"),
    "another site's name": (421, b"GET /languages HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
    "a path to a file": (404, b"GET /page/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
}


@fault(
    GROUP,
    "heads",
    f"{len(HEADS)} hostile heads: {', '.join(HEADS)}",
    "each is refused with its status, and the connection closed",
)
def _heads(bench: Bench) -> Seen:
    with served(bench, "lm") as server:
        answers = {name: raw(server, sent, seconds=20) for name, (_, sent) in HEADS.items()}
        sound = ask(server, "/health")
    wrong = []
    for name, answer in answers.items():
        allowed = {HEADS[name][0], 400, 413} if HEADS[name][0] == 400 else {HEADS[name][0]}
        if answer.status not in allowed or answer.body.count(b"\nHTTP/1.1 "):
            wrong.append(f"{name}: {answer.status}")
    return Seen(not wrong and sound.status == 200, "; ".join([statuses([*answers.values()]), *wrong]))


@fault(GROUP, "gzip-body", "a body of 1 KB with Content-Encoding: gzip that unpacks to 1 MB", "400: it is not unpacked")
def _gzip(bench: Bench) -> Seen:
    with served(bench, "lm") as server:
        answer = ask(server, "/v1/completions", gzip.compress(PROMPTS), Content_Encoding="gzip")
    return Seen(answer.status in (400, 415), f"{answer.status}: {answer.error}")


@fault(
    GROUP,
    "slow-clients",
    "200 clients that send a byte a second, of a head or of a body, with `--receive-seconds 2`",
    "all are cut within 6 seconds; meanwhile others are answered",
)
def _slow(bench: Bench) -> Seen:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 30
    body = POST + b"Content-Length: 30\r\n\r\n"

    def drip(begin: bytes) -> Answer:
        return raw(server, begin, *[b"z"] * 12, pause=1.0, seconds=20)

    with served(bench, "lm", options=["--receive-seconds", "2"]) as server:
        ask(server, "/v1/completions", COMPLETE)
        calls: list[Callable[[], Answer]] = [lambda: drip(head), lambda: drip(body)] * 100
        results: list[list[Answer]] = []
        thread = threading.Thread(target=lambda: results.append(at_once(calls)))
        with Pulse(server) as pulse:
            thread.start()
            time.sleep(1)
            sound = ask(server, "/v1/completions", COMPLETE)
            thread.join()
    slowest = max(answer.seconds for answer in results[0])
    text = (
        f"cut after {slowest:.1f} s at most: {statuses(results[0])}; another: {sound.status} in {sound.seconds:.1f} s"
    )
    passed = slowest < 8 and sound.status == 200 and sound.seconds < 2 and pulse.p99 < MAX_HEALTH_MS
    return Seen(passed, f"{text}; /health 99th percentile {pulse.p99:.0f} ms")


@fault(
    GROUP,
    "stream-unread",
    "32 clients request a stream of 1,000 tokens and do not read it, with `--seconds 4`",
    "the connections are closed; others are answered meanwhile and afterwards",
)
def _unread(bench: Bench) -> Seen:
    body = json.dumps({**COMPLETE, "max_tokens": 1000, "stream": True}).encode()
    with served(bench, "lm", options=["--seconds", "4"]) as server:
        ask(server, "/v1/completions", COMPLETE)
        connections = []
        for _ in range(32):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            connections.append(connection)
        during = ask(server, "/v1/completions", COMPLETE)
        time.sleep(8)
        after = ask(server, "/v1/completions", COMPLETE)
        running = ask(server, "/metrics").body
        for connection in connections:
            connection.close()
    free = b"heedful_running_requests 0.0" in running
    text = f"during: {during.status} in {during.seconds:.1f} s; after: {after.status} in {after.seconds:.1f} s"
    return Seen(during.status == after.status == 200 and during.seconds < 2 and free, f"{text}; all ended: {free}")


@fault(
    GROUP, "stream-timeout", "a stream of 1,000 tokens with `--seconds 0.3`", "it ends with an error event and [DONE]"
)
def _stream_timeout(bench: Bench) -> Seen:
    with served(bench, "lm", options=["--seconds", "0.3"]) as server:
        answer = ask(server, "/v1/completions", {**COMPLETE, "max_tokens": 1024, "n": 8, "stream": True})
    *_, error, done, end = [b"", b"", b"", *answer.body.split(b"\n\n")]
    passed = done == b"data: [DONE]" and end == b"" and b'"code":"timeout"' in error
    return Seen(passed, f"{answer.status}; the last events: {error[:80].decode()} {done.decode()}")


@fault(
    GROUP,
    "draining",
    "SIGTERM while a request runs",
    "/health says `draining` with 503; the request is answered; the server ends",
)
def _draining(bench: Bench) -> Seen:
    with served(bench, "lm") as server:
        ask(server, "/v1/completions", COMPLETE)
        results: list[Answer] = []
        body = {**COMPLETE, "max_tokens": 1024, "n": 8}
        thread = threading.Thread(target=lambda: results.append(ask(server, "/v1/completions", body)))
        thread.start()
        time.sleep(0.3)
        os.kill(server.pid, signal.SIGTERM)
        health, refused = ask(server, "/health"), ask(server, "/v1/completions", COMPLETE)
        thread.join()
    text = f"/health: {health.status} {health.body.decode()}; new: {refused.status}; running: {results[0].status}"
    passed = health.status == 503 and b"draining" in health.body and refused.status == 503 and results[0].status == 200
    return Seen(passed, text)


@fault(
    GROUP,
    "tokenizer-panic",
    "a served tokenizer with the expression `(a+)+b`; texts of 40 letters a, then a harmless one",
    "errors for the first, an answer for the second: no thread dies",
)
def _panic(bench: Bench) -> Seen:
    folder = bench.copy("classifier")
    split = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    change_tokenizer(folder, lambda values: values.update(pre_tokenizer=split))
    from _faults_bundles import change_config, renew_sums

    change_config(folder, lambda values: renew_sums(folder, values))
    with served(bench, folder) as server, Pulse(server) as pulse:
        path = "/v1/predict/classifier"
        broken = at_once([lambda: ask(server, path, {"inputs": ["a" * 40]})] * 8)
        sound = ask(server, path, {"inputs": ["the cat reads"]})
    text = f"{statuses(broken)} ({broken[0].error}); then {sound.status}; /health {pulse.p99:.0f} ms"
    passed = all(answer.status in (400, 500) for answer in broken) and sound.status == 200 and sound.seconds < 5
    return Seen(passed, text)


@fault(
    GROUP,
    "html-tags",
    "48 translations of HTML of 20,000 characters, of tags within tags",
    "/health within 100 ms (99th percentile)",
)
def _html(bench: Bench) -> Seen:
    text = "<p><b><i><a href='x'>ba</a></i></b> be <u>bi</u></p>" * 380
    body = {"q": text, "source": "en", "target": "ko", "format": "html"}
    with served(bench, "translator") as server:
        ask(server, "/translate", {**body, "q": "ba"})
        with Pulse(server) as pulse:
            answers = at_once([lambda: ask(server, "/translate", body)] * 48)
    text = f"{statuses(answers)}; /health 99th percentile {pulse.p99:.0f} ms"
    return Seen(pulse.p99 < MAX_HEALTH_MS and all(answer.status in (200, 429, 503) for answer in answers), text)


@fault(
    GROUP,
    "html-segments",
    "64 requests of a megabyte of HTML with a paragraph for every two letters, 8 at once",
    "400; no more memory than twice the bodies",
)
def _segments(bench: Bench) -> Seen:
    body = {"q": ["<p>ba</p>" * 2_200] * 50, "source": "en", "target": "ko", "format": "html"}
    with served(bench, "translator") as server:
        ask(server, "/translate", {**body, "q": "ba"})
        before = server.peak_mib
        with Pulse(server) as pulse:
            answers = [answer for _ in range(8) for answer in at_once([lambda: ask(server, "/translate", body)] * 8)]
        peak = server.peak_mib
    text = f"{statuses(answers)}; /health 99th percentile {pulse.p99:.0f} ms; {peak:,.0f} MiB, {before:,.0f} before"
    passed = all(answer.status == 400 for answer in answers) and peak < 2 * (before + 8 * BODY_MIB)
    return Seen(passed and pulse.p99 < MAX_HEALTH_MS, text)


@fault(GROUP, "image-bomb-request", "a PNG of 1 KB that states 60,000 × 60,000 pixels, in base64", "400; little memory")
def _image(bench: Bench) -> Seen:
    image = base64.b64encode(png(60_000, 60_000, bytes(1000))).decode()
    with served(bench, "pictures") as server:
        before = server.peak_mib
        answer = ask(server, "/v1/predict/pictures", {"inputs": [image]})
        peak = server.peak_mib
    passed = answer.status == 400 and peak < 2 * before
    return Seen(passed, f"{answer.status}: {answer.error}; {peak:,.0f} MiB, {before:,.0f} before")


@fault(
    GROUP,
    "connections",
    "3,000 idle connections, where 2,048 are allowed",
    "the rest get 503; those that were there are answered",
)
def _connections(bench: Bench) -> Seen:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    with served(bench, "lm") as server:
        kept = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        connections = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(3000)]
        kept.sendall(HEALTH + b"\r\n")
        first = kept.recv(100)
        last = connections[-1].recv(100)
        for connection in (kept, *connections):
            connection.close()
        time.sleep(1)
        after = ask(server, "/health")
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    passed = first.startswith(b"HTTP/1.1 200") and last.startswith(b"HTTP/1.1 503") and after.status == 200
    return Seen(passed, f"the first: {first[:12].decode()}; the last: {last[:12].decode()}; afterwards: {after.status}")
