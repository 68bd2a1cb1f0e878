// The status bar: how many plans run and how many wait for the person.
import * as vscode from 'vscode';
import { hasEnded, isRunning, waitsForPerson } from './model/look.ts';
import { count } from './model/words.ts';
import type { Plans } from './plans.ts';
import { type Server, setting } from './server.ts';

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('cleveragents.status', vscode.StatusBarAlignment.Left, 40);
  private readonly disposables: vscode.Disposable[];
  private readonly server: Server;
  private readonly plans: Plans;

  constructor(server: Server, plans: Plans) {
    this.server = server;
    this.plans = plans;
    this.item.name = 'CleverAgents';
    this.disposables = [
      this.item,
      plans.onChange(() => this.draw()),
      server.onState(() => this.draw()),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('cleveragents') && this.draw()),
    ];
    this.draw();
  }

  private draw(): void {
    if (!setting('statusBar', true)) return this.item.hide();
    const { text, tooltip, command, warn } = this.words();
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command;
    this.item.accessibilityInformation = { label: tooltip };
    this.item.backgroundColor = warn ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    this.item.show();
  }

  private words(): { text: string; tooltip: string; command: string; warn: boolean } {
    switch (this.server.state) {
      case 'missing': return { text: '$(warning) agents not found', tooltip: 'CleverAgents: the program agents was not found. Click to set its path.', command: 'cleveragents.setServerPath', warn: true };
      case 'failed': return { text: '$(error) CleverAgents', tooltip: 'CleverAgents: the server stopped. Click to see its output.', command: 'cleveragents.showOutput', warn: true };
      case 'untrusted': return { text: '$(shield) CleverAgents', tooltip: 'CleverAgents waits until you trust this folder. Click to do so.', command: 'workbench.trust.manage', warn: false };
      case 'starting': return { text: '$(loading~spin) CleverAgents', tooltip: 'CleverAgents starts.', command: 'cleveragents.showOutput', warn: false };
      case 'ready': break;
    }
    const open = this.plans.all.filter((plan) => !hasEnded(plan));
    const running = open.filter(isRunning).length;
    const waiting = open.filter(waitsForPerson).length;
    const parts = [
      running > 0 ? `$(sync~spin) ${running}` : '',
      waiting > 0 ? `$(bell-dot) ${waiting}` : '',
    ].filter(Boolean);
    const said = [
      running > 0 ? `${count(running, 'plan')} ${running === 1 ? 'runs' : 'run'}` : '',
      waiting > 0 ? `${count(waiting, 'plan')} ${waiting === 1 ? 'waits' : 'wait'} for you` : '',
    ].filter(Boolean);
    return {
      text: parts.length > 0 ? parts.join(' ') : '$(type-hierarchy) CleverAgents',
      tooltip: `CleverAgents: ${said.length > 0 ? said.join(', ') : 'no plan is under way'}. Click to see what can be done.`,
      command: 'cleveragents.menu',
      warn: false,
    };
  }

  dispose(): void {
    for (const one of this.disposables) one.dispose();
  }
}
