// Any operation of the server from the palette: its parameters are asked for as its schema says.
import * as vscode from 'vscode';
import type { Params } from '../api.ts';
import type { Context } from '../context.ts';
import { type CatalogueEntry, catalogue, type Schema } from '../generated/operations.ts';
import { askables, parse, toYaml } from '../model/schema.ts';
import { choose } from '../pick.ts';

/** The operation that a palette entry `cleveragents.run.X` runs. */
export const entryId = ({ command }: CatalogueEntry): string => `cleveragents.run.${command.replace(/^agents\./, '')}`;

export { catalogue };

/** Asks for what an operation needs, runs it and shows what it gives. */
export async function runOperation(context: Context, entry: CatalogueEntry): Promise<void> {
  const params = await ask(context, entry);
  if (params === undefined) return;
  const output = await context.server.call(entry.command, params as Params<typeof entry.command>);
  await context.plans.refresh();
  await context.documents.showResult(entry.summary, toYaml(output), 'yaml');
}

async function ask(context: Context, entry: CatalogueEntry): Promise<Record<string, unknown> | undefined> {
  const values: Record<string, unknown> = {};
  const { required, optional } = askables(entry.params);
  if (required.includes('text') && required.includes('config')) {
    const file = await pickYaml();
    if (!file) return undefined;
    values.config = file.fsPath;
    values.text = new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  }
  for (const name of required) {
    if (name in values) continue;
    const value = await askFor(context, entry, name);
    if (value === undefined) return undefined;
    values[name] = value;
  }
  const left = new Set(optional.filter((name) => !(name in values) && name !== 'path'));
  while (left.size > 0) {
    const name = await choose<string>(
      [
        { label: '$(play) Go', detail: Object.keys(values).length > 0 ? `with ${Object.keys(values).join(', ')}` : 'as it is', value: '' },
        ...[...left].map((one) => ({
          label: `$(add) ${one.replaceAll('_', ' ')}`, detail: entry.params.properties?.[one]?.description ?? '', value: one,
        })),
      ],
      entry.summary,
    );
    if (name === undefined) return undefined;
    if (name === '') break;
    const value = await askFor(context, entry, name);
    if (value !== undefined) {
      values[name] = value;
      left.delete(name);
    }
  }
  return values;
}

async function pickYaml(): Promise<vscode.Uri | undefined> {
  const active = vscode.window.activeTextEditor?.document;
  if (active?.languageId === 'yaml' && active.uri.scheme === 'file') {
    const said = await choose([
      { label: `$(file) ${vscode.workspace.asRelativePath(active.uri)}`, description: 'the open file', value: 'this' },
      { label: '$(folder-opened) Another file…', value: 'other' },
    ], 'Which file describes it?');
    if (said === 'this') return active.uri;
    if (said === undefined) return undefined;
  }
  const found = await vscode.window.showOpenDialog({ canSelectMany: false, filters: { YAML: ['yaml', 'yml'] }, title: 'Which file describes it?' });
  return found?.[0];
}

/** One parameter: by a picker where there is one, else as its schema says. */
async function askFor(context: Context, entry: CatalogueEntry, name: string): Promise<unknown> {
  const { pick, plans } = context;
  const group = entry.command.split('.')[1];
  switch (name) {
    case 'plan': return (await pick.plan('Which plan?', () => true, 'There is no plan yet.'))?.id;
    case 'decision': {
      const plan = await pick.plan('Of which plan?', () => true, 'There is no plan yet.');
      return plan && (await pick.decision(plan.id, 'Which decision?', () => true))?.decision_id;
    }
    case 'project': return pick.project('Which project?');
    case 'projects': return pick.projects();
    case 'action': return pick.action();
    case 'resource': return pick.resource();
    case 'automation_profile': return (await pick.profile()) ?? undefined;
    case 'dir': return vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    case 'plans': return plans.all.length === 0 ? undefined : [(await pick.plan('Which plan?', () => true, ''))?.id].filter(Boolean);
    case 'name': {
      const known = await namesOf(context, group);
      if (known && !entry.command.endsWith('.create') && !entry.command.endsWith('.add') && !entry.command.endsWith('.install')) {
        return choose(known.map((value) => ({ label: value, value })), entry.summary);
      }
    }
  }
  const schema = entry.params.properties?.[name] ?? {};
  return askBySchema(entry.params, schema, name);
}

async function namesOf({ server }: Context, group: string | undefined): Promise<string[] | undefined> {
  switch (group) {
    case 'action': return (await server.call('agents.action.list', {})).actions.map((one) => one.name);
    case 'project': return (await server.call('agents.project.list', {})).projects.map((one) => one.name);
    case 'lsp': return (await server.call('agents.lsp.list', {})).lsp_servers.map((one) => one.name);
    case 'tool': return ((await server.call('agents.tool.list', {})).tools ?? []).map((one) => one.name);
    case 'automation_profile': return (await server.call('agents.automation_profile.list', {})).profiles.map((one) => one.name);
    default: return undefined;
  }
}

async function askBySchema(root: Schema, schema: Schema, name: string): Promise<unknown> {
  const prompt = `${name.replaceAll('_', ' ')}: ${schema.description ?? ''}`;
  const form = parse(root, schema);
  if (form.choices) return choose(form.choices.map((value) => ({ label: String(value), value })), prompt);
  const said = await vscode.window.showInputBox({
    prompt, placeHolder: form.example, ignoreFocusOut: true,
    validateInput: (text) => (form.read(text) === undefined ? `Expected ${form.example}.` : undefined),
  });
  return said === undefined ? undefined : form.read(said);
}
