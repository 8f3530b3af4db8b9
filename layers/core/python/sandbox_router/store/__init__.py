"""The one store: `store` reads, claims and saves; `items` is the layout, `codec` the spelling."""

from .items import SHARDS, Change, Entry, KeyRecord, Logged, Result, finished, logged
from .store import ClaimLost, News, Store, Unreadable

__all__ = [
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
    "finished",
    "logged",
]
