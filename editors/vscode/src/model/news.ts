// What a person should hear about when the list of plans changed.
import type { Plan } from '../api.ts';

export type News = 'decision' | 'apply' | 'waits' | 'failed' | 'applied' | 'cancelled';

/** What is new; nothing the first time, when everything would be. */
export function news(
  before: ReadonlyMap<string, Plan> | undefined, now: ReadonlyMap<string, Plan>,
): { readonly plan: Plan; readonly what: News }[] {
  if (!before) return [];
  const told: { plan: Plan; what: News }[] = [];
  for (const plan of now.values()) {
    const old = before.get(plan.id);
    if (old && old.state === plan.state && old.awaiting === plan.awaiting && old.phase === plan.phase) continue;
    const what = kindOf(plan);
    // What waits in a child is asked at the child; its parent says nothing new.
    if (what && plan.awaiting !== 'child_plan') told.push({ plan, what });
  }
  return told;
}

function kindOf(plan: Plan): News | undefined {
  if (plan.state === 'applied' || plan.state === 'cancelled') return plan.state;
  if (plan.state === 'errored' || plan.state === 'constrained') return 'failed';
  if (plan.awaiting === 'decision') return 'decision';
  if (plan.awaiting === 'apply_approval') return 'apply';
  return plan.awaiting ? 'waits' : undefined;
}
