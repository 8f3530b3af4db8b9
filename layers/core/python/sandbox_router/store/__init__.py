"""The one store: `store` reads, claims and saves; `items` is the layout, `codec` the spelling."""

from .items import SHARDS, Change, Entry, KeyRecord, Result, finished
from .store import ClaimLost, News, Store

__all__ = [
    "SHARDS",
    "Change",
    "ClaimLost",
    "Entry",
    "KeyRecord",
    "News",
    "Result",
    "Store",
    "finished",
]
