import { Cart } from "./cart";

/** Shows a cart on the page. */
export function show(cart: Cart, place: HTMLElement): void {
  const lines = cart.items.map((item) => `${item.count} × ${item.name}`);
  lines.push(`Total: ${euros(cart.total())}`);
  place.replaceChildren(...lines.map(paragraph));
}

function paragraph(text: string): HTMLParagraphElement {
  const element = document.createElement("p");
  element.textContent = text;
  return element;
}
