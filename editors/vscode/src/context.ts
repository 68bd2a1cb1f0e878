// What every command needs, made once.
import type { Documents } from './documents.ts';
import type { Pages } from './page/panel.ts';
import type { Pick } from './pick.ts';
import type { Plans } from './plans.ts';
import type { Reviews } from './review/reviews.ts';
import type { Server } from './server.ts';
import type { DecisionsView } from './views/decisions.ts';

export interface Context {
  readonly server: Server;
  readonly plans: Plans;
  readonly pick: Pick;
  readonly documents: Documents;
  readonly pages: Pages;
  readonly decisions: DecisionsView;
  readonly reviews: Reviews;
}

/** What a command was given: an entry of a view, or the parameters of an operation. */
export interface Subject {
  readonly plan?: string;
  readonly decision?: string;
  readonly checkpoint?: string;
  readonly guidance?: string;
  readonly mode?: 'revert' | 'append';
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const part = (value: unknown, key: string): unknown => (value as Record<string, unknown> | null | undefined)?.[key];

/** Reads what a command was given, whoever gave it. */
export function subjectOf(given: unknown): Subject {
  const plan = text(part(given, 'plan')) ?? text(part(part(given, 'plan'), 'id'));
  const decision = text(part(given, 'decision'))
    ?? text(part(part(given, 'decision'), 'decision_id'))
    ?? text(part(part(given, 'node'), 'decision_id'));
  const checkpoint = text(part(given, 'checkpoint')) ?? text(part(part(given, 'checkpoint'), 'id'));
  const guidance = text(part(given, 'guidance'));
  const mode = part(given, 'mode');
  return {
    ...(plan !== undefined && { plan }),
    ...(decision !== undefined && { decision }),
    ...(checkpoint !== undefined && { checkpoint }),
    ...(guidance !== undefined && { guidance }),
    ...((mode === 'revert' || mode === 'append') && { mode }),
  };
}
