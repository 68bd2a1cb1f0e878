// Forms from JSON Schemas, and results as text.
import type { Schema } from '../generated/operations.ts';

/** The parameters of an operation, those it needs first. */
export function askables(schema: Schema): { readonly required: readonly string[]; readonly optional: readonly string[] } {
  const required = schema.required ?? [];
  return { required, optional: Object.keys(schema.properties ?? {}).filter((name) => !required.includes(name)) };
}

export interface Form {
  /** All that can be said, where it is a list. */
  readonly choices?: readonly unknown[];
  readonly example: string;
  /** What a text means; `undefined` when it means nothing here. */
  readonly read: (text: string) => unknown;
}

/** How to ask for a value of a schema. */
export function parse(root: Schema, given: Schema): Form {
  const schema = resolve(root, given);
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== 'null') : schema.type;
  const constants = (schema.oneOf ?? schema.anyOf ?? []).map((one) => one.const).filter((one) => one !== undefined);
  const choices = schema.enum?.filter((one) => one !== null) ?? (constants.length > 0 ? constants : undefined);
  if (choices) return { choices, example: choices.join(', '), read: (text) => (choices.includes(text) ? text : undefined) };
  switch (type) {
    case 'boolean': return { choices: [true, false], example: 'true or false', read: (text) => ({ true: true, false: false })[text] };
    case 'integer':
    case 'number': return { example: 'a number', read: number(type === 'integer') };
    case 'array': return { example: 'values separated by commas', read: (text) => text.split(',').map((one) => one.trim()).filter(Boolean) };
    case 'object': return { example: 'name=value, name=value', read: pairs };
    default: return { example: 'a text', read: (text) => (text.trim() === '' ? undefined : text) };
  }
}

const number = (whole: boolean) => (text: string): number | undefined => {
  const value = Number(text);
  return text.trim() === '' || Number.isNaN(value) || (whole && !Number.isInteger(value)) ? undefined : value;
};

function pairs(text: string): Record<string, string> | undefined {
  const found: Record<string, string> = {};
  for (const pair of text.split(',').map((one) => one.trim()).filter(Boolean)) {
    const at = pair.indexOf('=');
    if (at < 1) return undefined;
    found[pair.slice(0, at).trim()] = pair.slice(at + 1).trim();
  }
  return found;
}

/** Follows references and takes the form of an optional value. */
function resolve(root: Schema, schema: Schema): Schema {
  let found = schema;
  for (let hops = 0; hops < 8; hops += 1) {
    const name = found.$ref?.split('/').at(-1);
    const some = found.anyOf?.filter((one) => one.type !== 'null');
    if (name !== undefined) found = root.$defs?.[name] ?? {};
    else if (some?.length === 1 && some[0]) found = some[0];
    else break;
  }
  return found;
}

/** A value as YAML, for people to read. */
export function toYaml(value: unknown, indent = ''): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return `${indent}[]\n`;
    return value.map((one) => {
      const text = toYaml(one, `${indent}  `);
      return `${indent}- ${text.slice(indent.length + 2)}`;
    }).join('');
  }
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value);
    if (entries.length === 0) return `${indent}{}\n`;
    return entries.map(([key, one]) => {
      const nested = one !== null && typeof one === 'object' && Object.keys(one).length > 0;
      if (nested) return `${indent}${key}:\n${toYaml(one, `${indent}  `)}`;
      if (typeof one === 'string' && one.includes('\n')) {
        return `${indent}${key}: |\n${one.trimEnd().split('\n').map((line) => `${indent}  ${line}\n`).join('')}`;
      }
      return `${indent}${key}: ${toYaml(one).trimStart()}`;
    }).join('');
  }
  return `${indent}${scalar(value)}\n`;
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value ?? null);
  const plain = /^[A-Za-z0-9_/.(][^\n]*$/.test(value) && !/(: |#|:$|^(true|false|null|yes|no)$|^[\d.]+$)/.test(value);
  return plain ? value : JSON.stringify(value);
}
