// What a person thinks of each change of a plan. A mark belongs to what a change says, not to where it stands: it
// survives a refresh, and a change that became another one has none.
import { createHash } from 'node:crypto';
import type { Diff, TreeNode } from '../api.ts';
import { decisionsOf } from './layout.ts';

/** One change of one place. */
export interface Change {
  readonly key: string;
  readonly file: string;
  /** 0-based lines of the text after the change; `last` is before `first` where lines are only taken away. */
  readonly first: number;
  readonly last: number;
  readonly decisions: readonly string[];
  readonly reasons: readonly string[];
  readonly insertions: number;
  readonly deletions: number;
}

export type Mark =
  | { readonly as: 'accepted' }
  | { readonly as: 'rejected'; readonly reason: string; readonly decision: string | null; readonly sent: boolean };

export type Marks = Readonly<Record<string, Mark>>;

/** The changes of a plan in the order of its files. */
export function changesOf(diff: Diff): Change[] {
  const seen = new Map<string, number>();
  return diff.patch_preview.flatMap(({ file, hunks }) =>
    hunks.flatMap((hunk) => {
      const runs = runsOf(hunk.lines);
      return runs.map((run) => {
        const text = run.lines.map((line) => `${line.kind}${line.text}`).join('\n');
        const digest = createHash('sha256').update(`${file}\n${text}`).digest('hex').slice(0, 20);
        // The same change twice in a file is two changes.
        const nth = seen.get(digest) ?? 0;
        seen.set(digest, nth + 1);
        const own = [...new Set(run.lines.map((line) => line.decision_id).filter((id): id is string => !!id))];
        const decisions = own.length > 0 ? own : hunk.decisions;
        return {
          key: nth === 0 ? digest : `${digest}-${nth}`,
          file,
          first: run.first,
          last: run.last,
          decisions,
          reasons: hunk.decisions.flatMap((id, at) => (decisions.includes(id) ? (hunk.reasons[at] ?? []) : [])),
          insertions: run.lines.filter((line) => line.kind === '+').length,
          deletions: run.lines.filter((line) => line.kind === '-').length,
        };
      });
    }),
  );
}

type Line = Diff['patch_preview'][number]['hunks'][number]['lines'][number];

interface Run { first: number; last: number; lines: Line[] }

/** A hunk of a diff cut where unchanged lines stand between changed ones. */
function runsOf(lines: readonly Line[]): Run[] {
  const runs: Run[] = [];
  let run: Run | undefined;
  // The line of the new text that would come next.
  let next = (lines.find((line) => line.new != null)?.new ?? 1) - 1;
  for (const line of lines) {
    if (line.kind !== '+' && line.kind !== '-') {
      run = undefined;
      if (line.new != null) next = line.new;
      continue;
    }
    if (!run) {
      run = { first: next, last: next - 1, lines: [] };
      runs.push(run);
    }
    run.lines.push(line);
    if (line.kind === '+' && line.new != null) {
      run.last = line.new - 1;
      next = line.new;
    }
  }
  return runs;
}

/** How far a review is. */
export function tally(changes: readonly Change[], marks: Marks): { accepted: number; rejected: number; open: number; total: number } {
  let accepted = 0;
  let rejected = 0;
  for (const { key } of changes) {
    if (marks[key]?.as === 'accepted') accepted += 1;
    if (marks[key]?.as === 'rejected') rejected += 1;
  }
  return { accepted, rejected, open: changes.length - accepted - rejected, total: changes.length };
}

export const tallyWords = (t: ReturnType<typeof tally>): string => {
  const rejected = t.rejected > 0 ? `, ${t.rejected} rejected` : '';
  return `${t.accepted + t.rejected} of ${t.total} reviewed${rejected}`;
};

/** The change after or before one in a circle, those without a mark first if there are any. */
export function step(changes: readonly Change[], marks: Marks, from: string | undefined, by: 1 | -1): Change | undefined {
  const at = changes.findIndex((change) => change.key === from);
  const start = at < 0 ? (by === 1 ? -1 : 0) : at;
  const around = changes.map((_, n) => changes[(((start + by * (n + 1)) % changes.length) + changes.length) % changes.length]);
  return around.find((change) => change && !marks[change.key]) ?? around[0];
}

/**
 * The decision that a person means who rejects a change: the choice that the change carries out, where there is one,
 * else the change's own decision. The tree is the whole one, with what was replaced.
 */
export function decisionBehind(tree: TreeNode | null | undefined, change: Change): string | null {
  const known = new Map<string, TreeNode>();
  const parents = new Map<string, TreeNode>();
  for (const node of decisionsOf(tree)) {
    known.set(node.decision_id, node);
    for (const child of node.children) parents.set(child.decision_id, node);
  }
  // What stands now in the place of a decision that was answered or corrected.
  const standing = (node: TreeNode): TreeNode => {
    const next = node.superseded_by == null ? undefined : known.get(node.superseded_by);
    return next && next !== node ? standing(next) : node;
  };
  const nearest = (id: string, type: string): TreeNode | undefined => {
    for (let at = known.get(id); at; at = parents.get(at.decision_id)) if (at.type === type) return at;
    return (known.get(id)?.depends_on ?? []).map((on) => known.get(on)).find((one) => one?.type === type);
  };
  for (const id of change.decisions) {
    const choice = nearest(id, 'strategy_choice') ?? nearest(id, 'user_intervention');
    if (choice) return standing(choice).decision_id;
  }
  return change.decisions[0] ?? null;
}

/** Rejections that are still to be sent, one per decision: their reasons belong together. */
export function toSend(changes: readonly Change[], marks: Marks): { decision: string; guidance: string; keys: string[] }[] {
  const queue = new Map<string, { decision: string; guidance: string; keys: string[] }>();
  for (const { key, file } of changes) {
    const mark = marks[key];
    if (mark?.as !== 'rejected' || mark.sent || !mark.decision) continue;
    const entry = queue.get(mark.decision);
    if (!entry) {
      queue.set(mark.decision, { decision: mark.decision, guidance: mark.reason, keys: [key] });
    } else {
      if (!entry.guidance.includes(mark.reason)) entry.guidance += `\n${file}: ${mark.reason}`;
      entry.keys.push(key);
    }
  }
  return [...queue.values()];
}
