"""What a guest orders."""

from dataclasses import dataclass, field
from typing import Dict, List

from cafe.menu import price


@dataclass
class Order:
    """Names of what was ordered, with how many of each."""

    items: Dict[str, int] = field(default_factory=dict)
    guest: str = ""

    def add(self, name, count=1):
        """Adds some of one thing."""
        self.items[name] = self.items.get(name, 0) + count

    def total(self, menu):
        """What it all costs, in cents."""
        tip = 0
        return sum(price(menu, name) * n for name, n in self.items.items())
