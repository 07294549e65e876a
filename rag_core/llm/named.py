"""The judge that the environment names: its endpoint, price and stored answers, put together once."""

from __future__ import annotations

from pathlib import Path

from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judging import EndpointJudge, Pace, Price
from rag_core.llm.recorded import FILE, AnswerStore, RecordedJudge
from rag_core.llm.retry import RetryBudget
from rag_core.llm.secret import Key
from rag_core.settings import ModelSettings, model_settings


def endpoint_of(settings: ModelSettings) -> Endpoint:
    """The endpoint of the settings, checked; its host stands beside its name on screen."""
    key = Key(settings.key)
    return Endpoint("environment", settings.base_url, settings.model, key, allow_private=settings.allow_private)


def price_of(settings: ModelSettings) -> Price | None:
    """The price of the settings; None unless both halves are given."""
    if settings.price_in is None or settings.price_out is None:
        return None
    return Price(settings.price_in, settings.price_out)


def environment_judge(
    workspace: Path,
    settings: ModelSettings | None = None,
    *,
    retries: int = 20,
    per_second: float | None = None,
) -> RecordedJudge | None:
    """The judge of the environment's endpoint with the workspace's stored answers; None where no endpoint is named."""
    settings = settings or model_settings()
    if settings is None:
        return None
    behind = EndpointJudge(endpoint_of(settings), price_of(settings), RetryBudget(retries), Pace(per_second))
    return RecordedJudge(AnswerStore(workspace / FILE), behind, settings.model)
