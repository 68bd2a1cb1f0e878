// Where the decisions of a plan stand in the picture of its tree: one row each, indented, with an edge to its parent.
import type { TreeNode } from '../api.ts';

export interface Placed {
  readonly node: TreeNode;
  readonly x: number;
  readonly y: number;
  readonly parent?: Placed;
}

export interface Layout {
  readonly nodes: readonly Placed[];
  readonly width: number;
  readonly height: number;
  /** Width of a box. */
  readonly box: number;
  /** Decisions that are left out because there are too many. */
  readonly hidden: number;
}

export const ROW = 46;
export const INDENT = 26;
/** Of a box, where nobody says how much room there is. */
export const WIDTH = 520;
const NARROWEST = 260;
export const BOX = 34;
/** A picture of more would be slow to draw, and nobody reads it. */
export const MOST = 400;

/** Rows in the order of the tree, in `room` pixels where that is enough; without recursion, as a chain may be very long. */
export function layOut(root: TreeNode | null | undefined, room = WIDTH, most = MOST): Layout {
  const nodes: Placed[] = [];
  const stack: { node: TreeNode; depth: number; parent?: Placed }[] = root ? [{ node: root, depth: 0 }] : [];
  let hidden = 0;
  let indent = 0;
  for (let next = stack.pop(); next; next = stack.pop()) {
    if (nodes.length >= most) {
      hidden += 1;
    } else {
      const x = Math.min(next.depth, 12) * INDENT;
      const placed: Placed = { node: next.node, x, y: nodes.length * ROW, ...(next.parent && { parent: next.parent }) };
      nodes.push(placed);
      indent = Math.max(indent, x);
      for (const child of [...next.node.children].reverse()) stack.push({ node: child, depth: next.depth + 1, parent: placed });
      continue;
    }
    for (const child of next.node.children) stack.push({ node: child, depth: next.depth + 1 });
  }
  const box = Math.max(NARROWEST, Math.min(640, room - indent));
  return { nodes, box, width: indent + box, height: Math.max(0, nodes.length * ROW - (ROW - BOX)), hidden };
}

/** All decisions of a tree, parents first. */
export function* decisionsOf(root: TreeNode | null | undefined): Generator<TreeNode> {
  const stack = root ? [root] : [];
  for (let node = stack.pop(); node; node = stack.pop()) {
    yield node;
    stack.push(...[...node.children].reverse());
  }
}
