"""What a failed call means and whether to try again; one layer owns all retries, within one budget.

Reads the client library's exceptions. Says nothing of what a server wrote except a short error code: its text may hold
the prompt or the key.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from threading import Lock
from time import time
from typing import Any


class RetryBudget:
    """How many retries one run may spend, over all its calls and threads."""

    def __init__(self, limit: int = 20) -> None:
        self.limit = limit
        self.used = 0
        self._lock = Lock()

    def take(self) -> bool:
        """Spend one retry; False where none is left."""
        with self._lock:
            if self.used >= self.limit:
                return False
            self.used += 1
            return True


class AnswerFault(Exception):
    """An answer that is not what was asked for; `retry` where a second try may bring another."""

    def __init__(self, text: str, retry: bool = False) -> None:
        super().__init__(text)
        self.retry = retry


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a try failed, as the end of a sentence; whether to try again and after how many seconds at least."""

    text: str
    retry: bool
    wait: float | None = None


_STATUS = {
    400: "refused the request as malformed",
    401: "did not accept the key; set the right key for it",
    403: "does not allow this key to use the model",
    404: "does not know the model or the path; check the model's name and the address",
    408: "gave up waiting",
    413: "says that the request is too large",
    422: "refused the request as malformed",
    429: "asks for fewer requests",
}


def fault_of(error: Exception, model: str, keyless: bool = False) -> Fault:
    """The fault behind an exception of one try; `keyless` where the endpoint was given no key."""
    import openai

    fault = error if isinstance(error, AnswerFault) else error.__cause__
    if isinstance(fault, AnswerFault):  # raised by the HTTP layer it comes wrapped by the library
        return Fault(str(fault), fault.retry)
    if isinstance(error, openai.APIStatusError):
        return _status_fault(error, model, keyless)
    if isinstance(error, openai.APITimeoutError):
        return Fault("did not answer in time", retry=True)
    if isinstance(error, openai.APIConnectionError):
        return Fault("cannot be reached or broke off; check that it is running", retry=True)
    if isinstance(error, json.JSONDecodeError):
        return Fault("sent an answer that is not JSON", retry=True)
    if isinstance(error, UnicodeEncodeError):
        return Fault("was given text that is not valid Unicode", retry=False)
    return Fault(f"failed ({type(error).__name__})", retry=False)


def _status_fault(error: Any, model: str, keyless: bool) -> Fault:
    status, headers = error.status_code, error.response.headers
    if 300 <= status < 400:
        return Fault("answered with a redirect, which is not followed; set the address it leads to", retry=False)
    meaning = _STATUS.get(status, "failed on its side" if status >= 500 else "refused the request")
    if status == 401 and keyless:
        meaning = "wants a key and none is set; set OPENAI_API_KEY"
    if status == 404:
        meaning += f" (model {model})"
    code = getattr(error, "code", None)
    named = f", {code}" if isinstance(code, str) and re.fullmatch(r"[A-Za-z0-9_.]{1,60}", code) else ""
    retry = (status in (408, 409, 429) or status >= 500) and headers.get("x-should-retry") != "false"
    return Fault(f"{meaning} (status {status}{named})", retry, retry_after(headers.get("retry-after")))


def retry_after(value: str | None) -> float | None:
    """Seconds to wait from a Retry-After header (seconds or a date), or None."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time()
        except ValueError:
            return None
    return seconds if 0 <= seconds < 1e9 else None
