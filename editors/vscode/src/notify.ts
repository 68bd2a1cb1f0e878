// Messages about plans that wait or end, with buttons that lead to the place.
import * as vscode from 'vscode';
import type { Plan } from './api.ts';
import type { Context } from './context.ts';
import { openPlace } from './commands/decisions.ts';
import { news } from './model/news.ts';
import { brief, planName, shortName } from './model/words.ts';
import { messageOf, setting } from './server.ts';

/** Follows the plans and says what a person should hear. */
export function notify(context: Context): vscode.Disposable {
  let before: ReadonlyMap<string, Plan> | undefined;
  const standing: Standing = new Map();
  return context.plans.onChange(() => {
    putAway(context, standing);
    if (context.server.state !== 'ready') {
      before = undefined;
      return;
    }
    const now = new Map(context.plans.all.map((plan) => [plan.id, plan]));
    const told = news(before, now);
    before = now;
    if (!setting('notifications', true)) return;
    for (const one of told) void tell(context, one.plan, one.what, standing).catch((error) => context.server.output.warn(messageOf(error)));
  });
}

/** Messages that are shown, and whether what each asks is settled. */
type Standing = Map<symbol, () => boolean>;

/** Takes messages off the screen once what they ask is settled. An extension cannot close one of its messages, so all go to
 * the list of notifications. */
function putAway(context: Context, standing: Standing): void {
  if (context.server.state !== 'ready') return;
  const settled = [...standing].filter(([, isSettled]) => isSettled());
  for (const [message] of settled) standing.delete(message);
  if (settled.length > 0) void vscode.commands.executeCommand('notifications.hideToasts');
}

/** What a person says to a message, which goes when what it asks is settled. */
async function ask(standing: Standing, isSettled: () => boolean, message: string, ...buttons: string[]): Promise<string | undefined> {
  const key = Symbol(message);
  standing.set(key, isSettled);
  try {
    return await vscode.window.showInformationMessage(message, ...buttons);
  } finally {
    standing.delete(key);
  }
}

async function tell(context: Context, plan: Plan, what: ReturnType<typeof news>[number]['what'], standing: Standing): Promise<void> {
  const name = planName(plan);
  const { server, pages, plans } = context;
  const movedOn = (): boolean => {
    const now = plans.find(plan.id);
    return now?.awaiting !== plan.awaiting || now?.phase !== plan.phase;
  };
  switch (what) {
    case 'decision': {
      const decision = plans.pendingOf(plan.id)[0];
      if (!decision) return;
      const more = plans.pendingOf(plan.id).length - 1;
      const answered = (): boolean => !plans.pendingOf(plan.id).some((one) => one.decision_id === decision.decision_id);
      const said = await ask(
        standing, answered,
        `${name} asks: ${brief(decision.question, 120)} Proposed: ${brief(decision.proposed, 60)}${more > 0 ? ` (${more} more)` : ''}`,
        'Answer…', 'Open the Place',
      );
      // Meanwhile it may have been answered, and another may wait.
      if (said === 'Answer…') {
        await vscode.commands.executeCommand('cleveragents.answer', { plan: plan.id, ...(!answered() && { decision: decision.decision_id }) });
      }
      if (said === 'Open the Place') await openPlace(context, decision);
      return;
    }
    case 'apply': {
      const said = await ask(standing, movedOn, `${name} is done and can be applied.`, 'Review', 'Show the Diff', 'Apply…');
      if (said === 'Review') await vscode.commands.executeCommand('cleveragents.review.start', { plan: plan.id });
      if (said === 'Show the Diff') await vscode.commands.executeCommand('cleveragents.diff', { plan: plan.id });
      if (said === 'Apply…') await vscode.commands.executeCommand('cleveragents.apply', { plan: plan.id });
      return;
    }
    case 'waits': {
      const status = await server.call('agents.plan.status', { plan: plan.id });
      const next = status.allowed_actions.find((action) => action.verb === 'execute');
      const said = await ask(
        standing, movedOn, `${name} waits for you: ${brief(status.awaiting?.question ?? '', 160)}`, ...(next ? [next.label] : []), 'Open the Plan',
      );
      if (said === 'Open the Plan') await pages.show(plan.id);
      else if (said !== undefined) await vscode.commands.executeCommand('cleveragents.execute', { plan: plan.id });
      return;
    }
    case 'failed': {
      const status = await server.call('agents.plan.status', { plan: plan.id });
      const said = await vscode.window.showWarningMessage(
        `${name} ${plan.state === 'constrained' ? 'cannot be applied' : 'failed'}: ${brief(status.error?.message ?? 'its page says more', 200)}`,
        'Open the Plan',
      );
      if (said) await pages.show(plan.id);
      return;
    }
    case 'applied': {
      const said = await vscode.window.showInformationMessage(`${name} was applied.`, 'Open the Plan', 'Take It Back…');
      if (said === 'Open the Plan') await pages.show(plan.id);
      if (said === 'Take It Back…') await vscode.commands.executeCommand('cleveragents.revert', { plan: plan.id });
      return;
    }
    case 'cancelled':
      vscode.window.setStatusBarMessage(`$(circle-slash) ${shortName(plan.action)} was cancelled.`, 6000);
  }
}

