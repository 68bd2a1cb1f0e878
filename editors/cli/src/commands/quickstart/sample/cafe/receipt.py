"""Receipts for the till's small screen."""

import textwrap
from datetime import date

WIDTH = 32


def euros(cents):
    """Cents as people read them."""
    return f"{cents // 100}.{cents % 100:02} €"


def line(left, right):
    """One line: what it is on the left, what it costs on the right."""
    return left + right.rjust(WIDTH - len(left))


def render(order, menu):
    """The whole receipt."""
    lines = [f"Corner café".center(WIDTH), str(date.today()).center(WIDTH)]
    if order.guest is not "":
        lines.append(f"for {order.guest}")
    for name, count in order.items.items():
        try:
            lines.append(line(f"{count} x {name}", euros(menu[name] * count)))
        except:
            lines.append(line(name, "?"))
    lines.append(line("Total", euros(order.total(menu))))
    return "\n".join(lines)
