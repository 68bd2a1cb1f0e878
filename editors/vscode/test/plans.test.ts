import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Plan } from '../src/api.ts';
import { inOrder, lookOf, planContext, verbsOf } from '../src/model/look.ts';
import { news } from '../src/model/news.ts';
import { ago, brief, eventWords, planName, standing } from '../src/model/words.ts';

const plan = (more: Partial<Plan> = {}): Plan => ({
  id: '01A', parent: null, short_id: '01A', phase: 'execute', state: 'processing', awaiting: null,
  action: 'local/fix-diagnostics', project: 'local/app, local/web', attempt: 1, elapsed: '00:01:00', created: '2026-01-01', ...more,
});

test('a plan is called by its action and projects, never by its id', () => {
  assert.equal(planName(plan()), 'fix-diagnostics · app, web');
  assert.equal(planName(plan({ project: '' })), 'fix-diagnostics');
});

test('every look has words beside its colour, and waiting, running and done look different', () => {
  const looks = [
    plan(), plan({ awaiting: 'decision' }), plan({ state: 'complete', awaiting: 'apply_approval' }), plan({ state: 'errored' }),
    plan({ state: 'applied', phase: 'apply' }), plan({ state: 'cancelled' }), plan({ phase: 'strategize', state: 'complete' }),
  ].map(lookOf);
  assert.ok(looks.every((look) => look.words !== ''));
  assert.equal(new Set(looks.map((look) => look.icon)).size, looks.length);
});

test('what waits comes first, then what runs, then what ended; the newest first', () => {
  const given = [
    plan({ id: '1', state: 'applied' }), plan({ id: '2' }), plan({ id: '3', awaiting: 'decision' }), plan({ id: '4', awaiting: 'decision' }),
  ];
  assert.deepEqual(inOrder(given).map(({ id }) => id), ['4', '3', '2', '1']);
});

test('menus offer what the state allows', () => {
  assert.ok(planContext(plan({ awaiting: 'decision' })).includes(' answer'));
  assert.deepEqual(verbsOf(plan({ state: 'applied' })), []);
  assert.ok(planContext(plan({ state: 'applied' })).endsWith('diff revert'));
  assert.equal(verbsOf(plan({ state: 'complete', awaiting: 'apply_approval' }))[0], 'apply');
  assert.equal(verbsOf(plan({ phase: 'strategize', state: 'complete', awaiting: 'execute_approval' }))[0], 'execute');
  for (const awaiting of ['rollback', 'retry', 'restore', 'recovery', 'budget', 'language_server', 'child_plan', 'validation_fix'] as const) {
    assert.equal(verbsOf(plan({ phase: 'execute', state: 'processing', awaiting }))[0], 'execute', awaiting);
  }
  for (const awaiting of ['decision', 'spawn'] as const) {
    assert.notEqual(verbsOf(plan({ phase: 'execute', state: 'processing', awaiting }))[0], 'execute', awaiting);
  }
  assert.ok(!planContext(plan({ phase: 'strategize' })).includes('diff'));
});

test('a person hears what is new and only that', () => {
  const map = (...plans: Plan[]) => new Map(plans.map((one) => [one.id, one]));
  const waits = plan({ awaiting: 'decision' });
  assert.deepEqual(news(undefined, map(waits)), [], 'nothing when the editor starts');
  assert.deepEqual(news(map(plan()), map(waits)).map(({ what }) => what), ['decision']);
  assert.deepEqual(news(map(waits), map(waits)), []);
  assert.deepEqual(news(map(waits), map(plan())), [], 'that it runs is in the status bar');
  const ends = (state: Plan['state']) => news(map(plan()), map(plan({ state }))).map(({ what }) => what);
  assert.deepEqual([ends('applied'), ends('errored'), ends('constrained')], [['applied'], ['failed'], ['failed']]);
  assert.deepEqual(news(map(plan()), map(plan({ awaiting: 'child_plan' }))), [], 'the child says it');
  assert.deepEqual(news(map(), map(plan({ awaiting: 'apply_approval' }))).map(({ what }) => what), ['apply']);
});

test('words stay short and say something', () => {
  assert.equal(brief('\n  one two three\nfour', 9), 'one two…');
  assert.equal(brief('ä'.repeat(5), 5), 'äääää');
  assert.equal(standing(plan({ awaiting: 'apply_approval' })), 'ready to apply');
  assert.equal(standing(plan({ awaiting: 'something_new' })), 'something new', 'a server may know more than we do');
  const now = Date.parse('2026-01-01T12:00:00Z');
  assert.deepEqual(['2026-01-01T11:59:55Z', '2026-01-01T11:15:00Z', '2025-12-30T11:00:00Z', 'x'].map((at) => ago(at, now)), ['now', '45 min ago', '2 d ago', '']);
});

test('events for people have words, those for programs have none', () => {
  const event = (event_type: string, details: unknown = {}) =>
    eventWords({ sequence: 1, timestamp: '', event_type, details } as never)?.words;
  assert.equal(event('plan.state_changed', { awaiting: { question: 'Really?' } }), 'Waits: Really?');
  assert.equal(event('plan.state_changed', { awaiting: null }), undefined);
  assert.equal(event('plan.progress'), undefined);
  assert.equal(event('plan.errored', null), 'Failed: see the errors');
});
