-- A plan as a person meets it in Neovim: what waits is a diagnostic, code actions answer and apply, hover tells why.
-- Run by `run` next to this file; prints a line per fact and leaves with 0 when all of them hold.

local env = vim.env
local world, agents = assert(env.AGENTS_WORLD), assert(env.AGENTS)
local repo = world .. '/repo'
local file = repo .. '/app/main.py'
local LONG = 60000

-- facts ----------------------------------------------------------------------------------------------------------------

local function say(line) io.stdout:write(line, '\n') end

local function give_up(what, more)
  say('FAILED - ' .. what)
  if more ~= nil then say(type(more) == 'string' and more or vim.inspect(more)) end
  say('messages of the server: ' .. vim.inspect(_G.server_messages or {}))
  os.exit(1)
end

local function check(what, holds, more)
  if not holds then give_up(what, more) end
  say('ok - ' .. what)
end

-- Waits until `ask` gives something; what it gave.
local function wait(what, ask, more)
  local found
  vim.wait(LONG, function()
    found = ask()
    return found ~= nil and found ~= false
  end, 20)
  if not found then give_up(what .. ': not in time', more and more()) end
  say('ok - ' .. what)
  return found
end

-- the world ------------------------------------------------------------------------------------------------------------

local function run(cmd, cwd)
  local done = vim.system(cmd, { cwd = cwd or world, text = true }):wait(LONG)
  return done.code, done.stdout or '', done.stderr or ''
end

local function must(cmd, cwd)
  local code, out, err = run(cmd, cwd)
  if code ~= 0 then give_up(table.concat(cmd, ' '), out .. err) end
  return vim.trim(out)
end

local function cli(...)
  return vim.json.decode(must({ agents, '--format', 'json', ... }), { luanil = { object = true, array = true } }).data
end

local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local out = assert(io.open(path, 'w'))
  out:write(text)
  out:close()
end

local function read(path)
  local input = assert(io.open(path))
  local text = input:read('*a')
  input:close()
  return text
end

write(file, 'import os\nimport sys\n\n\ndef main():\n    print(f"hello", sys.argv)\n')
must({ 'git', 'init', '-q', '-b', 'main', repo })
must({ 'git', 'config', 'user.name', 'Ada Example' }, repo)
must({ 'git', 'config', 'user.email', 'ada@example.invalid' }, repo)
must({ 'git', 'add', '-A' }, repo)
must({ 'git', 'commit', '-q', '-m', 'start' }, repo)
write(world .. '/ruff.yaml', ('name: local/ruff\nlanguages: [python]\ncommand: "%s"\nargs: [server]\n'):format(env.RUFF))
write(world .. '/fix.yaml', [[
name: local/fix-diagnostics
description: Fix what the language servers report
definition_of_done: Nothing that has an agreed fix is left
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
]])
cli('resource', 'add', 'git-checkout', 'local/repo', '--path', repo)
cli('project', 'create', 'local/app', '--resource', 'local/repo')
cli('lsp', 'add', '--config', world .. '/ruff.yaml')
cli('action', 'create', '--config', world .. '/fix.yaml')
local plan = cli('plan', 'use', 'local/fix-diagnostics', 'local/app', '--automation-profile', 'review').plan_id
local function standing()
  local status = cli('plan', 'status', plan)
  return ('%s/%s+%s'):format(status.phase, status.state, status.awaiting and status.awaiting.kind or 'nothing')
end
check('a plan waits for a decision', standing() == 'strategize/processing+decision', standing())

-- the editor -----------------------------------------------------------------------------------------------------------

_G.server_messages = {}
vim.lsp.handlers['window/showMessage'] = function(_, params) table.insert(_G.server_messages, params.message) end
local happened = {}
vim.lsp.handlers['agents/event'] = function(_, params) table.insert(happened, params) end
-- One who always takes the first of what is offered.
vim.ui.select = function(items, _, choose) choose(items[1], 1) end

check('Neovim is 0.11 or newer', vim.fn.has('nvim-0.11') == 1, tostring(vim.version()))
vim.cmd.filetype('on')
local exited, id
-- As people have it in their settings: started for a file's type, shared by all of them.
vim.api.nvim_create_autocmd('FileType', {
  pattern = 'python',
  callback = function()
    id = vim.lsp.start({
      name = 'agents',
      cmd = { agents, 'lsp', 'serve', '--log-file', world .. '/serve.log' },
      root_dir = repo,
      on_exit = function(code, signal) exited = { code = code, signal = signal } end,
    })
  end,
})
vim.cmd.edit(vim.fn.fnameescape(file))
local buffer = vim.api.nvim_get_current_buf()
check('a server is started for the file', id ~= nil)
local client = wait('the server starts', function()
  local found = vim.lsp.get_client_by_id(id)
  return found and found.initialized and found
end)
check('it is attached', vim.lsp.buf_is_attached(buffer, id))
client:request_sync('agents/subscribe', vim.empty_dict(), LONG, buffer)

local function pending()
  return vim.tbl_filter(function(d) return d.source == 'cleveragents' end, vim.diagnostic.get(buffer))
end

local function line_with(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    if line:find(text, 1, true) then return number end
  end
  give_up('no line has ' .. text, vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
end

local function act(title)
  vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title:find(title, 1, true) ~= nil end })
end

-- The text of a floating window that `vim.lsp.buf.hover` opens over a line.
local function hover(text)
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then vim.api.nvim_win_close(window, true) end
  end
  local line = line_with(text)
  vim.api.nvim_win_set_cursor(0, { line, math.max(vim.fn.indent(line), 1) })
  vim.lsp.buf.hover()
  return wait('hover over ' .. text .. ' shows something', function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
      end
    end
  end)
end

-- what waits -----------------------------------------------------------------------------------------------------------

local first = wait('the decision that waits is a diagnostic', function() return pending()[1] end)
check('it is a warning that says what is proposed', first.severity == vim.diagnostic.severity.WARN
  and first.message:find('Proposed', 1, true), first)

-- Every decision is answered where it shows, until nothing waits any more. Strategize decides, Execute asks again.
local answered = 0
while standing() ~= 'execute/complete+apply_approval' do
  local waits = wait('something waits in this file', function() return pending()[1] end, standing)
  local decision = waits.message
  vim.api.nvim_win_set_cursor(0, { waits.lnum + 1, waits.col })
  act('(proposed)')
  answered = answered + 1
  wait('the answer takes the question away', function()
    local now = pending()[1]
    return now == nil or now.message ~= decision
  end, function() return { decision = decision, at = standing() } end)
  check('there is an end to the questions', answered < 12, decision)
  -- The plan goes on by itself until it asks again or is done.
  wait('the plan comes to rest', function() return standing():find('+nothing', 1, true) == nil end)
end
check('decisions were answered', answered >= 2, answered)
wait('no diagnostic is left', function() return #pending() == 0 end)
check('the editor was told what happened', #happened > 0)

-- executed, not applied ------------------------------------------------------------------------------------------------

check('the file is untouched', read(file):find('import os', 1, true) ~= nil)
local told = hover('hello')
check('hover tells the decision that will change the line', told:find('F541', 1, true) ~= nil, told)
told = hover('import os')
check('hover tells the decision that will take the line away', told:find('F401', 1, true) ~= nil, told)

vim.lsp.codelens.refresh({ bufnr = buffer })
local function lens(text)
  for _, one in ipairs(vim.lsp.codelens.get(buffer)) do
    if one.command and one.command.title:find(text, 1, true) then return one end
  end
end
local function lenses()
  return vim.tbl_map(function(one) return one.command and one.command.title end, vim.lsp.codelens.get(buffer))
end
wait('a lens offers to apply the plan', function() return lens('apply') end, lenses)
local line = line_with('hello') - 1
wait('a lens stands over the line that will change', function()
  for _, one in ipairs(vim.lsp.codelens.get(buffer)) do
    if one.range.start.line == line and one.command.title:find('decision', 1, true) then return one end
  end
end, lenses)

-- applied --------------------------------------------------------------------------------------------------------------

local start = must({ 'git', 'rev-parse', 'HEAD' }, repo)
vim.api.nvim_win_set_cursor(0, { line + 1, 0 })
act('Apply plan')
wait('the plan is applied', function() return standing() == 'apply/applied+nothing' end, standing)
check('as one commit', must({ 'git', 'rev-parse', 'HEAD^' }, repo) == start)
vim.cmd('edit!')
wait('it is attached again after a reload', function() return vim.lsp.buf_is_attached(buffer, id) end)
check('the buffer has the changes', vim.deep_equal(vim.api.nvim_buf_get_lines(buffer, 0, -1, false),
  { 'import sys', '', '', 'def main():', '    print("hello", sys.argv)' }), vim.api.nvim_buf_get_lines(buffer, 0, -1, false))
told = hover('hello')
check('hover on the changed line still tells its decision', told:find('F541', 1, true) ~= nil, told)
check('and that it is applied', told:find('not applied', 1, true) == nil, told)
told = hover('import sys')
check('hover tells the decision of the line that was deleted there', told:find('F401', 1, true) ~= nil, told)

client:stop()
wait('the server stops when it is asked', function() return exited end)
check('without an error', exited.code == 0, exited)
say('Neovim: all of this holds')
os.exit(0)
