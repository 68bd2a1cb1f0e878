"""What there is, and what it costs."""

import json
import os
from pathlib import Path


def load(path):
    """Reads a menu: names with their prices in cents."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def price(menu, name):
    """The price of one thing in cents."""
    cents = menu.get(name)
    if cents == None:
        raise KeyError(f"not on the menu: {name}")
    return cents
