import { reduced } from "./money";

export interface Item {
  name: string;
  cents: number;
  count: number;
}

/** What somebody is about to order. */
export class Cart {
  readonly items: Item[] = [];

  add(item: Item): void {
    const known = this.items.find((other) => other.name === item.name);
    if (known) {
      known.count += item.count;
    } else {
      this.items.push({ ...item });
    }
  }

  total(): number {
    return this.items.reduce((sum, item) => sum + item.cents * item.count, 0);
  }

  names(): string[] {
    return this.items.map((item) => item.name.toLocaleUppercase("en"));
  }
}
