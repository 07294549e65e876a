"""Every error this library raises on purpose, and the exit code each one means.

    WinnowError
    ├── InputError (also ValueError)   bad input or wrong usage             exit 2
    │   ├── RecordError                a recorded list, label or data file, names the line
    │   ├── SpecError                  a pipeline spec or a stage setting
    │   └── RuleError                  a query_must rule or template, names chunk, key and value
    ├── SurroundingsError              something outside is not there       exit 3
    │   ├── StoreError                 label store, index or Chroma
    │   └── EndpointError              a model endpoint (never holds a key)
    ├── GateFailed                     a check found a regression           exit 1
    ├── Inconclusive                   a gate that cannot tell              exit 4
    └── Cancelled                      stopped by the user                  exit 130

A message is one sentence that says what, got and expected. It never holds chunk text or a key.
"""

from __future__ import annotations


class WinnowError(Exception):
    """Base of every deliberate error."""


class InputError(WinnowError, ValueError):
    """The caller's input cannot be used; the message names what, got and expected."""


class RecordError(InputError):
    """A line of a recorded list, a label file or a data file cannot be read."""


class SpecError(InputError):
    """A pipeline spec names an unknown stage or setting, or a value out of range."""


class RuleError(InputError):
    """A query_must rule or rule template cannot be stored as it is."""


class SurroundingsError(WinnowError):
    """Something outside the process (store, database, endpoint, collection) is not there."""


class StoreError(SurroundingsError):
    """The label store, an index or Chroma cannot be reached, read or written."""


class UnfitError(StoreError):
    """What can never be stored as it is, however often it is tried; the store itself is well."""


class EndpointError(SurroundingsError):
    """A model endpoint failed for good; the message names the endpoint, never its key."""


class GateFailed(WinnowError):
    """A gate or check found a regression."""


class Inconclusive(WinnowError):
    """A gate cannot tell: too few queries, or labels or corpus differ."""


class Cancelled(WinnowError):
    """The user stopped the work; what was done is kept."""


EXIT_CODES: dict[type[BaseException], int] = {
    InputError: 2,
    SurroundingsError: 3,
    GateFailed: 1,
    Inconclusive: 4,
    Cancelled: 130,
    KeyboardInterrupt: 130,
}


def exit_code(error: BaseException) -> int:
    """The exit code of an error: its nearest ancestor in EXIT_CODES, else 3."""
    return next((EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES), 3)
