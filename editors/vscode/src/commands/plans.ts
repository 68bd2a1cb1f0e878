// Commands about plans: from the first to the last verb.
import * as vscode from 'vscode';
import type { Params, Plan } from '../api.ts';
import { type Context, subjectOf } from '../context.ts';
import { showDiff, showFile } from '../documents.ts';
import { hasEnded, verbsOf } from '../model/look.ts';
import { brief, count, planName } from '../model/words.ts';
import { messageOf } from '../server.ts';
import { words } from './decisions.ts';

/** The plan a command is about: what it was given, else what a person picks. */
export async function planOf(
  { pick, plans }: Context, given: unknown, question: string, fits: (plan: Plan) => boolean, none: string,
): Promise<Plan | undefined> {
  const { plan } = subjectOf(given);
  if (plan === undefined) return pick.plan(question, fits, none);
  if (!plans.find(plan)) await plans.refresh();
  return plans.find(plan) ?? plans.all.find((known) => known.id.startsWith(plan));
}

const open = (plan: Plan): boolean => !hasEnded(plan);
const takes = (verb: 'execute' | 'apply') => (plan: Plan): boolean => verbsOf(plan).includes(verb);

/** Makes a plan from an action and starts it. */
export async function use(context: Context): Promise<void> {
  const action = await context.pick.action();
  if (action === undefined) return;
  const projects = await context.pick.projects();
  if (projects !== undefined) await begin(context, { action, projects, arguments: {} });
}

/** Makes a plan from what a lens or a code action says; what the action needs besides is asked. */
export async function useHere(context: Context, given: unknown): Promise<void> {
  const { action, projects, arguments: values } = (given ?? {}) as Partial<Params<'agents.plan.use'>>;
  if (action === undefined || projects === undefined) return use(context);
  await begin(context, { action, projects, arguments: { ...values } });
}

async function begin(
  context: Context, { action, projects, arguments: values }: { action: string; projects: readonly string[]; arguments: Record<string, unknown> },
): Promise<void> {
  const { pick, server } = context;
  const shown = await server.call('agents.action.show', { name: action });
  for (const argument of shown.arguments.filter((one) => one.required && one.default == null && !(one.name in values))) {
    const said = await words(`${argument.name}: ${argument.description ?? argument.type}`, argument.type);
    if (said === undefined) return;
    values[argument.name] = typed(said, argument.type);
  }
  const profile = await pick.profile();
  if (profile === undefined) return;
  const made = await server.call('agents.plan.use', { action, projects, arguments: values, automation_profile: profile });
  for (const warning of made.warnings ?? []) void vscode.window.showWarningMessage(`CleverAgents: ${warning}`);
  await context.plans.refresh();
  context.decisions.show(made.plan_id);
  await vscode.commands.executeCommand('cleveragents.plans.focus');
}

/** What a person typed, as the action wants it. */
export function typed(said: string, type: string): unknown {
  switch (type) {
    case 'integer':
    case 'float':
    case 'number': return Number.isNaN(Number(said)) ? said : Number(said);
    case 'boolean': return /^(y|yes|true|1)$/i.test(said);
    case 'list':
    case 'array': return said.split(',').map((one) => one.trim()).filter(Boolean);
    default: return said;
  }
}

export async function openPlan(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan?', () => true, 'There is no plan yet: “CleverAgents: Start a Plan”.');
  if (!plan) return;
  context.decisions.show(plan.id);
  await context.pages.show(plan.id);
}

export async function choosePlan(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Whose decisions?', () => true, 'There is no plan yet: “CleverAgents: Start a Plan”.');
  if (plan) context.decisions.show(plan.id);
}

export async function execute(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan shall go on?', takes('execute'), 'No plan waits to be executed.');
  if (!plan) return;
  await context.server.call('agents.plan.execute', { plan: plan.id });
  await context.plans.refresh();
}

/** Applies a plan, after the person has seen how much it changes. */
export async function apply(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan shall be applied?', takes('apply'), 'No plan is ready to be applied.');
  if (!plan) return;
  const { diff_summary: summary, drift } = await context.server.call('agents.plan.diff', { plan: plan.id });
  const unread = context.reviews.unreviewed(plan.id);
  const detail = [
    `${count(summary.files_changed, 'file')}, +${summary.insertions} -${summary.deletions}, as one commit that names the plan and its decisions.`,
    ...drift.map((one) => one.message),
    ...(unread > 0 ? [`${count(unread, 'change')} of the review you began ${unread === 1 ? 'has' : 'have'} no mark yet.`] : []),
    'The files are merged: what you edited meanwhile stays.',
  ].join('\n');
  const said = await vscode.window.showInformationMessage(
    `Apply ${planName(plan)} to your files?`, { modal: true, detail }, 'Apply', 'Without a Commit', 'Show the Diff First',
  );
  if (said === 'Show the Diff First') return diff(context, { plan: plan.id });
  if (said === undefined) return;
  const params: Params<'agents.plan.apply'> = { plan: plan.id, no_commit: said === 'Without a Commit' };
  await context.server.call('agents.plan.apply', params);
  await context.plans.refresh();
}

export async function diff(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'The changes of which plan?', (one) => one.phase !== 'strategize', 'No plan has changed anything yet.');
  if (plan) await showDiff(plan, await context.server.call('agents.plan.diff', { plan: plan.id }));
}

/** One file of a plan's change. */
export async function diffFile(context: Context, id: unknown, path: unknown): Promise<void> {
  const plan = await planOf(context, { plan: id }, '', () => true, 'There is no such plan.');
  if (!plan || typeof path !== 'string') return;
  const { files } = await context.server.call('agents.plan.diff', { plan: plan.id });
  const file = files.find((one) => one.path === path);
  if (file) await showFile(plan, file);
  else void vscode.window.showInformationMessage(`The plan ${planName(plan)} changes nothing in ${path} any more.`);
}

export async function guide(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan?', open, 'No plan is under way.');
  if (!plan) return;
  const guidance = await words(`Guidance for ${planName(plan)}`, 'What shall it keep in mind?');
  if (guidance === undefined) return;
  await context.server.call('agents.plan.prompt', { plan: plan.id, guidance });
  vscode.window.setStatusBarMessage(`$(check) The plan ${planName(plan)} was told.`, 6000);
  await context.plans.refresh();
}

/** Takes a plan back to a checkpoint, what falls shown first. */
export async function rollback(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan shall go back?', open, 'No plan can go back: none is under way.');
  if (!plan) return;
  const checkpoint = subjectOf(given).checkpoint ?? (await context.pick.checkpoint(plan.id))?.id;
  if (checkpoint === undefined) return;
  const preview = await context.server.call('agents.plan.rollback', { plan: plan.id, checkpoint, dry_run: true });
  const { impact, changes_reverted: files } = preview;
  const detail = [
    `${count(impact.decisions_after_cp_n, 'decision')} and ${count(impact.tool_calls_after_cp_n, 'tool call')} after it no longer count.`,
    ...files.slice(0, 10).map((file) => `  • ${file.file}: ${file.action}`),
    'A checkpoint of the present state is made first, so you can go forward again.',
  ].join('\n');
  const said = await vscode.window.showWarningMessage(
    `Roll ${planName(plan)} back to “${brief(preview.rollback_summary.label, 80)}”?`, { modal: true, detail }, 'Roll Back',
  );
  if (said === undefined) return;
  await context.server.call('agents.plan.rollback', { plan: plan.id, checkpoint });
  await context.plans.refresh();
}

/** A plan of its own that takes an applied one back. */
export async function revert(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan shall be taken back?', (one) => one.state === 'applied', 'No plan was applied.');
  if (!plan) return;
  const said = await vscode.window.showWarningMessage(
    `Take ${planName(plan)} back?`,
    { modal: true, detail: 'A new plan takes its changes out of your files again. Later changes stay, and you review and apply it like any other.' },
    'Take Back',
  );
  if (said === undefined) return;
  const made = await context.server.call('agents.plan.revert', { plan: plan.id });
  await context.plans.refresh();
  context.decisions.show(made.plan_id);
}

export async function cancel(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Which plan shall be given up?', open, 'No plan is under way.');
  if (!plan) return;
  const said = await vscode.window.showWarningMessage(
    `Give ${planName(plan)} up for good?`, { modal: true, detail: 'Your files stay as they are. Its decisions stay on record.' }, 'Cancel the Plan',
  );
  if (said === undefined) return;
  await context.server.call('agents.plan.cancel', { plan: plan.id });
  await context.plans.refresh();
}

export async function discard(context: Context, given: unknown): Promise<void> {
  const plan = await planOf(context, given, 'Whose sandbox?', (one) => one.state === 'cancelled', 'No plan was cancelled.');
  if (!plan) return;
  await context.server.call('agents.plan.discard', { plan: plan.id });
  vscode.window.setStatusBarMessage(`$(trash) The sandbox of ${planName(plan)} is gone.`, 6000);
}

/** Registers the folder as a resource with a project of its own. */
export async function setUp(context: Context): Promise<void> {
  const { server } = context;
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 0) {
    void vscode.window.showInformationMessage('Open a folder with a git repository first.');
    return;
  }
  const folder = folders.length === 1 ? folders[0] : await vscode.window.showWorkspaceFolderPick();
  if (!folder) return;
  const name = folder.name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '') || 'folder';
  const { resources } = await server.call('agents.resource.list', {});
  const known = resources.find((resource) => resource.location === folder.uri.fsPath && resource.name != null);
  const resource = known?.name ?? `local/${name}`;
  if (!known) {
    await server.call('agents.resource.add', { resource_type: 'git-checkout', name: resource, properties: { path: folder.uri.fsPath } });
  }
  const { projects } = await server.call('agents.project.list', {});
  const linked = known?.projects[0];
  let project = linked ?? `local/${name}`;
  if (linked === undefined) {
    if (projects.some((one) => one.name === project)) {
      await server.call('agents.project.link_resource', { project, resource });
    } else {
      project = (await server.call('agents.project.create', { name: project, resources: [resource] })).project.name;
    }
  }
  await servers(context, folder.uri.fsPath);
  const said = await vscode.window.showInformationMessage(`The folder is ready: resource ${resource}, project ${project}.`, 'Start a Plan');
  if (said) await use(context);
}

/** Offers to install the known language servers of a folder's languages that are not registered yet. */
async function servers({ server }: Context, dir: string): Promise<void> {
  try {
    const found = await server.call('agents.lsp.detect', { dir });
    const served = new Set(found.languages.filter((language) => language.registered.length > 0).map(({ language }) => language));
    const missing = found.servers.filter((one) => one.state !== 'registered' && one.languages.some((language) => !served.has(language)));
    if (missing.length === 0) return;
    const chosen = await vscode.window.showQuickPick(
      missing.map((one) => ({
        label: one.name, description: one.languages.join(', '),
        detail: one.program == null ? `${one.description}. To be installed for plans alone: ${one.install}` : `${one.description}. Found at ${one.program}`,
        picked: one.program != null, program: one.program,
      })),
      { canPickMany: true, placeHolder: 'Which language servers shall plans use to find and fix problems?' },
    );
    for (const { label: name, program } of chosen ?? []) {
      await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: `Registering ${name}…` },
        () => server.call('agents.lsp.install', { name, from_path: program != null }),
      );
    }
  } catch (error) {
    void vscode.window.showWarningMessage(`The language servers were not set up: ${messageOf(error)}`);
  }
}
