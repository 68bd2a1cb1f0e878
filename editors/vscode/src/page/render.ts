// The page of a plan as HTML, from what the server says. Pure: the same state gives the same text.
import type { Artifacts, EngineEvent, Explained, Plan, PlanStatus, TreeNode } from '../api.ts';
import { BOX, layOut, type Layout, type Placed } from '../model/layout.ts';
import { hasEnded, lookOf, lookOfDecision } from '../model/look.ts';
import { ago, brief, confidence, count, decisionStatus, eventWords, kindOf, planName, shortName } from '../model/words.ts';

export interface PageState {
  readonly plan: Plan;
  readonly status: PlanStatus;
  readonly tree: TreeNode | null;
  readonly artifacts: Artifacts;
  readonly events: readonly EngineEvent[];
  readonly selected: Explained | null;
  readonly superseded: boolean;
  readonly now: number;
  /** Pixels there are for the picture. */
  readonly room?: number | undefined;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A text as HTML that shows it as it is. */
export const escape = (text: string): string => text.replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);

/** Text with `code` in it. */
const prose = (text: string): string => escape(text).replace(/`([^`\n]+)`/g, '<code>$1</code>').replaceAll('\n', '<br>');

const data = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values).map(([key, value]) => ` data-${key}="${escape(value)}"`).join('');

const button = (label: string, act: string, values: Readonly<Record<string, string>> = {}, kind = ''): string =>
  `<button type="button" class="${kind}" data-act="${escape(act)}"${data(values)}>${escape(label)}</button>`;

/** One character for what codicons show in the editor. */
const GLYPHS: Readonly<Record<string, string>> = {
  'pass-filled': '✓', 'circle-slash': '⊘', error: '✗', 'git-pull-request': '⇡', 'bell-dot': '!', 'sync~spin': '↻',
  'debug-pause': '‖', question: '?', history: '↶', target: '◎', shield: '⛨', person: '☺', edit: '✎', 'repo-forked': '⑂',
  discard: '↶', beaker: '⚗', lightbulb: '◆',
};

const glyph = (icon: string): string => GLYPHS[icon] ?? '•';

export function render(state: PageState): string {
  return [header(state), timeline(state), decisions(state), files(state), checkpoints(state), cost(state)].join('\n');
}

function header({ plan, status }: PageState): string {
  const look = lookOf(plan);
  const waiting = status.awaiting
    ? `<p class="waits"><strong>Waits for you:</strong> ${prose(brief(status.awaiting.question, 300))}</p>` : '';
  const failed = status.error ? `<p class="failed"><strong>Failed:</strong> ${prose(status.error.message)}</p>
    ${status.error.hints.map((hint) => `<p class="quiet">${prose(hint)}</p>`).join('')}` : '';
  const activity = status.activity
    ? `<p class="quiet">${escape(status.activity.label)}${progress(status.activity.done, status.activity.total)}</p>` : '';
  return `<header>
    <h1 id="title">${escape(planName(plan))}</h1>
    <span class="badge ${escape(plan.state)}"><span aria-hidden="true">${glyph(look.icon)}</span> ${escape(look.words)}</span>
    <p class="quiet">${escape(brief(status.description, 300))}</p>
    ${waiting}${failed}${activity}
    <div class="actions" role="toolbar" aria-label="What can be done">${actions(plan, status)}</div>
  </header>`;
}

const progress = (done?: number | null, total?: number | null): string =>
  done == null || total == null || total === 0 ? '' : ` <progress max="${total}" value="${done}"></progress> ${done} of ${total}`;

function actions(plan: Plan, status: PlanStatus): string {
  const found: string[] = [];
  const allowed = new Set(status.allowed_actions.map((action) => action.verb));
  const label = (verb: string) => status.allowed_actions.find((action) => action.verb === verb)?.label ?? verb;
  if (status.awaiting?.kind === 'decision') found.push(button('Answer…', 'answer', {}, 'primary'));
  if (allowed.has('execute')) found.push(button(label('execute'), 'execute', {}, 'primary'));
  if (allowed.has('apply')) found.push(button('Apply…', 'apply', {}, 'primary'));
  if (plan.phase !== 'strategize') found.push(button('Review', 'review'), button('Diff', 'diff'));
  if (allowed.has('prompt') && status.awaiting?.kind !== 'decision') found.push(button('Guide…', 'guide'));
  if (plan.state === 'applied') found.push(button('Take it back…', 'revert'));
  if (allowed.has('cancel')) found.push(button('Cancel…', 'cancel'));
  return found.join(' ');
}

function timeline({ plan, status, events, now }: PageState): string {
  const order = ['strategize', 'execute', 'apply'] as const;
  const at = order.indexOf(plan.phase);
  const phases = order.map((phase, nth) => {
    const done = nth < at || plan.state === 'applied' || (nth === at && plan.state === 'complete');
    const current = nth === at && !done;
    const stopped = current && (hasEnded(plan) || plan.state === 'errored' || plan.state === 'constrained');
    const [mark, word, kind] = done ? ['✓', 'done', 'done'] : stopped ? ['✗', plan.state, 'stopped']
      : current ? ['●', plan.awaiting ? 'waits' : plan.state, 'current'] : ['○', 'later', 'later'];
    const summary = status.summaries[phase];
    const said = summary ? `<span class="quiet">${escape(brief(summary.headline, 120))}</span>` : '';
    return `<li class="${kind}"${current ? ' aria-current="step"' : ''}><span aria-hidden="true">${mark}</span>
      <span><strong>${phase[0]?.toUpperCase()}${phase.slice(1)}</strong> ${escape(word ?? '')}<br>${said}</span></li>`;
  });
  const told = events.flatMap((event) => {
    const words = eventWords(event);
    return words ? [`<li><span aria-hidden="true">${words.icon}</span> <span>${prose(words.words)}</span>
      <time datetime="${escape(event.timestamp)}">${escape(ago(event.timestamp, now))}</time></li>`] : [];
  });
  const shown = told.slice(-30).reverse();
  return `<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2>
    <ol class="phases">${phases.join('')}</ol>
    <details id="events"><summary>${count(told.length, 'event')}</summary><ol class="events">${shown.join('')}</ol></details>
  </section>`;
}

function decisions(state: PageState): string {
  const layout = layOut(state.tree, state.room);
  const body = layout.nodes.length === 0
    ? '<p class="quiet">Nothing is decided yet. The tree grows here as the plan decides.</p>'
    : `<div class="split"><div class="picture">${picture(layout, state.selected?.decision_id)}</div>${detail(state)}</div>`;
  const more = layout.hidden > 0
    ? `<p class="quiet">${count(layout.hidden, 'more decision')} ${layout.hidden === 1 ? 'is' : 'are'} in the Decisions view.</p>` : '';
  const toggle = button(state.superseded ? 'Hide replaced' : 'Show replaced', 'superseded', {}, 'link');
  return `<section aria-labelledby="decisions"><h2 id="decisions">Decisions ${toggle}</h2>${body}${more}</section>`;
}

/** The tree as a picture; each decision is a button for keyboards and screen readers, too. */
export function picture(layout: Layout, selected: string | undefined): string {
  const edges = layout.nodes.filter((placed) => placed.parent).map(edge);
  const boxes = layout.nodes.map((placed) => box(placed, layout.box, placed.node.decision_id === selected));
  return `<svg role="tree" aria-label="Decision tree" width="${layout.width + 4}" height="${layout.height + 4}"
    viewBox="-2 -2 ${layout.width + 4} ${layout.height + 4}">${edges.join('')}${boxes.join('')}</svg>`;
}

function edge({ x, y, parent, node }: Placed): string {
  if (!parent) return '';
  const dashed = node.status === 'superseded' ? ' class="superseded"' : '';
  return `<path${dashed} d="M${parent.x + 14} ${parent.y + BOX}V${y + BOX / 2}H${x}"/>`;
}

function box({ node, x, y }: Placed, width: number, selected: boolean): string {
  const look = lookOfDecision(node);
  const sure = confidence(node.confidence);
  const words = `${kindOf(node.type)}, ${look.words}: ${node.question} → ${node.chosen}${sure && `, confidence ${sure}`}`;
  const classes = ['node', node.status, selected ? 'selected' : ''].join(' ');
  const right = [sure, node.status === 'active' ? '' : decisionStatus(node.status)].filter(Boolean).join(' · ');
  const room = Math.floor((width - 44 - right.length * 7) / 6.6);
  const title = node.question && node.chosen ? `${node.chosen} · ${node.question}` : node.chosen || node.question;
  return `<g id="node-${escape(node.decision_id)}" class="${classes}" tabindex="0" role="treeitem" aria-selected="${selected}"
    aria-label="${escape(brief(words, 300))}" data-act="select" data-decision="${escape(node.decision_id)}" transform="translate(${x} ${y})">
    <title>${escape(words)}</title><rect width="${width}" height="${BOX}" rx="4"/>
    <text class="icon" x="14" y="${BOX / 2}" aria-hidden="true">${glyph(look.icon)}</text>
    <text x="30" y="${BOX / 2}">${escape(brief(title, room))}</text>
    <text class="sure" x="${width - 10}" y="${BOX / 2}">${escape(right)}</text></g>`;
}

function detail({ selected, plan }: PageState): string {
  if (!selected) return '<aside class="detail"><p class="quiet">Choose a decision in the picture to see why it was made.</p></aside>';
  const open = !hasEnded(plan);
  const id = { decision: selected.decision_id };
  const options = selected.alternatives.map((option) => {
    const says = option.description && option.description !== option.option ? `<br><span class="quiet">${prose(option.description)}</span>` : '';
    if (option.chosen) return `<li class="chosen"><span aria-hidden="true">●</span> <span>${prose(option.option)} <em>chosen</em>${says}</span></li>`;
    const instead = open && selected.status === 'active' ? button('Choose this…', 'correct', { ...id, guidance: option.option }, 'small') : '';
    return `<li><span aria-hidden="true">○</span> <span>${prose(option.option)}${says}</span> ${instead}</li>`;
  });
  const places = selected.resources.map((place, nth) => {
    const line = place.range ? `:${place.range.start.line + 1}` : '';
    return `<li>${button(`${place.path}${line}`, 'place', { ...id, nth: String(nth) }, 'link')} <span class="quiet">${prose(place.note ?? '')}</span></li>`;
  });
  const gate = selected.gate.threshold == null ? '' : `, asked below ${selected.gate.threshold.toFixed(2)}`;
  const factors = selected.computed_confidence?.factors.filter((factor) => factor.known)
    .map((factor) => `<li>${escape(factor.name.replaceAll('_', ' '))}: ${factor.value.toFixed(2)}</li>`).join('') ?? '';
  const doing = selected.status === 'pending' ? button('Answer…', 'answer', id, 'primary')
    : selected.status === 'superseded' ? button('What the correction changed', 'correctionDiff', id)
    : open ? `${button('Correct…', 'correct', id, 'primary')} ${button('Append a fix…', 'append', id)}` : '';
  return `<aside class="detail" aria-label="The chosen decision">
    <p class="quiet">${escape(kindOf(selected.type))} · ${escape(decisionStatus(selected.status))} · ${escape(selected.sequence)}</p>
    <h3>${prose(selected.question)}</h3>
    <p class="choice"><span aria-hidden="true">→</span> ${prose(selected.chosen)}</p>
    <div class="actions">${doing}</div>
    <p>${prose(selected.rationale)}</p>
    ${selected.confidence == null ? '' : `<p>Confidence <strong>${confidence(selected.confidence)}</strong>${gate}</p>`}
    ${factors ? `<details id="factors"><summary>How it was computed</summary><ul>${factors}</ul></details>` : ''}
    ${options.length > 1 ? `<h4>Options</h4><ul class="options">${options.join('')}</ul>` : ''}
    ${places.length > 0 ? `<h4>Places</h4><ul>${places.join('')}</ul>` : ''}
    ${selected.model_reasoning ? `<details id="reasoning"><summary>Reasoning</summary><p>${prose(selected.model_reasoning)}</p></details>` : ''}
    <p class="quiet">${count(selected.impact.downstream_decisions, 'decision')} ${selected.impact.downstream_decisions === 1 ? 'hangs' : 'hang'} on it.</p>
  </aside>`;
}

function files({ artifacts }: PageState): string {
  const rows = artifacts.artifacts.map((file) =>
    `<tr><td>${button(file.path, 'file', { path: file.path }, 'link')}</td><td class="number">${escape(file.change)}</td><td class="quiet">${escape(file.size)}</td></tr>`);
  const body = rows.length > 0
    ? `<table><thead><tr><th scope="col">File</th><th scope="col">Change</th><th scope="col">Size</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
    : '<p class="quiet">No file is changed. Changes are made in a sandbox first, and shown here.</p>';
  return `<section aria-labelledby="files"><h2 id="files">Files</h2>${body}</section>`;
}

function checkpoints({ artifacts, plan, now }: PageState): string {
  const rows = [...artifacts.checkpoints].reverse().map((checkpoint) => {
    const back = hasEnded(plan) ? '' : button('Go back…', 'rollback', { checkpoint: checkpoint.id }, 'small');
    const paths = checkpoint.diff_paths.map((path) => `<code>${escape(path)}</code>`).join(' ');
    return `<tr><td>${escape(checkpoint.label || checkpoint.type.replaceAll('_', ' '))}</td>
      <td>${paths}</td><td class="quiet">${escape(ago(checkpoint.created, now))}</td><td>${back}</td></tr>`;
  });
  const body = rows.length > 0
    ? `<table><thead><tr><th scope="col">Checkpoint</th><th scope="col">Files</th><th scope="col">When</th><th scope="col"></th></tr></thead><tbody>${rows.join('')}</tbody></table>`
    : '<p class="quiet">There is none yet. One is made around each group of changes.</p>';
  return `<section aria-labelledby="checkpoints"><h2 id="checkpoints">Checkpoints</h2>${body}</section>`;
}

function cost({ status }: PageState): string {
  const facts: readonly (readonly [string, string])[] = [
    ['Cost', status.cost.cost_so_far + (status.cost.estimated ? ` of about ${status.cost.estimated}` : '')],
    ['Tokens', status.cost.tokens_used.toLocaleString('en')],
    ['Time', status.timing.elapsed],
    ['Tool calls', String(status.execution.tool_calls)],
    ['Decisions', String(status.execution.decisions_made)],
    ['Attempt', String(status.attempt)],
    ['Profile', shortName(status.automation)],
    ['Validations', validations(status)],
  ];
  const cells = facts.filter(([, value]) => value !== '').map(([name, value]) => `<div><dt>${name}</dt><dd>${escape(value)}</dd></div>`);
  return `<section aria-labelledby="cost"><h2 id="cost">Cost</h2><dl>${cells.join('')}</dl></section>`;
}

function validations({ validation_summary: found }: PlanStatus): string {
  if (found.length === 0) return '';
  const failed = found.filter((one) => (one as { readonly passed?: boolean }).passed === false).length;
  return failed === 0 ? `${found.length} passed` : `${failed} of ${found.length} failed`;
}
