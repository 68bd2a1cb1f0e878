import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findProgram } from '../src/model/find.ts';

const around = (files: readonly string[], more: object = {}) => ({
  configured: '', path: '/usr/bin:/opt/bin/', home: '/home/ada', windows: false,
  isProgram: (file: string) => files.includes(file), ...more,
});

test('the setting wins, and ~ is the home folder', () => {
  const found = findProgram(around(['/home/ada/x/agents', '/usr/bin/agents'], { configured: '~/x/agents' }));
  assert.deepEqual(found, { program: '/home/ada/x/agents' });
});

test('a setting that names no program is said, not passed over', () => {
  const found = findProgram(around(['/usr/bin/agents'], { configured: '/nowhere/agents' }));
  assert.ok('problem' in found && found.configured && found.problem.includes('/nowhere/agents'));
});

test('without a setting the PATH is searched in order, then where people install', () => {
  assert.deepEqual(findProgram(around(['/opt/bin/agents', '/home/ada/.cargo/bin/agents'])), { program: '/opt/bin/agents' });
  assert.deepEqual(findProgram(around(['/home/ada/.cargo/bin/agents'])), { program: '/home/ada/.cargo/bin/agents' });
  const windows = around(['C:\\t\\agents.exe'], { path: 'C:\\s;C:\\t', home: 'C:\\u', windows: true });
  assert.deepEqual(findProgram(windows), { program: 'C:\\t\\agents.exe' });
});

test('where there is none the problem says where it was looked for', () => {
  const found = findProgram(around([]));
  assert.ok('problem' in found && !found.configured && found.problem.includes('PATH'));
});
