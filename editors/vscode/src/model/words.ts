// Names and short texts for people. No id is shown where a name serves.
import type { AwaitingKind, EngineEvent, Plan, TreeNode } from '../api.ts';

/** The last part of a qualified name: `local/fix-diagnostics` is `fix-diagnostics`. */
export const shortName = (name: string): string => name.slice(name.lastIndexOf('/') + 1);

/** What a plan is called: its action and its projects. */
export function planName(plan: { readonly action: string; readonly project: string }): string {
  const projects = plan.project.split(', ').filter(Boolean).map(shortName).join(', ');
  return projects ? `${shortName(plan.action)} · ${projects}` : shortName(plan.action);
}

/** The first line of a text, at most `most` characters of it. */
export function brief(text: string, most = 80): string {
  const line = text.split('\n').find((one) => one.trim() !== '')?.trim() ?? '';
  const letters = [...line];
  return letters.length <= most ? line : `${letters.slice(0, most - 1).join('').trimEnd()}…`;
}

export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** A confidence as the rest of the product writes it. */
export const confidence = (value: number | null | undefined): string => (value == null ? '' : value.toFixed(2));

const WAITS: Readonly<Record<AwaitingKind, string>> = {
  confirm_strategize: 'may it start?',
  decision: 'a decision waits',
  execute_approval: 'may it execute?',
  spawn: 'may a child plan start?',
  retry: 'a step failed',
  restore: 'a step failed',
  validation_fix: 'a validation failed',
  strategy_revision: 'a validation failed',
  apply_approval: 'ready to apply',
  reversion: 'no longer fits the checkout',
  rollback: 'rolled back',
  budget: 'a limit is reached',
  recovery: 'was interrupted',
  language_server: 'a language server does not answer',
  child_plan: 'a child plan waits',
};

/** What a plan waits for. */
export function waitsFor(kind: string): string {
  return WAITS[kind as AwaitingKind] ?? kind.replaceAll('_', ' ');
}

/** Where a plan stands. */
export function standing(plan: Pick<Plan, 'phase' | 'state' | 'awaiting'>): string {
  if (plan.awaiting) return waitsFor(plan.awaiting);
  switch (plan.state) {
    case 'applied':
    case 'cancelled': return plan.state;
    case 'errored': return `${plan.phase} failed`;
    case 'constrained': return 'cannot be applied';
    case 'complete': return `${plan.phase} done`;
    case 'queued': return `${plan.phase} starts`;
    case 'processing': return `${plan.phase} runs`;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  prompt_definition: 'task',
  invariant_enforced: 'invariant',
  strategy_choice: 'choice',
  implementation_choice: 'change',
  resource_selection: 'resource',
  subplan_spawn: 'child plan',
  subplan_parallel_spawn: 'child plans',
  tool_invocation: 'tool',
  error_recovery: 'recovery',
  validation_response: 'validation',
  user_intervention: 'your word',
};

/** What kind of decision it is. */
export const kindOf = (type: string): string => KINDS[type] ?? type.replaceAll('_', ' ');

const STATUS = { active: 'decided', pending: 'waits', superseded: 'replaced' } as const;

export const decisionStatus = (status: TreeNode['status']): string => STATUS[status];

/** How long ago a moment was, in the largest unit that fits. */
export function ago(moment: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  if (Number.isNaN(seconds)) return '';
  const units: readonly (readonly [number, string])[] = [[86_400, 'd'], [3_600, 'h'], [60, 'min']];
  for (const [size, unit] of units) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  return seconds < 10 ? 'now' : `${seconds} s ago`;
}

const text = (details: unknown, key: string): string => {
  const value = (details as Record<string, unknown> | null)?.[key];
  return typeof value === 'string' ? value : '';
};

/** What an event says on a plan's timeline; nothing for those that only matter to programs. */
export function eventWords(event: EngineEvent): { readonly icon: string; readonly words: string } | undefined {
  const { details, event_type: type } = event;
  switch (type) {
    case 'plan.created': return { icon: '＋', words: 'Plan made' };
    case 'plan.phase_changed': return { icon: '▸', words: `On to ${text(details, 'to') || 'the next phase'}` };
    case 'plan.applied': return { icon: '✓', words: 'Applied to the checkout' };
    case 'plan.cancelled': return { icon: '⊘', words: 'Cancelled' };
    case 'plan.errored': {
      const failure = (details as { failure?: unknown } | null)?.failure;
      return { icon: '✗', words: `Failed: ${brief(text(failure, 'message') || 'see the errors', 120)}` };
    }
    case 'plan.worker_lost': return { icon: '↻', words: 'A worker was lost; another takes over' };
    case 'plan.child_spawned': return { icon: '⑂', words: 'A child plan was made' };
    case 'plan.child_merged': return { icon: '⑃', words: 'A child plan was taken in' };
    case 'plan.child_failed': return { icon: '✗', words: 'A child plan failed' };
    case 'correction.requested': return { icon: '✎', words: 'A correction began' };
    case 'correction.applied': return { icon: '✎', words: 'A correction is done' };
    case 'decision.approved': return { icon: '✓', words: 'A decision was approved' };
    case 'checkpoint.restored':
    case 'sandbox.rolled_back': return { icon: '↶', words: 'Work was taken back' };
    case 'sandbox.edited': return { icon: '✎', words: 'Somebody edited the sandbox' };
    case 'sandbox.drifted': return { icon: '≠', words: 'The checkout moved on' };
    case 'validation.passed': return { icon: '✓', words: `Validation passed: ${shortName(text(details, 'validation'))}` };
    case 'validation.failed': return { icon: '✗', words: `Validation failed: ${shortName(text(details, 'validation'))}` };
    case 'invariant.violated': return { icon: '✗', words: 'An invariant was violated' };
    case 'budget.warning': return { icon: '!', words: 'A budget runs low' };
    case 'plan.state_changed': {
      const awaiting = (details as { awaiting?: unknown } | null)?.awaiting;
      const question = text(awaiting, 'question');
      return question ? { icon: '?', words: `Waits: ${brief(question, 120)}` } : undefined;
    }
    default: return undefined;
  }
}
