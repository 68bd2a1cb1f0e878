// Builds the extension.
//
//   node scripts/build.mjs types     the generated types only, for the type checker and the tests
//   node scripts/build.mjs bundle    dist/: the extension and the script of its page, each one file
//   node scripts/build.mjs package   build/cleveragents.vsix, made from a folder that holds only what is shipped
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { manifest } from './manifest.mjs';
import * as operations from './operations.mjs';

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

async function bundle() {
  const shared = { bundle: true, minify: true, sourcemap: false, legalComments: 'none', logLevel: 'warning' };
  rmSync(here('dist'), { recursive: true, force: true });
  await build({
    ...shared, entryPoints: [here('src/extension.ts')], outfile: here('dist/extension.js'),
    platform: 'node', format: 'cjs', target: 'node20', external: ['vscode'],
  });
  await build({
    ...shared, entryPoints: [here('src/page/browser.ts')], outfile: here('dist/page.js'),
    platform: 'browser', format: 'iife', target: 'es2022',
  });
}

function pack() {
  const stage = here('build/extension');
  rmSync(here('build'), { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  for (const part of ['dist', 'media', 'README.md']) cpSync(here(part), `${stage}/${part}`, { recursive: true });
  cpSync(here('../../LICENSE-MIT'), `${stage}/LICENSE`);
  const written = manifest(JSON.parse(readFileSync(here('package.json'), 'utf8')), operations.operations());
  writeFileSync(`${stage}/package.json`, `${JSON.stringify(written, null, 2)}\n`);
  const vsce = here('node_modules/@vscode/vsce/vsce');
  const out = here('build/cleveragents.vsix');
  execFileSync(process.execPath, [vsce, 'package', '--no-dependencies', '--allow-missing-repository', '-o', out], {
    cwd: stage, stdio: ['ignore', 'inherit', 'inherit'],
  });
}

const wanted = process.argv[2];
if (!['types', 'bundle', 'package'].includes(wanted)) {
  console.error('usage: node scripts/build.mjs types | bundle | package');
  process.exit(2);
}
operations.write();
if (wanted !== 'types') await bundle();
if (wanted === 'package') pack();
