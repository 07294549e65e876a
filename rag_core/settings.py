"""What the environment may set, read here and nowhere else: the LLM filter's defaults, the model endpoint and prices,
and the database of a team.

A variable that cannot be used is an error naming variable and value. `read()` checks them all, for the start of a
program; what the values mean is for the stages and the model client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from urllib.parse import urlsplit

from rag_core.errors import InputError

PREFIX = "CHUNK_FILTERING_"
OPENAI = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-4o-mini"
MAX_ANSWER_TOKENS = 4096
"""The limit of an answer unless one is set: what a call may cost has to be known before it is paid."""
ENVIRONMENT = "environment"
"""The name of the endpoint that the environment describes."""


@dataclass(frozen=True)
class ChunkFiltering:
    """The settings of the LLM filter that the environment may give; the stage has them as its defaults."""

    enabled: bool = True
    oversample_multiplier: float = 1.6  # 1 to 20
    min_relevance_threshold: float = 0.3  # a cosine similarity, -1 to 1
    llm_timeout_ms: int = 5000  # 1 to 3,600,000
    max_prompt_tokens: int = 2000  # 500 to 1,000,000


@dataclass(frozen=True)
class ModelSettings:
    """An endpoint: the environment's, or one a file names. `key` is secret: shown by nothing, handed on at once."""

    base_url: str
    model: str
    key: str
    allow_private: bool = False
    price_in: float | None = None  # per million prompt tokens; None: unknown
    price_out: float | None = None  # per million completion tokens
    name: str = ENVIRONMENT
    temperature: float | None = None  # None: not sent, the model's own
    reasoning_effort: str = ""  # low, medium, high or what the model calls it; "": not sent
    seed: int | None = None  # None: not sent
    max_tokens: int = MAX_ANSWER_TOKENS  # of an answer, what a model thinks before it included
    logprobs: bool = False  # whether the probability of every token is asked for, which some servers offer

    def __repr__(self) -> str:
        return f"ModelSettings({self.base_url!r}, {self.model!r})"


@dataclass(frozen=True)
class DatabaseSettings:
    """The team's PostgreSQL. `url` holds a password: shown by nothing; `shown` is what people may see of it."""

    url: str
    shown: str

    def __repr__(self) -> str:
        return f"DatabaseSettings({self.shown!r})"


@dataclass(frozen=True)
class Settings:
    """All of the environment's settings; `model` is None where no endpoint is named, `database` where there is none."""

    chunk_filtering: ChunkFiltering
    model: ModelSettings | None
    database: DatabaseSettings | None = None


def read(env: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the environment (of this process unless given), or an InputError for the first bad one."""
    history_days(env)
    calls_a_day(env)
    return Settings(chunk_filtering(env), model_settings(env), database_settings(env))


def chunk_filtering(env: Mapping[str, str] = os.environ) -> ChunkFiltering:
    """The LLM filter's settings: those set, the others at their defaults."""
    usual = ChunkFiltering()
    return ChunkFiltering(
        enabled=_switch(env, f"{PREFIX}ENABLED", usual.enabled),
        oversample_multiplier=_number(env, f"{PREFIX}OVERSAMPLE_MULTIPLIER", usual.oversample_multiplier, 1, 20),
        min_relevance_threshold=_number(env, f"{PREFIX}MIN_RELEVANCE_THRESHOLD", usual.min_relevance_threshold, -1, 1),
        llm_timeout_ms=_whole(env, f"{PREFIX}LLM_TIMEOUT_MS", usual.llm_timeout_ms, 1, 3_600_000),
        max_prompt_tokens=_whole(env, f"{PREFIX}MAX_PROMPT_TOKENS", usual.max_prompt_tokens, 500, 1_000_000),
    )


def model_settings(env: Mapping[str, str] = os.environ) -> ModelSettings | None:
    """The endpoint the environment names with OPENAI_BASE_URL, or OpenAI's own where only a key is set; else None."""
    base_url, key = env.get("OPENAI_BASE_URL", "").strip(), env.get("OPENAI_API_KEY", "").strip()
    if not base_url and not key:
        return None
    return ModelSettings(
        base_url=base_url or OPENAI,
        model=env.get("OPENAI_MODEL", "").strip() or DEFAULT_MODEL,
        key=key,
        allow_private=_switch(env, "WINNOW_ALLOW_PRIVATE_ENDPOINT", False),
        price_in=_price(env, "WINNOW_PRICE_IN"),
        price_out=_price(env, "WINNOW_PRICE_OUT"),
        temperature=_number(env, "WINNOW_TEMPERATURE", 0, 0, 2) if _is_set(env, "WINNOW_TEMPERATURE") else None,
        reasoning_effort=_word(env, "WINNOW_REASONING_EFFORT"),
        seed=_whole(env, "WINNOW_SEED", 0, 0, 2**31) if _is_set(env, "WINNOW_SEED") else None,
        max_tokens=_whole(env, "WINNOW_MAX_ANSWER_TOKENS", MAX_ANSWER_TOKENS, 1, 1_000_000),
    )


DATABASE = "WINNOW_DATABASE_URL"


def database_settings(env: Mapping[str, str] = os.environ) -> DatabaseSettings | None:
    """The PostgreSQL that WINNOW_DATABASE_URL names, None where it is not set; no error shows its password."""
    url = env.get(DATABASE, "").strip()
    if not url:
        return None
    try:
        parts = urlsplit(url)
        place, scheme = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}", parts.scheme
    except ValueError:  # a port that is no number, a bracket left open
        place, scheme, parts = "", "", urlsplit("")
    if scheme not in ("postgresql", "postgres") or not place or not parts.path.strip("/") or "@" in parts.path:
        raise InputError(f"{DATABASE} is no PostgreSQL address, expected postgresql://user:password@host:5432/database")
    return DatabaseSettings(url, f"postgresql://{place}{parts.path}")


@dataclass(frozen=True)
class ServerSettings:
    """The log-in proxy of a team's server: the header that names the person, and the addresses it is believed from."""

    user_header: str = ""  # '' : no proxy is trusted
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")


def server_settings(env: Mapping[str, str] = os.environ) -> ServerSettings:
    """What WINNOW_USER_HEADER and WINNOW_TRUSTED_PROXIES (addresses with commas between) say."""
    header = env.get("WINNOW_USER_HEADER", "").strip()
    if header and not (header.isascii() and header.replace("-", "").isalnum()):
        raise InputError(f"WINNOW_USER_HEADER is {header[:80]!r}, expected the name of a header as X-Forwarded-Email")
    named = tuple(part.strip() for part in env.get("WINNOW_TRUSTED_PROXIES", "").split(",") if part.strip())
    for address in named:
        try:
            ip_network(address)
        except ValueError:
            raise InputError(
                f"WINNOW_TRUSTED_PROXIES holds {address[:80]!r}, expected addresses as 10.0.0.7 or 10.0.0.0/24"
            ) from None
    return ServerSettings(header, named or ServerSettings.proxies)


@dataclass(frozen=True)
class ChromaSettings:
    """Chroma Cloud, and whether a Chroma server may be on a private network. `key` is secret: sent to Cloud only."""

    key: str
    tenant: str
    database: str
    allow_private: bool

    def __repr__(self) -> str:
        return f"ChromaSettings({self.tenant!r}, {self.database!r})"


def chroma_settings(env: Mapping[str, str] = os.environ) -> ChromaSettings:
    """What CHROMA_API_KEY, CHROMA_TENANT, CHROMA_DATABASE and WINNOW_ALLOW_PRIVATE_ENDPOINT say."""
    return ChromaSettings(
        key=env.get("CHROMA_API_KEY", "").strip(),
        tenant=env.get("CHROMA_TENANT", "").strip() or "default_tenant",
        database=env.get("CHROMA_DATABASE", "").strip() or "default_database",
        allow_private=_switch(env, "WINNOW_ALLOW_PRIVATE_ENDPOINT", False),
    )


def history_days(env: Mapping[str, str] = os.environ) -> int:
    """How many days questions are kept (WINNOW_HISTORY_DAYS): 0 keeps none, 90 unless set."""
    return _whole(env, "WINNOW_HISTORY_DAYS", 90, 0, 36_500)


def calls_a_day(env: Mapping[str, str] = os.environ) -> int:
    """How many calls of a model somebody who is no admin may make in a day (WINNOW_CALLS_A_DAY), 1,000 unless set."""
    return _whole(env, "WINNOW_CALLS_A_DAY", 1000, 0, 10_000_000)


@dataclass(frozen=True)
class Variable:
    """A variable as a page may show it: never a key or a password."""

    name: str
    value: str
    given: bool


def shown(env: Mapping[str, str] = os.environ) -> list[Variable]:
    """Every variable with the value that holds now, in the order of docs/settings.md."""
    found, model, chroma, server = (
        read(env), model_settings(env), chroma_settings(env), server_settings(env),
    )  # fmt: skip
    filtering = {f"{PREFIX}{name.upper()}": value for name, value in vars(found.chunk_filtering).items()}
    values: dict[str, object] = {
        "WINNOW_WORKSPACE": env.get("WINNOW_WORKSPACE", "").strip(),
        "WINNOW_PROJECT": env.get("WINNOW_PROJECT", "").strip(),
        "WINNOW_DATABASE_URL": found.database.shown if found.database else "",
        "WINNOW_HISTORY_DAYS": history_days(env),
        **filtering,
        "OPENAI_BASE_URL": model.base_url if model else "",
        "OPENAI_API_KEY": "set" if env.get("OPENAI_API_KEY", "").strip() else "",
        "OPENAI_MODEL": model.model if model else "",
        "WINNOW_ALLOW_PRIVATE_ENDPOINT": chroma.allow_private,
        "WINNOW_PRICE_IN": model.price_in if model else None,
        "WINNOW_PRICE_OUT": model.price_out if model else None,
        "WINNOW_TEMPERATURE": model.temperature if model else None,
        "WINNOW_REASONING_EFFORT": model.reasoning_effort if model else "",
        "WINNOW_SEED": model.seed if model else None,
        "WINNOW_MAX_ANSWER_TOKENS": model.max_tokens if model else MAX_ANSWER_TOKENS,
        "CHROMA_API_KEY": "set" if chroma.key else "",
        "CHROMA_TENANT": chroma.tenant,
        "CHROMA_DATABASE": chroma.database,
        "WINNOW_USER_HEADER": server.user_header,
        "WINNOW_TRUSTED_PROXIES": ", ".join(server.proxies),
        "WINNOW_CALLS_A_DAY": calls_a_day(env),
    }
    return [
        Variable(name, "" if value is None else str(value), bool(env.get(name, "").strip()))
        for name, value in values.items()
    ]


def variable(name: str, env: Mapping[str, str] = os.environ) -> str:
    """The value of the variable in which an endpoint's entry says its key stands; '' where it is not set."""
    return env.get(name, "").strip()


_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def _switch(environment: Mapping[str, str], name: str, usual: bool) -> bool:
    value = environment.get(name, "").strip().lower()
    if not value:
        return usual
    if value not in _ON + _OFF:
        raise InputError(f"{name} is {environment[name][:80]!r}, expected true or false")
    return value in _ON


def _number(environment: Mapping[str, str], name: str, usual: float, low: float, high: float) -> float:
    text = environment.get(name, "").strip()
    if not text:
        return usual
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise InputError(f"{name} is {text[:80]!r}, expected a number from {low:g} to {high:,}")
    return value


def _whole(environment: Mapping[str, str], name: str, usual: int, low: int, high: int) -> int:
    value = _number(environment, name, usual, low, high)
    if value != int(value):
        raise InputError(f"{name} is {environment[name][:80]!r}, expected a whole number from {low:,} to {high:,}")
    return int(value)


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return bool(environment.get(name, "").strip())


def _price(environment: Mapping[str, str], name: str) -> float | None:
    return _number(environment, name, 0.0, 0, 1_000_000) if _is_set(environment, name) else None


def _word(environment: Mapping[str, str], name: str) -> str:
    text = environment.get(name, "").strip()
    if (not text.replace("_", "").replace("-", "").isalnum() and text) or len(text) > 40:
        raise InputError(f"{name} is {text[:80]!r}, expected one word as low, medium or high")
    return text
