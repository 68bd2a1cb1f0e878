// The view *Decisions*: the tree of decisions of one plan.
import * as vscode from 'vscode';
import type { DecisionTree, TreeNode } from '../api.ts';
import { lookOfDecision } from '../model/look.ts';
import { brief, confidence, count, kindOf, planName } from '../model/words.ts';
import type { Plans } from '../plans.ts';
import { messageOf, type Server } from '../server.ts';

export interface DecisionNode {
  readonly kind: 'decision';
  readonly plan: string;
  readonly node: TreeNode;
}

export class DecisionsView implements vscode.TreeDataProvider<DecisionNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<DecisionNode | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  readonly tree: vscode.TreeView<DecisionNode>;
  private readonly disposables: vscode.Disposable[] = [];
  /** The plan that is shown; without a choice of the person's, one that wants attention. */
  private chosen: string | undefined;
  private superseded = false;
  private readonly server: Server;
  private readonly plans: Plans;

  constructor(server: Server, plans: Plans) {
    this.server = server;
    this.plans = plans;
    this.tree = vscode.window.createTreeView('cleveragents.decisions', { treeDataProvider: this, showCollapseAll: true });
    this.disposables.push(
      this.tree,
      plans.onChange(() => this.changed.fire(undefined)),
      plans.onTouch((touched) => {
        if (this.plan !== undefined && touched.has(this.plan)) this.changed.fire(undefined);
      }),
    );
  }

  get plan(): string | undefined {
    if (this.chosen !== undefined && this.plans.find(this.chosen)) return this.chosen;
    return (this.plans.open.find((plan) => plan.awaiting) ?? this.plans.open[0])?.id;
  }

  show(plan: string): void {
    this.chosen = plan;
    this.changed.fire(undefined);
  }

  async showSuperseded(show: boolean): Promise<void> {
    this.superseded = show;
    await vscode.commands.executeCommand('setContext', 'cleveragents.superseded', show);
    this.changed.fire(undefined);
  }

  async getChildren(node?: DecisionNode): Promise<DecisionNode[]> {
    if (node) return node.node.children.map((child) => ({ kind: 'decision', plan: node.plan, node: child }));
    const plan = this.plan;
    const known = plan === undefined ? undefined : this.plans.find(plan);
    this.tree.description = known && planName(known);
    this.tree.message = undefined;
    if (plan === undefined || !known) return [];
    let found: DecisionTree;
    try {
      found = await this.server.call('agents.plan.tree', { plan, show_superseded: this.superseded });
    } catch (error) {
      this.tree.message = `The decisions cannot be shown: ${messageOf(error)}`;
      return [];
    }
    const { pending, nodes } = found.summary;
    this.tree.message = pending > 0 ? `${count(pending, 'decision')} of ${nodes} ${pending === 1 ? 'waits' : 'wait'} for you.` : undefined;
    return found.tree ? [{ kind: 'decision', plan, node: found.tree }] : [];
  }

  getTreeItem({ plan, node }: DecisionNode): vscode.TreeItem {
    const { None, Expanded } = vscode.TreeItemCollapsibleState;
    const look = lookOfDecision(node);
    const item = new vscode.TreeItem(brief(node.chosen || node.question, 90), node.children.length > 0 ? Expanded : None);
    // A node that got its first child is another one to the editor: it would keep it closed.
    item.id = `decision ${node.decision_id} ${node.children.length > 0}`;
    const sure = confidence(node.confidence);
    const parts = [node.status === 'active' ? '' : look.words, sure, brief(node.question, 90)];
    item.description = parts.filter(Boolean).join(' · ');
    item.iconPath = new vscode.ThemeIcon(look.icon, look.color === undefined ? undefined : new vscode.ThemeColor(look.color));
    item.accessibilityInformation = {
      label: `${kindOf(node.type)}, ${look.words}: ${brief(node.question, 120)}, ${brief(node.chosen, 120)}${sure && `, confidence ${sure}`}`,
    };
    item.tooltip = new vscode.MarkdownString()
      .appendMarkdown('**').appendText(node.question).appendMarkdown('**\n\n')
      .appendText(`→ ${node.chosen}`).appendMarkdown('\n\n')
      .appendText([kindOf(node.type), look.words, sure && `confidence ${sure}`].filter(Boolean).join(', '));
    const ended = this.plans.open.every((open) => open.id !== plan);
    item.contextValue = [
      'decision', node.status,
      ...(node.status === 'active' && !ended ? ['correct'] : []),
      ...(node.artifacts.length > 0 || node.type === 'strategy_choice' || node.type === 'implementation_choice' ? ['place'] : []),
      ...(node.status === 'superseded' ? ['correction'] : []),
    ].join(' ');
    item.command = {
      command: node.status === 'pending' ? 'cleveragents.answer' : 'cleveragents.explain',
      title: node.status === 'pending' ? 'Answer' : 'Explain',
      arguments: [{ kind: 'decision', plan, node }],
    };
    return item;
  }

  getParent(): undefined {
    return undefined;
  }

  dispose(): void {
    for (const one of [...this.disposables, this.changed]) one.dispose();
  }
}
