import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
// @ts-expect-error: a script without types
import { entryOf, manifest, OWN, PROGRAMS_ONLY } from '../scripts/manifest.mjs';
// @ts-expect-error: a script without types
import { generate, operations } from '../scripts/operations.mjs';
import { catalogue } from '../src/generated/operations.ts';
import { askables, parse, toYaml } from '../src/model/schema.ts';

const written = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const shipped = manifest(written, operations());
const ids: string[] = shipped.contributes.commands.map(({ command }: { command: string }) => command);

test('every operation of the server is in the palette', () => {
  for (const { command } of catalogue) {
    if (PROGRAMS_ONLY.has(command)) continue;
    assert.ok(ids.includes(OWN.get(command) ?? entryOf(command)), command);
  }
});

test('ids of commands are unique and never the server\'s, which the client library registers', () => {
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.every((id) => id.startsWith('cleveragents.')));
});

test('menus, keys and the walkthrough name commands that exist', () => {
  const text = JSON.stringify([shipped.contributes.menus, shipped.contributes.keybindings, shipped.contributes.walkthroughs, shipped.contributes.viewsWelcome]);
  for (const [, id] of text.matchAll(/(?:"command":"|command:)(cleveragents\.[A-Za-z.]+)/g)) assert.ok(ids.includes(id!), id);
  for (const [, path] of text.matchAll(/"markdown":"([^"]+)"/g)) assert.ok(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8').length > 50);
});

test('every command that is declared has code behind it', () => {
  const code = readFileSync(new URL('../src/extension.ts', import.meta.url), 'utf8');
  for (const { command } of written.contributes.commands) {
    const name = command.replace('cleveragents.', '');
    assert.match(code, new RegExp(`^  (async )?'?${name.replaceAll('.', '\\.')}'?[:,]`, 'm'), command);
  }
});

test('what is shipped has no scripts and no dependencies to install', () => {
  assert.deepEqual([shipped.scripts, shipped.devDependencies, shipped.private], [undefined, undefined, undefined]);
  assert.equal(shipped.capabilities.untrustedWorkspaces.supported, 'limited');
});

test('definitions of one name that differ get types of their own', () => {
  const output = (type: string) => ({ type: 'object', properties: { x: { $ref: '#/$defs/X' } }, required: ['x'], $defs: { X: { type } } });
  const one = (command: string, type: string) => ({ command, summary: '', params: { type: 'object', properties: {} }, output: output(type) });
  const text = generate([one('agents.a.b', 'string'), one('agents.a.c', 'integer')]);
  assert.ok(text.includes('export type ABX = string;') && text.includes('export type ACX = number;'));
});

test('a form reads what its schema allows', () => {
  const root = { $defs: { Mode: { type: 'string', enum: ['revert', 'append'] } } };
  assert.deepEqual(parse(root, { $ref: '#/$defs/Mode' }).choices, ['revert', 'append']);
  assert.deepEqual(parse(root, { anyOf: [{ $ref: '#/$defs/Mode' }, { type: 'null' }] }).choices, ['revert', 'append']);
  const read = (schema: object, text: string) => parse(root, schema).read(text);
  assert.deepEqual([read({ type: ['integer', 'null'] }, '3'), read({ type: 'integer' }, '3.5'), read({ type: 'number' }, '3.5')], [3, undefined, 3.5]);
  assert.deepEqual(read({ type: 'array' }, 'a, b,'), ['a', 'b']);
  assert.deepEqual([read({ type: 'object' }, 'a=1, b=x=y'), read({ type: 'object' }, 'a')], [{ a: '1', b: 'x=y' }, undefined]);
  assert.equal(read({ type: 'string' }, ' '), undefined);
  assert.deepEqual(askables({ properties: { a: {}, b: {} }, required: ['b'] }), { required: ['b'], optional: ['a'] });
});

test('results are YAML that reads well', () => {
  const text = toYaml({ name: 'local/app', n: 2, yes: 'true', none: null, list: [{ a: 1, b: [] }, 'x: y'], text: 'one\ntwo\n' });
  assert.equal(text, 'name: local/app\nn: 2\nyes: "true"\nnone: null\nlist:\n  - a: 1\n    b: []\n  - "x: y"\ntext: |\n  one\n  two\n');
});
