"""The settings and limits of the server."""

from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import ClassVar, Literal

from ..config import Config


@dataclass(frozen=True, kw_only=True)
class Settings(Config):
    """Where a server listens, whom it admits, and its limits.

    One request has at most `max_body` bytes, which arrive within `receive_seconds`; `max_items` texts, images or
    series of `max_characters` each; `max_new_tokens` generated tokens, `max_n` completions and `max_alternatives`
    translations; and takes at most `seconds`. At the same time there are at most `max_connections` connections,
    `max_concurrency` running requests, and `max_waiting` items that wait for one model; more are refused at once. A
    request may need `max_work` tokens (see `work`), all running requests of a client `max_client_work`. An idle
    connection is closed after `keep_alive` seconds. After a signal, running requests have `drain_seconds`.

    Without `api_keys` everyone is admitted. The X-Forwarded-For headers of `trusted_proxies` (addresses or networks)
    are used. Models run on `device`, in `precision` where they generate text. `look` lets clients look inside them.
    """

    title: ClassVar[str] = "serving"

    host: str = "127.0.0.1"
    port: int = 8000
    max_body: int = 1_048_576
    max_items: int = 128
    max_characters: int = 20_000
    max_new_tokens: int = 1024
    max_n: int = 8
    max_alternatives: int = 5
    max_connections: int = 2048
    max_concurrency: int = 64
    max_waiting: int = 256
    max_work: int = 2_097_152
    max_client_work: int = 4_194_304
    seconds: float = 60.0
    receive_seconds: float = 10.0
    keep_alive: int = 5
    drain_seconds: float = 12.0
    api_keys: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    json_log: bool = False
    device: str = "auto"
    precision: Literal["float32", "bf16", "int8"] = "float32"
    look: bool = True

    def check(self) -> None:
        self.require(bool(self.host.strip()), "host is empty; 127.0.0.1 is for this machine only, 0.0.0.0 for all")
        self.require(0 <= self.port <= 65535, f"port must be from 0 (any free port) to 65535, not {self.port}")
        self.require_positive(
            *("max_body", "max_items", "max_characters", "max_new_tokens", "max_n", "max_connections"),
            *("max_concurrency", "max_waiting", "max_work", "keep_alive"),
        )
        self.require(
            self.max_client_work >= self.max_work,
            f"max_client_work, {self.max_client_work:,}, must allow one request of max_work, {self.max_work:,}",
        )
        self.require(
            self.max_connections >= self.max_concurrency,
            f"{self.max_concurrency} requests at once need as many connections, but max_connections is "
            f"{self.max_connections}",
        )
        self.require(self.max_alternatives >= 0, f"max_alternatives must not be negative: {self.max_alternatives}")
        for name in ("seconds", "receive_seconds", "drain_seconds"):
            self.require(getattr(self, name) > 0, f"{name} must be more than 0, not {getattr(self, name)}")
        self.require(all(key.strip() for key in self.api_keys), "an API key is empty")
        for proxy in self.trusted_proxies:
            self.require(
                is_network(proxy), f"a trusted proxy must be an address such as 10.0.0.1 or 10.0.0.0/8, not {proxy!r}"
            )

    def trusts(self, peer: str) -> bool:
        """Return whether a peer is a trusted proxy."""
        is_address = is_network(peer) and "/" not in peer
        return is_address and any(ip_address(peer) in ip_network(proxy, strict=False) for proxy in self.trusted_proxies)


def is_network(text: str) -> bool:
    """Return whether a text is an IP address or a network."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
