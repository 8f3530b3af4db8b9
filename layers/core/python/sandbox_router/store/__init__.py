"""The one store: `store` reads, claims and saves; `items` is the layout, `codec` the spelling."""

from .items import (
    ORPHAN,
    OUTBOX,
    SHARDS,
    Change,
    Entry,
    KeyRecord,
    Logged,
    Result,
    api_key,
    finished,
    kind_of,
    logged,
    shelf,
    sighting_key,
)
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
