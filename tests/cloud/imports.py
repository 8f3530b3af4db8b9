"""Run alone: import every handler from its own folder and the layers. Prints what it imported."""

from __future__ import annotations

import importlib
import json
import sys

layers, functions = json.loads(sys.argv[1])
base = [*layers, *sys.path]
for module, folder in functions.items():
    for name in [n for n in sys.modules if n.partition(".")[0] == "functions"]:
        del sys.modules[name]
    sys.path[:] = [folder, *base]
    assert callable(importlib.import_module(module).handler)
for kind in importlib.import_module("adapters.providers").KINDS:
    importlib.import_module("adapters.providers").load(kind)
importlib.import_module("adapters.sealing")
print(json.dumps(sorted(functions)))
