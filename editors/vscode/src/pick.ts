// Asking a person for one of many: plans, decisions, projects, actions, checkpoints. `undefined` is "never mind".
import * as vscode from 'vscode';
import type { Checkpoint, Plan, TreeNode } from './api.ts';
import { decisionsOf } from './model/layout.ts';
import { inOrder, lookOf, lookOfDecision } from './model/look.ts';
import { ago, brief, confidence, kindOf, planName } from './model/words.ts';
import type { Plans } from './plans.ts';
import type { Server } from './server.ts';

interface Choice<T> extends vscode.QuickPickItem {
  readonly value: T;
}

const icon = (name: string) => `$(${name})`;

/** One of `choices`; the only one there is is taken without asking when `alone` says so. */
export async function choose<T>(choices: readonly Choice<T>[], placeHolder: string, alone = false): Promise<T | undefined> {
  if (alone && choices.length === 1) return choices[0]?.value;
  const chosen = await vscode.window.showQuickPick(choices, { placeHolder, matchOnDescription: true, matchOnDetail: true });
  return chosen?.value;
}

export class Pick {
  private readonly server: Server;
  private readonly plans: Plans;

  constructor(server: Server, plans: Plans) {
    this.server = server;
    this.plans = plans;
  }

  /** A plan for which `fits` holds; `none` says what to do where there is none. */
  async plan(placeHolder: string, fits: (plan: Plan) => boolean, none: string): Promise<Plan | undefined> {
    await this.plans.refresh();
    const found = inOrder(this.plans.all.filter(fits));
    if (found.length === 0) {
      void vscode.window.showInformationMessage(none);
      return undefined;
    }
    const choices = found.map((plan) => {
      const look = lookOf(plan);
      return { label: `${icon(look.icon)} ${planName(plan)}`, description: look.words, detail: `made ${plan.created}, ${plan.elapsed}`, value: plan };
    });
    return choose(choices, placeHolder, true);
  }

  /** A decision of a plan. */
  async decision(plan: string, placeHolder: string, fits: (node: TreeNode) => boolean): Promise<TreeNode | undefined> {
    const { tree } = await this.server.call('agents.plan.tree', { plan });
    const found = [...decisionsOf(tree)].filter(fits);
    if (found.length === 0) {
      void vscode.window.showInformationMessage('The plan has no such decision yet.');
      return undefined;
    }
    const choices = found.map((node) => ({
      label: `${icon(lookOfDecision(node).icon)} ${brief(node.question || node.chosen, 100)}`,
      description: confidence(node.confidence),
      detail: `${kindOf(node.type)} → ${brief(node.chosen, 100)}`,
      value: node,
    }));
    return choose(choices, placeHolder);
  }

  async checkpoint(plan: string): Promise<Checkpoint | undefined> {
    const { checkpoints } = await this.server.call('agents.plan.artifacts', { plan });
    if (checkpoints.length === 0) {
      void vscode.window.showInformationMessage('The plan has no checkpoint yet.');
      return undefined;
    }
    const choices = [...checkpoints].reverse().map((checkpoint) => ({
      label: `${icon('git-commit')} ${checkpoint.label || checkpoint.type.replaceAll('_', ' ')}`,
      description: ago(checkpoint.created, Date.now()),
      detail: checkpoint.diff_paths.join(', '),
      value: checkpoint,
    }));
    return choose(choices, 'Where shall the plan go back to?');
  }

  async action(): Promise<string | undefined> {
    const [own, builtIn] = await Promise.all([
      this.server.call('agents.action.list', { state: 'available' }).catch(() => this.server.call('agents.action.list', {})),
      this.server.call('agents.action.list', { namespace: 'builtin' }),
    ]);
    const seen = new Set<string>();
    const actions = [...own.actions, ...builtIn.actions].filter(({ name }) => !seen.has(name) && seen.add(name));
    const choices = actions.map((action) => ({
      label: `${icon('zap')} ${action.name}`, detail: brief(action.description, 120), value: action.name,
    }));
    return choose(choices, 'What shall the plan do?');
  }

  async project(placeHolder: string): Promise<string | undefined> {
    const names = await this.projectNames();
    return names && choose(names.map((value) => ({ label: `${icon('project')} ${value}`, value })), placeHolder);
  }

  async projects(): Promise<readonly string[] | undefined> {
    const names = await this.projectNames();
    if (!names) return undefined;
    if (names.length === 1) return names;
    const chosen = await vscode.window.showQuickPick(names, { placeHolder: 'Which projects shall it work on?', canPickMany: true });
    return chosen && chosen.length > 0 ? chosen : undefined;
  }

  private async projectNames(): Promise<string[] | undefined> {
    const { projects } = await this.server.call('agents.project.list', {});
    if (projects.length > 0) return projects.map((project) => project.name);
    const chosen = await vscode.window.showInformationMessage(
      'There is no project yet: a project names what a plan may change.', 'Set Up This Folder',
    );
    if (chosen) await vscode.commands.executeCommand('cleveragents.setUp');
    return undefined;
  }

  async profile(): Promise<string | null | undefined> {
    const { profiles } = await this.server.call('agents.automation_profile.list', {});
    const choices: Choice<string | null>[] = [
      { label: `${icon('gear')} As configured`, detail: "The action's, else the project's, else the default", value: null },
      ...profiles.map((profile) => ({ label: `${icon('shield')} ${profile.name}`, detail: brief(profile.description ?? '', 120), value: profile.name })),
    ];
    return choose(choices, 'When shall it ask you?');
  }

  async resource(): Promise<string | undefined> {
    const { resources } = await this.server.call('agents.resource.list', {});
    const choices = resources.map((resource) => ({
      label: `${icon('database')} ${resource.name ?? resource.type}`, description: resource.type, value: resource.name ?? resource.id,
    }));
    if (choices.length === 0) void vscode.window.showInformationMessage('There is no resource yet: “CleverAgents: Set Up This Folder”.');
    return choices.length > 0 ? choose(choices, 'Which resource?') : undefined;
  }
}
