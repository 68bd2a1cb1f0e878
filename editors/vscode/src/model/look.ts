// How plans and decisions look in lists: every colour has an icon and words beside it.
import type { Plan, TreeNode, Verb } from '../api.ts';
import { standing } from './words.ts';

export interface Look {
  /** A codicon. */
  readonly icon: string;
  /** A theme colour for it. */
  readonly color?: string;
  readonly words: string;
}

const YELLOW = 'list.warningForeground';
const RED = 'list.errorForeground';
const GREEN = 'testing.iconPassed';
const BLUE = 'notificationsInfoIcon.foreground';

export const hasEnded = (plan: Pick<Plan, 'state'>): boolean => plan.state === 'applied' || plan.state === 'cancelled';

/** A worker is at it, or will be without anybody doing anything. */
export const isRunning = (plan: Pick<Plan, 'state' | 'awaiting'>): boolean =>
  !plan.awaiting && (plan.state === 'processing' || plan.state === 'queued');

/** It goes on only when a person does something. */
export const waitsForPerson = (plan: Pick<Plan, 'state' | 'awaiting'>): boolean => !hasEnded(plan) && !isRunning(plan);

export function lookOf(plan: Pick<Plan, 'phase' | 'state' | 'awaiting'>): Look {
  const words = standing(plan);
  if (plan.state === 'applied') return { icon: 'pass-filled', color: GREEN, words };
  if (plan.state === 'cancelled') return { icon: 'circle-slash', words };
  if (plan.state === 'errored' || plan.state === 'constrained') return { icon: 'error', color: RED, words };
  if (plan.awaiting === 'apply_approval') return { icon: 'git-pull-request', color: GREEN, words };
  if (plan.awaiting) return { icon: 'bell-dot', color: YELLOW, words };
  if (isRunning(plan)) return { icon: 'sync~spin', color: BLUE, words };
  return { icon: 'debug-pause', color: YELLOW, words };
}

/** Those that wait first, then those that run, then those that ended; the newest first among equals. */
export function inOrder(plans: readonly Plan[]): Plan[] {
  const rank = (plan: Plan) => (hasEnded(plan) ? 2 : isRunning(plan) ? 1 : 0);
  return [...plans].sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? 1 : -1));
}

export function lookOfDecision(node: Pick<TreeNode, 'type' | 'status'>): Look {
  if (node.status === 'pending') return { icon: 'question', color: YELLOW, words: 'waits for you' };
  if (node.status === 'superseded') return { icon: 'history', words: 'replaced' };
  switch (node.type) {
    case 'prompt_definition': return { icon: 'target', words: 'decided' };
    case 'invariant_enforced': return { icon: 'shield', words: 'kept to' };
    case 'user_intervention': return { icon: 'person', words: 'yours' };
    case 'implementation_choice': return { icon: 'edit', words: 'done' };
    case 'subplan_spawn':
    case 'subplan_parallel_spawn': return { icon: 'repo-forked', words: 'handed on' };
    case 'error_recovery': return { icon: 'discard', words: 'taken back' };
    case 'validation_response': return { icon: 'beaker', words: 'checked' };
    default: return { icon: 'lightbulb', words: 'decided' };
  }
}

/** What menus ask about a plan (`viewItem`). */
export function planContext(plan: Plan): string {
  const words = ['plan', plan.state, ...verbsOf(plan)];
  if (plan.awaiting === 'decision') words.push('answer');
  if (plan.phase !== 'strategize') words.push('diff');
  if (plan.state === 'applied') words.push('revert');
  if (plan.state === 'cancelled') words.push('discard');
  return words.join(' ');
}

/** The verbs that a plan in a list can take; the engine has the last word when one is given. */
export function verbsOf(plan: Pick<Plan, 'phase' | 'state' | 'awaiting'>): Verb[] {
  if (hasEnded(plan)) return [];
  const verbs: Verb[] = ['prompt', 'correct', 'rollback', 'cancel'];
  const { phase, state, awaiting } = plan;
  // What else is asked has an answer of its own; the rest is left by going on.
  const answered: readonly string[] = ['decision', 'spawn', 'apply_approval', 'reversion'];
  if ((awaiting && !answered.includes(awaiting)) || state === 'errored' || (phase === 'strategize' && state === 'complete')) {
    verbs.unshift('execute');
  }
  const done = phase === 'execute' && state === 'complete';
  if (awaiting === 'apply_approval' || awaiting === 'reversion' || state === 'constrained' || (done && !awaiting)) verbs.unshift('apply');
  return verbs;
}
