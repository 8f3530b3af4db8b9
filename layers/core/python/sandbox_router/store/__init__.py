"""The one store: it reads, claims and saves; `items` is its layout, `log` its audit, `codec` its
spelling.
"""

from .items import (
    OUTBOX,
    SHARDS,
    Change,
    KeyRecord,
    Result,
    api_key,
    finished,
    kind_of,
    shelf,
    sighting_key,
)
from .log import ORPHAN, Entry, Logged, logged
from .store import ClaimLost, News, Store, Unreadable

__all__ = [
    "ORPHAN",
    "OUTBOX",
    "SHARDS",
    "Change",
    "ClaimLost",
    "Entry",
    "KeyRecord",
    "Logged",
    "News",
    "Result",
    "Store",
    "Unreadable",
    "api_key",
    "finished",
    "kind_of",
    "logged",
    "shelf",
    "sighting_key",
]
