// The manifest that is shipped: the one that people edit, with a palette entry for every operation of the server that
// has no command of its own.

/** Operations that a command of package.json carries out with a flow of its own. */
export const OWN = new Map(Object.entries({
  'agents.plan.use': 'cleveragents.use',
  'agents.plan.execute': 'cleveragents.execute',
  'agents.plan.apply': 'cleveragents.apply',
  'agents.plan.cancel': 'cleveragents.cancel',
  'agents.plan.discard': 'cleveragents.discard',
  'agents.plan.revert': 'cleveragents.revert',
  'agents.plan.prompt': 'cleveragents.guide',
  'agents.plan.correct': 'cleveragents.correct',
  'agents.plan.correction-diff': 'cleveragents.correctionDiff',
  'agents.plan.rollback': 'cleveragents.rollback',
  'agents.plan.status': 'cleveragents.openPlan',
  'agents.plan.tree': 'cleveragents.choosePlan',
  'agents.plan.explain': 'cleveragents.explain',
  'agents.plan.diff': 'cleveragents.diff',
  'agents.plan.blame': 'cleveragents.explainLine',
}));

/** Operations for programs, of no use in a palette. */
export const PROGRAMS_ONLY = new Set(['agents.events.after', 'agents.content.show', 'agents.plan.pending']);

/** The id of the palette entry of an operation: never the server's own name, which the client library registers. */
export const entryOf = (command) => `cleveragents.run.${command.replace(/^agents\./, '')}`;

/** The manifest with its generated entries. */
export function manifest(written, operations) {
  const generated = operations
    .filter(({ command }) => !OWN.has(command) && !PROGRAMS_ONLY.has(command))
    .map(({ command, summary }) => ({
      command: entryOf(command), title: `${summary}…`, enablement: 'cleveragents.server == ready',
    }));
  const { scripts, devDependencies, type, private: _, ...shipped } = written;
  const commands = [...written.contributes.commands, ...generated];
  return {
    ...shipped,
    contributes: {
      ...written.contributes,
      commands: commands.map((command) => ({ category: 'CleverAgents', ...command })),
    },
  };
}
