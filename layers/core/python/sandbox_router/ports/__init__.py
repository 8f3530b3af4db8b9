"""What the core needs from the world, as protocols. Nothing here does anything.

Every call may raise; what it may raise is said once, at the protocol. Adapters translate
everything else.
"""

from .abilities import (
    Capture,
    CapturePage,
    CaptureState,
    Command,
    Endpoint,
    Entry,
    Exit,
    Extends,
    HoldsFiles,
    OpensPorts,
    Output,
    Pauses,
    RunsCommands,
    Snapshots,
)
from .backend import (
    Bus,
    Clock,
    DeadLetters,
    Ids,
    Message,
    Queue,
    Table,
    Vault,
)
from .objects import Content, Objects, Signed
from .provider import (
    Instance,
    InstancePage,
    InstanceState,
    Order,
    Pools,
    Provider,
    Ref,
)

__all__ = [
    "Bus",
    "Capture",
    "CapturePage",
    "CaptureState",
    "Clock",
    "Command",
    "Content",
    "DeadLetters",
    "Endpoint",
    "Entry",
    "Exit",
    "Extends",
    "HoldsFiles",
    "Ids",
    "Instance",
    "InstancePage",
    "InstanceState",
    "Message",
    "Objects",
    "OpensPorts",
    "Order",
    "Output",
    "Pauses",
    "Pools",
    "Provider",
    "Queue",
    "Ref",
    "RunsCommands",
    "Signed",
    "Snapshots",
    "Table",
    "Vault",
]
