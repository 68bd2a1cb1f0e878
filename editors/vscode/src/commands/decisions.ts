// Commands about decisions: answer, explain, correct, and the way to the code.
import * as vscode from 'vscode';
import type { Correction, Explained, PendingDecision } from '../api.ts';
import { type Context, type Subject, subjectOf } from '../context.ts';
import { showCorrection } from '../documents.ts';
import { hasEnded } from '../model/look.ts';
import { ago, brief, confidence, count, planName } from '../model/words.ts';
import { choose } from '../pick.ts';

/** Puts the options of a decision that waits to a person, and gives the plan what they say. */
export async function answer(context: Context, given: unknown): Promise<void> {
  const { server, plans } = context;
  const subject = subjectOf(given);
  if (subject.guidance !== undefined && subject.plan !== undefined) {
    return give(context, subject.plan, subject.decision, subject.guidance);
  }
  const { decisions } = await server.call('agents.plan.pending', { plan: subject.plan ?? null });
  const waiting = subject.decision === undefined ? decisions : decisions.filter((d) => d.decision_id === subject.decision);
  if (waiting.length === 0) {
    void vscode.window.showInformationMessage('No decision waits for an answer.');
    return;
  }
  const decision = await choose(
    waiting.map((one) => {
      const plan = plans.find(one.plan_id);
      return {
        label: `$(question) ${brief(one.question, 100)}`, description: plan && planName(plan),
        detail: `proposed: ${brief(one.proposed, 100)}`, value: one,
      };
    }),
    'Which decision?', true,
  );
  if (!decision) return;
  const said = await askFor(decision);
  if (said === undefined) return;
  if (said === EXPLAIN) return explain(context, { decision: decision.decision_id, plan: decision.plan_id });
  await give(context, decision.plan_id, decision.decision_id, said);
}

const EXPLAIN = Symbol('explain');

async function askFor(decision: PendingDecision): Promise<string | typeof EXPLAIN | undefined> {
  const texts = decision.options.map((option) => option.option.trim().toLowerCase());
  const options = decision.options.map((option, at) => ({
    label: `$(${option.chosen ? 'star-full' : 'circle-large-outline'}) ${brief(option.option, 100)}`,
    description: option.chosen ? `proposed, confidence ${confidence(decision.confidence) || 'unknown'}` : '',
    detail: option.description === option.option ? '' : brief(option.description, 160),
    // Words where they are clear, else the number.
    value: texts.filter((text) => text === texts[at]).length === 1 ? option.option : String(option.index),
  }));
  const proposed = options.findIndex((_, at) => decision.options[at]?.chosen);
  if (proposed > 0) options.unshift(...options.splice(proposed, 1));
  const chosen = await choose<string | symbol>(
    [
      ...options,
      { label: '$(edit) In your own words…', detail: 'The actor makes of them what it can', value: WORDS },
      { label: '$(info) Explain first', detail: brief(decision.rationale, 160), value: EXPLAIN },
    ],
    brief(decision.question, 200),
  );
  if (chosen === WORDS) return words(decision.question, 'What shall be done instead?');
  return chosen as string | typeof EXPLAIN | undefined;
}

const WORDS = Symbol('words');

/** Asks for a text that is not empty. */
export async function words(prompt: string, placeHolder: string, value = ''): Promise<string | undefined> {
  const said = await vscode.window.showInputBox({
    prompt: brief(prompt, 200), placeHolder, value, ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === '' ? 'Say it in a few words.' : undefined),
  });
  return said?.trim();
}

async function give({ server, plans }: Context, plan: string, decision: string | undefined, guidance: string): Promise<void> {
  const done = await server.call('agents.plan.prompt', { plan, guidance, decision: decision ?? null });
  const next = done.awaiting ? ` Next: ${brief(done.awaiting.question, 80)}` : '';
  vscode.window.setStatusBarMessage(`$(check) Answered: ${brief(done.guidance_added.option ?? guidance, 60)}.${next}`, 6000);
  await plans.refresh();
}

/** Opens the page of the decision's plan at the decision. */
export async function explain(context: Context, given: unknown): Promise<void> {
  const subject = await decisionOf(context, given, 'Which decision shall be explained?', () => true);
  if (!subject) return;
  const explained = await context.server.call('agents.plan.explain', { decision: subject });
  context.decisions.show(explained.plan_id);
  await context.pages.show(explained.plan_id, explained.decision_id);
}

/** Explains the decision behind the line of the cursor. */
export async function explainLine(context: Context): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.uri.scheme !== 'file') return;
  const line = editor.selection.active.line + 1;
  const found = await context.server.call('agents.plan.blame', {
    file: editor.document.uri.fsPath, line, text: editor.document.getText(),
  });
  const segment = found.segments[0];
  if (!segment) {
    void vscode.window.showInformationMessage(`No plan wrote line ${line}, and none would change it.`);
    return;
  }
  await explain(context, { decision: segment.decision_id });
}

/** The decision a command is about: what it was given, else what a person picks. */
async function decisionOf(
  { pick, server }: Context, given: unknown, question: string, fits: (plan: { readonly state: string }) => boolean,
): Promise<string | undefined> {
  const subject = subjectOf(given);
  if (subject.decision !== undefined) return subject.decision;
  let plan = subject.plan;
  if (plan === undefined) plan = (await pick.plan('Of which plan?', fits, 'There is no such plan.'))?.id;
  if (plan === undefined) return undefined;
  const { summary } = await server.call('agents.plan.tree', { plan });
  if (summary.nodes === 0) return void vscode.window.showInformationMessage('The plan has not decided anything yet.');
  return (await pick.decision(plan, question, (node) => node.status !== 'superseded'))?.decision_id;
}

/** Corrects a decision: another option or a person's words, what falls with it shown first. */
export async function correct(context: Context, given: unknown): Promise<void> {
  const subject = subjectOf(given);
  const mode = subject.mode ?? 'revert';
  const decision = await decisionOf(
    context, given, mode === 'append' ? 'Which decision shall get a fix added?' : 'Which decision shall be corrected?',
    (plan) => mode === 'append' || !hasEnded(plan as never),
  );
  if (decision === undefined) return;
  const explained = await context.server.call('agents.plan.explain', { decision });
  const guidance = subject.guidance ?? (await guidanceFor(explained, mode));
  if (guidance === undefined) return;
  const preview = await context.server.call('agents.plan.correct', { decision, mode, guidance, dry_run: true });
  if (preview.rejected) {
    const more = preview.suggestions ? ` Try: ${preview.suggestions.join(' or ')}` : '';
    void vscode.window.showWarningMessage(`This cannot be corrected now: ${preview.reason ?? 'the plan does not allow it'}.${more}`);
    return;
  }
  const verb = mode === 'append' ? 'Append' : 'Correct';
  const said = await vscode.window.showWarningMessage(
    `${verb}: “${brief(explained.question, 120)}” → “${brief(guidance, 120)}”?`,
    { modal: true, detail: consequences(preview, mode) }, verb,
  );
  if (said !== verb) return;
  const done = await context.server.call('agents.plan.correct', { decision, mode, guidance });
  await context.plans.refresh();
  context.decisions.show(done.plan_id);
  const made = done.correction;
  vscode.window.setStatusBarMessage(`$(edit) The correction is under way: ${brief(guidance, 60)}`, 6000);
  if (made) context.pages.expectCorrection(done.plan_id, made.correction_attempt_id);
}

async function guidanceFor(explained: Explained, mode: 'revert' | 'append'): Promise<string | undefined> {
  if (mode === 'append') return words(explained.question, 'What shall be done in addition?');
  const others = explained.alternatives.filter((option) => !option.chosen && option.option !== explained.chosen);
  const chosen = await choose<string | symbol>(
    [
      ...others.map((option) => ({
        label: `$(arrow-right) ${brief(option.option, 100)}`,
        detail: option.description === option.option ? '' : brief(option.description, 160),
        value: String(option.index),
      })),
      { label: '$(edit) In your own words…', detail: 'Say what shall be decided instead', value: WORDS },
    ],
    `Instead of “${brief(explained.chosen, 100)}”`,
  );
  if (chosen === WORDS) return words(explained.question, 'What shall be decided instead?');
  const option = others.find((one) => String(one.index) === chosen);
  // The words of an option read better in the record than its number, where they are clear.
  const same = option && explained.alternatives.filter((one) => one.option === option.option).length;
  return option && same === 1 ? option.option : (chosen as string | undefined);
}

function consequences(preview: Correction, mode: 'revert' | 'append'): string {
  const lines: string[] = [];
  const would = preview.would_revert;
  if (mode === 'append') lines.push('The decision and its work stay. A child plan adds to them.');
  if (would) {
    lines.push(`${count(would.decisions_to_invalidate.length, 'decision')} and ${count(would.artifacts_to_archive, 'file')} are taken back and done again:`);
    lines.push(...would.decisions_to_invalidate.slice(0, 6).map((one) => `  • ${brief(one.label, 80)}${one.overlaps ? ' (same lines)' : ''}`));
    if (would.decisions_to_invalidate.length > 6) lines.push(`  • and ${would.decisions_to_invalidate.length - 6} more`);
    lines.push(`${count(would.unaffected_decisions, 'other decision')} stay.`);
  }
  if (preview.estimated_cost) lines.push(`It takes about ${preview.estimated_cost.eta.replace('~', '')} and costs ${preview.estimated_cost.total}.`);
  lines.push(...preview.warnings);
  lines.push('Your files are not touched: this happens in the sandbox.');
  return lines.join('\n');
}

/** The files before and after a correction. */
export async function correctionDiff(context: Context, given: unknown): Promise<void> {
  let correction = subjectOf(given).decision ?? (given as { readonly correction?: string } | undefined)?.correction;
  if (correction === undefined) {
    const plan = await context.pick.plan('Of which plan?', () => true, 'There is no plan yet.');
    if (!plan) return;
    const made = await correctionsOf(context, plan.id);
    if (made.length === 0) {
      void vscode.window.showInformationMessage('No decision of this plan was corrected.');
      return;
    }
    correction = await choose(
      made.map((one) => ({
        label: `$(history) ${brief(one.guidance, 100)}`, description: ago(one.at, Date.now()),
        detail: `${brief(one.question, 100)} It was ${brief(one.was, 60)}`, value: one.correction_attempt_id,
      })),
      'Which correction?',
    );
  }
  if (correction !== undefined) await showCorrection(await context.server.call('agents.plan.correction-diff', { correction }));
}

/** How many decisions of a plan are asked for their corrections. */
const ASKED = 200;

/** The corrections of a plan's decisions, the newest first; a decision that was answered otherwise was not corrected. */
async function correctionsOf({ server }: Context, plan: string) {
  const { decisionsOf } = await import('../model/layout.ts');
  const { tree } = await server.call('agents.plan.tree', { plan, show_superseded: true });
  const decisions = [...decisionsOf(tree)].slice(0, ASKED);
  const explained = await Promise.all(decisions.map((node) => server.call('agents.plan.explain', { decision: node.decision_id })));
  const made = explained.flatMap(({ corrections, question, chosen }) =>
    corrections.filter(({ role }) => role === 'corrected').map((one) => ({ ...one, question, was: chosen })));
  const each = new Map(made.map((one) => [one.correction_attempt_id, one]));
  return [...each.values()].sort((a, b) => b.at.localeCompare(a.at));
}

/** Opens the code that a decision is about. */
export async function goToPlace(context: Context, given: unknown): Promise<void> {
  const { decision } = subjectOf(given);
  if (decision === undefined) return;
  const explained = await context.server.call('agents.plan.explain', { decision });
  await openPlace(context, explained);
}

/** The first place of a decision in the files of the workspace, else in the diff of its plan. */
export async function openPlace(context: Context, decision: Pick<Explained, 'resources' | 'plan_id'>, nth = 0): Promise<void> {
  const place = decision.resources[nth];
  if (!place) {
    await vscode.commands.executeCommand('cleveragents.diff', { plan: decision.plan_id });
    return;
  }
  const { resources } = await context.server.call('agents.resource.list', {});
  const root = resources.find((resource) => resource.id === place.resource_id)?.location;
  const uri = root == null ? undefined : vscode.Uri.joinPath(vscode.Uri.file(root), place.path);
  const at = place.range?.start;
  try {
    if (!uri) throw new Error('the resource has no place on disk');
    const document = await vscode.workspace.openTextDocument(uri);
    const position = new vscode.Position(at?.line ?? 0, 0);
    await vscode.window.showTextDocument(document, { selection: new vscode.Range(position, position), viewColumn: vscode.ViewColumn.One });
  } catch {
    await vscode.commands.executeCommand('cleveragents.diffFile', decision.plan_id, place.path);
  }
}

export type { Subject };
