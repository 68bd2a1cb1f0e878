import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TreeNode } from '../src/api.ts';
import { decisionsOf, layOut, MOST } from '../src/model/layout.ts';
import { escape, picture } from '../src/page/render.ts';

const node = (decision_id: string, more: Partial<TreeNode> = {}): TreeNode => ({
  type: 'strategy_choice', description: '', decision_id, sequence: 1, status: 'active', question: `Why ${decision_id}?`, chosen: 'So',
  confidence: 0.85, depends_on: [], artifacts: [], plan_ids: [], children: [], ...more,
});

test('decisions are laid out in rows, children below and right of their parents', () => {
  const { nodes } = layOut(node('a', { children: [node('b', { children: [node('c')] }), node('d')] }));
  assert.deepEqual(nodes.map((one) => one.node.decision_id), ['a', 'b', 'c', 'd']);
  assert.ok(nodes.every((one, at) => at === 0 || (one.y > nodes[at - 1]!.y && one.parent && one.x > one.parent.x)));
});

test('a long chain and a wide tree are drawn to a limit, and the rest is counted', () => {
  let chain = node('end');
  for (let n = 0; n < 20_000; n += 1) chain = node(`n${n}`, { children: [chain] });
  const deep = layOut(chain);
  assert.deepEqual([deep.nodes.length, deep.hidden], [MOST, 20_001 - MOST]);
  assert.equal([...decisionsOf(chain)].length, 20_001);
  assert.equal(layOut(null).nodes.length, 0);
  assert.deepEqual([layOut(node('a'), 400).width, layOut(node('a'), 10).width], [400, 260], 'it fits the room there is');
});

test('a picture can be used with keys and a screen reader, and shows words as they are', () => {
  const svg = picture(layOut(node('a', { status: 'pending', question: '<script>"x"&' })), 'a');
  assert.ok(svg.includes('tabindex="0"') && svg.includes('role="treeitem"') && svg.includes('aria-selected="true"'));
  assert.ok(svg.includes('waits for you') && svg.includes('0.85 · waits'), 'colours have words');
  assert.ok(!svg.includes('<script>') && svg.includes('&lt;script&gt;'));
  assert.equal(escape(`<&>"'`), '&lt;&amp;&gt;&quot;&#39;');
});
