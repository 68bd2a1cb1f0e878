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
  return context.plans.onChange(() => {
    if (context.server.state !== 'ready') {
      before = undefined;
      return;
    }
    const now = new Map(context.plans.all.map((plan) => [plan.id, plan]));
    const told = news(before, now);
    before = now;
    if (!setting('notifications', true)) return;
    for (const one of told) void tell(context, one.plan, one.what).catch((error) => context.server.output.warn(messageOf(error)));
  });
}

async function tell(context: Context, plan: Plan, what: ReturnType<typeof news>[number]['what']): Promise<void> {
  const name = planName(plan);
  const { server, pages } = context;
  switch (what) {
    case 'decision': {
      const decision = context.plans.pendingOf(plan.id)[0];
      if (!decision) return;
      const more = context.plans.pendingOf(plan.id).length - 1;
      const said = await vscode.window.showInformationMessage(
        `${name} asks: ${brief(decision.question, 120)} Proposed: ${brief(decision.proposed, 60)}${more > 0 ? ` (${more} more)` : ''}`,
        'Answer…', 'Open the Place',
      );
      if (said === 'Answer…') await vscode.commands.executeCommand('cleveragents.answer', { plan: plan.id, decision: decision.decision_id });
      if (said === 'Open the Place') await openPlace(context, decision);
      return;
    }
    case 'apply': {
      const said = await vscode.window.showInformationMessage(`${name} is done and can be applied.`, 'Review', 'Show the Diff', 'Apply…');
      if (said === 'Review') await vscode.commands.executeCommand('cleveragents.review.start', { plan: plan.id });
      if (said === 'Show the Diff') await vscode.commands.executeCommand('cleveragents.diff', { plan: plan.id });
      if (said === 'Apply…') await vscode.commands.executeCommand('cleveragents.apply', { plan: plan.id });
      return;
    }
    case 'waits': {
      const status = await server.call('agents.plan.status', { plan: plan.id });
      const next = status.allowed_actions.find((action) => action.verb === 'execute');
      const said = await vscode.window.showInformationMessage(
        `${name} waits for you: ${brief(status.awaiting?.question ?? '', 160)}`, ...(next ? [next.label] : []), 'Open the Plan',
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

