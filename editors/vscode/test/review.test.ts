import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Diff, TreeNode } from '../src/api.ts';
import { changesOf, decisionBehind, type Marks, step, tally, tallyWords, toSend } from '../src/model/review.ts';

type Hunk = Diff['patch_preview'][number]['hunks'][number];
const line = (kind: string, text: string, old: number | null, now: number | null, decision_id: string | null = null) =>
  ({ kind, text, old, new: now, decision_id });

const hunk = (lines: ReturnType<typeof line>[], decisions: string[] = []): Hunk =>
  ({ range: '', deletions: [], insertions: [], lines, decisions, reasons: decisions.map((id) => `because ${id}`) });

const diff = (...hunks: Hunk[]): Diff => ({ patch_preview: [{ file: 'a.py', resource_id: 'r', hunks }] }) as unknown as Diff;

const two = diff(hunk([
  line('-', 'import os', 1, null, 'd1'), line(' ', 'import sys', 2, 1), line(' ', '', 3, 2),
  line('-', 'f"x"', 4, null, 'd2'), line('+', '"x"', null, 3, 'd2'), line(' ', 'end', 5, 4),
], ['d1', 'd2']));

test('a hunk is cut into its changes, each with its lines and its decision', () => {
  const [gone, changed, ...rest] = changesOf(two);
  assert.equal(rest.length, 0);
  assert.deepEqual([gone!.first, gone!.last, gone!.decisions, gone!.reasons], [0, -1, ['d1'], ['because d1']]);
  assert.deepEqual([changed!.first, changed!.last, changed!.decisions, changed!.reasons], [2, 2, ['d2'], ['because d2']]);
});

test('a mark belongs to what a change says, wherever it stands', () => {
  const moved = diff(hunk([line('-', 'import os', 9, null, 'd9')], ['d9']));
  assert.equal(changesOf(moved)[0]!.key, changesOf(two)[0]!.key);
  const twice = changesOf(diff(hunk([line('+', 'x', null, 1)]), hunk([line('+', 'x', null, 9)])));
  assert.notEqual(twice[0]!.key, twice[1]!.key, 'the same change twice is two');
  assert.deepEqual([twice[1]!.first, twice[1]!.last], [8, 8]);
});

test('next goes to what has no mark, round and round, and to the others when all have one', () => {
  const changes = changesOf(diff(...['a', 'b', 'c'].map((text, n) => hunk([line('+', text, null, n * 9 + 1)]))));
  const [a, b, c] = changes.map((change) => change.key) as [string, string, string];
  const ok: Marks = { [b]: { as: 'accepted' } };
  assert.equal(step(changes, {}, undefined, 1)!.key, a);
  assert.equal(step(changes, ok, a, 1)!.key, c);
  assert.equal(step(changes, ok, c, 1)!.key, a);
  assert.equal(step(changes, {}, a, -1)!.key, c);
  const all: Marks = { ...ok, [a]: { as: 'accepted' }, [c]: { as: 'accepted' } };
  assert.equal(step(changes, all, a, 1)!.key, b);
  assert.equal(step([], {}, undefined, 1), undefined);
  assert.equal(tallyWords(tally(changes, ok)), '1 of 3 reviewed');
});

test('a rejection is about the choice that the change carries out', () => {
  const node = (decision_id: string, type: string, more: Partial<TreeNode> = {}): TreeNode => ({
    type, description: '', decision_id, sequence: 1, status: 'active', question: '', chosen: '', depends_on: [], artifacts: [], plan_ids: [], children: [], ...more,
  });
  const tree = node('root', 'prompt_definition', {
    children: [
      node('s1', 'strategy_choice', { children: [node('d1', 'implementation_choice')] }),
      node('s2', 'strategy_choice'), node('d2', 'implementation_choice', { depends_on: ['root', 's2'] }), node('d3', 'implementation_choice'),
    ],
  });
  const behind = (...decisions: string[]) => decisionBehind(tree, { ...changesOf(two)[0]!, decisions });
  assert.deepEqual([behind('d1'), behind('d2'), behind('d3'), behind('s1')], ['s1', 's2', 'd3', 's1']);
  assert.equal(behind(), null, 'what a person edited has no decision');
  assert.equal(behind('unknown'), 'unknown');
});

test('rejections of one decision are sent as one, each once', () => {
  const changes = changesOf(two);
  const [a, b] = changes.map((change) => change.key) as [string, string];
  const no = (reason: string, sent = false) => ({ as: 'rejected', reason, decision: 's1', sent }) as const;
  assert.deepEqual(toSend(changes, { [a]: no('leave it'), [b]: no('why?') }), [{ decision: 's1', guidance: 'leave it\na.py: why?', keys: [a, b] }]);
  assert.deepEqual(toSend(changes, { [a]: no('leave it', true), [b]: { as: 'accepted' } }), []);
  assert.equal(tallyWords(tally(changes, { [a]: no('x') })), '1 of 2 reviewed, 1 rejected');
});
