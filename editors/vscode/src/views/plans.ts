// The view *Plans*: those that wait first, each with what waits, its files, checkpoints and child plans.
import * as vscode from 'vscode';
import type { Artifacts, Checkpoint, PendingDecision, Plan, PlanStatus } from '../api.ts';
import { hasEnded, inOrder, isRunning, lookOf, planContext, waitsForPerson } from '../model/look.ts';
import { ago, brief, count, planName } from '../model/words.ts';
import type { Plans } from '../plans.ts';
import { type Server, setting } from '../server.ts';

export type PlanNode =
  | { readonly kind: 'plan'; readonly plan: Plan }
  | { readonly kind: 'ended'; readonly plans: readonly Plan[] }
  | { readonly kind: 'pending'; readonly plan: string; readonly decision: PendingDecision }
  | { readonly kind: 'file'; readonly plan: string; readonly file: Artifacts['artifacts'][number] }
  | { readonly kind: 'checkpoints'; readonly plan: string; readonly checkpoints: readonly Checkpoint[] }
  | { readonly kind: 'checkpoint'; readonly plan: string; readonly checkpoint: Checkpoint }
  | { readonly kind: 'note'; readonly icon: string; readonly text: string };

const note = (icon: string, text: string): PlanNode => ({ kind: 'note', icon, text });

export class PlansView implements vscode.TreeDataProvider<PlanNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<PlanNode | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly disposables: vscode.Disposable[] = [];
  readonly tree: vscode.TreeView<PlanNode>;
  private readonly server: Server;
  private readonly plans: Plans;

  constructor(server: Server, plans: Plans) {
    this.server = server;
    this.plans = plans;
    this.tree = vscode.window.createTreeView('cleveragents.plans', { treeDataProvider: this, showCollapseAll: true });
    this.disposables.push(this.tree, plans.onChange(() => this.refresh()), plans.onTouch(() => this.refresh()));
  }

  private refresh(): void {
    const waiting = this.plans.all.filter(waitsForPerson).length;
    this.tree.badge = waiting > 0
      ? { value: waiting, tooltip: `${count(waiting, 'plan')} ${waiting === 1 ? 'waits' : 'wait'} for you` }
      : undefined;
    this.changed.fire(undefined);
  }

  async getChildren(node?: PlanNode): Promise<PlanNode[]> {
    if (!node) return this.roots();
    switch (node.kind) {
      case 'ended': return node.plans.map((plan) => ({ kind: 'plan', plan }));
      case 'plan': return this.parts(node.plan);
      case 'checkpoints': return node.checkpoints.map((checkpoint) => ({ kind: 'checkpoint', plan: node.plan, checkpoint }));
      default: return [];
    }
  }

  private roots(): PlanNode[] {
    const known = new Set(this.plans.all.map((plan) => plan.id));
    const top = inOrder(this.plans.all.filter((plan) => !plan.parent || !known.has(plan.parent)));
    const nodes: PlanNode[] = top.filter((plan) => !hasEnded(plan)).map((plan) => ({ kind: 'plan', plan }));
    const ended = top.filter(hasEnded).slice(0, setting('plans.ended', 20));
    if (ended.length > 0) nodes.push({ kind: 'ended', plans: ended });
    return nodes;
  }

  private async parts(plan: Plan): Promise<PlanNode[]> {
    const [status, artifacts] = await Promise.all([
      this.server.call('agents.plan.status', { plan: plan.id }),
      this.server.call('agents.plan.artifacts', { plan: plan.id }),
    ]);
    const nodes: PlanNode[] = this.plans.pendingOf(plan.id)
      .map((decision) => ({ kind: 'pending', plan: plan.id, decision }));
    nodes.push(...words(status, nodes.length > 0));
    const children = this.plans.all.filter((child) => child.parent === plan.id);
    nodes.push(...inOrder(children).map((child): PlanNode => ({ kind: 'plan', plan: child })));
    nodes.push(...artifacts.artifacts.map((file): PlanNode => ({ kind: 'file', plan: plan.id, file })));
    const { checkpoints } = artifacts;
    if (checkpoints.length > 0) nodes.push({ kind: 'checkpoints', plan: plan.id, checkpoints });
    if (nodes.length === 0) nodes.push(note('info', isRunning(plan) ? 'Nothing is done yet' : 'Nothing was changed'));
    return nodes;
  }

  getTreeItem(node: PlanNode): vscode.TreeItem {
    const { None, Collapsed } = vscode.TreeItemCollapsibleState;
    switch (node.kind) {
      case 'plan': return planItem(node.plan);
      case 'ended': {
        const item = new vscode.TreeItem('Ended', Collapsed);
        item.id = 'ended';
        item.description = String(node.plans.length);
        item.iconPath = new vscode.ThemeIcon('archive');
        return item;
      }
      case 'pending': {
        const item = new vscode.TreeItem(brief(node.decision.question, 100), None);
        item.id = `pending ${node.decision.decision_id}`;
        item.description = `proposed: ${brief(node.decision.proposed, 60)}`;
        item.iconPath = new vscode.ThemeIcon('question', new vscode.ThemeColor('list.warningForeground'));
        item.contextValue = 'decision pending place';
        item.tooltip = `${node.decision.question}\n\n${node.decision.rationale}\n\nClick to answer.`;
        item.command = { command: 'cleveragents.answer', title: 'Answer', arguments: [node] };
        return item;
      }
      case 'file': {
        const item = new vscode.TreeItem(node.file.path.slice(node.file.path.lastIndexOf('/') + 1), None);
        const folder = node.file.path.slice(0, Math.max(0, node.file.path.lastIndexOf('/')));
        item.id = `file ${node.plan} ${node.file.resource_id} ${node.file.path}`;
        item.description = [node.file.change, folder].filter(Boolean).join(' · ');
        item.resourceUri = vscode.Uri.from({ scheme: 'agents', path: `/${node.file.path}` });
        item.iconPath = vscode.ThemeIcon.File;
        item.tooltip = `${node.file.path}: ${node.file.change}\nClick to see the change.`;
        item.command = { command: 'cleveragents.diffFile', title: 'Show the change', arguments: [node.plan, node.file.path] };
        return item;
      }
      case 'checkpoints': {
        const item = new vscode.TreeItem('Checkpoints', Collapsed);
        item.id = `checkpoints ${node.plan}`;
        item.description = String(node.checkpoints.length);
        item.iconPath = new vscode.ThemeIcon('history');
        return item;
      }
      case 'checkpoint': {
        const item = new vscode.TreeItem(brief(node.checkpoint.label, 60) || node.checkpoint.type.replaceAll('_', ' '), None);
        item.id = `checkpoint ${node.plan} ${node.checkpoint.id}`;
        item.description = ago(node.checkpoint.created, Date.now());
        item.iconPath = new vscode.ThemeIcon('git-commit');
        item.contextValue = 'checkpoint';
        item.tooltip = `${node.checkpoint.label}\n${node.checkpoint.diff_paths.join('\n')}`;
        return item;
      }
      case 'note': {
        const item = new vscode.TreeItem(node.text, None);
        item.iconPath = new vscode.ThemeIcon(node.icon);
        item.tooltip = node.text;
        return item;
      }
    }
  }

  dispose(): void {
    for (const one of [...this.disposables, this.changed]) one.dispose();
  }
}

function words(status: PlanStatus, asked: boolean): PlanNode[] {
  const found: PlanNode[] = [];
  if (status.activity) found.push(note('sync~spin', status.activity.label));
  if (status.error) found.push(note('error', brief(status.error.message, 200)));
  if (status.awaiting && !asked) found.push(note('bell-dot', brief(status.awaiting.question, 200)));
  return found;
}

function planItem(plan: Plan): vscode.TreeItem {
  const look = lookOf(plan);
  const item = new vscode.TreeItem(planName(plan), vscode.TreeItemCollapsibleState.Collapsed);
  item.id = `plan ${plan.id}`;
  item.description = `${look.words} · ${plan.elapsed}`;
  item.iconPath = new vscode.ThemeIcon(look.icon, look.color === undefined ? undefined : new vscode.ThemeColor(look.color));
  item.contextValue = planContext(plan);
  item.tooltip = new vscode.MarkdownString()
    .appendMarkdown('**').appendText(planName(plan)).appendMarkdown('**\n\n')
    .appendText(`${look.words} (${plan.phase}, ${plan.state}), attempt ${plan.attempt}, ${plan.elapsed}`)
    .appendMarkdown('\n\n').appendText(`Made ${plan.created}, id begins with ${plan.short_id}`);
  item.accessibilityInformation = { label: `Plan ${planName(plan)}: ${look.words}` };
  item.command = { command: 'cleveragents.choosePlan', title: 'Show its decisions', arguments: [{ kind: 'plan', plan }] };
  return item;
}
