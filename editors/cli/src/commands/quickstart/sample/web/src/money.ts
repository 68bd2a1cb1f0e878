/** Cents as people read them. */
export function euros(cents: number): string {
  return `${(cents / 100).toFixed(2)} €`;
}

/** What is left to pay after a discount in percent. */
export function reduced(cents: number, percent: number): number {
  return Math.round(cents * (1 - percent / 100));
}
