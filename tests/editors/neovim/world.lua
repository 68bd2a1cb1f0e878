-- A world with a plan in it, Neovim on a file of it, and the ways to look; each script next to this file begins with it.

local env = vim.env
local world, agents = assert(env.AGENTS_WORLD), assert(env.AGENTS)
local repo = world .. '/repo'
local file = repo .. '/app/main.py'
local LONG = 60000
local M = { world = world, repo = repo, file = file }

-- facts ----------------------------------------------------------------------------------------------------------------

function M.say(line) io.stdout:write(line, '\n') end

function M.give_up(what, more)
  M.say('FAILED - ' .. what)
  if more ~= nil then M.say(type(more) == 'string' and more or vim.inspect(more)) end
  M.say('messages of the server: ' .. vim.inspect(_G.server_messages or {}))
  os.exit(1)
end

function M.check(what, holds, more)
  if not holds then M.give_up(what, more) end
  M.say('ok - ' .. what)
end

-- Waits until `ask` gives something; what it gave.
function M.wait(what, ask, more)
  local found
  vim.wait(LONG, function()
    found = ask()
    return found ~= nil and found ~= false
  end, 20)
  if not found then M.give_up(what .. ': not in time', more and more()) end
  M.say('ok - ' .. what)
  return found
end

-- the world ------------------------------------------------------------------------------------------------------------

function M.run(cmd, cwd)
  local done = vim.system(cmd, { cwd = cwd or world, text = true }):wait(LONG)
  return done.code, done.stdout or '', done.stderr or ''
end

function M.must(cmd, cwd)
  local code, out, err = M.run(cmd, cwd)
  if code ~= 0 then M.give_up(table.concat(cmd, ' '), out .. err) end
  return vim.trim(out)
end

function M.cli(...)
  return vim.json.decode(M.must({ agents, '--format', 'json', ... }), { luanil = { object = true, array = true } }).data
end

function M.write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local out = assert(io.open(path, 'w'))
  out:write(text)
  out:close()
end

function M.read(path)
  local input = assert(io.open(path))
  local text = input:read('*a')
  input:close()
  return text
end

M.write(file, 'import os\nimport sys\n\n\ndef main():\n    print(f"hello", sys.argv)\n')
M.must({ 'git', 'init', '-q', '-b', 'main', repo })
M.must({ 'git', 'config', 'user.name', 'Ada Example' }, repo)
M.must({ 'git', 'config', 'user.email', 'ada@example.invalid' }, repo)
M.must({ 'git', 'add', '-A' }, repo)
M.must({ 'git', 'commit', '-q', '-m', 'start' }, repo)
M.write(world .. '/ruff.yaml', ('name: local/ruff\nlanguages: [python]\ncommand: "%s"\nargs: [server]\n'):format(env.RUFF))
M.write(world .. '/fix.yaml', [[
name: local/fix-diagnostics
description: Fix what the language servers report
definition_of_done: Nothing that has an agreed fix is left
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
]])
M.cli('resource', 'add', 'git-checkout', 'local/repo', '--path', repo)
M.cli('project', 'create', 'local/app', '--resource', 'local/repo')
M.cli('lsp', 'add', '--config', world .. '/ruff.yaml')
M.cli('action', 'create', '--config', world .. '/fix.yaml')

-- A plan of a profile, worked on until it rests.
function M.plan(profile)
  M.id = M.cli('plan', 'use', 'local/fix-diagnostics', 'local/app', '--automation-profile', profile).plan_id
  return M.id
end

function M.standing()
  local status = M.cli('plan', 'status', M.id)
  return ('%s/%s+%s'):format(status.phase, status.state, status.awaiting and status.awaiting.kind or 'nothing')
end

-- the editor -----------------------------------------------------------------------------------------------------------

M.happened = {}

-- Opens the file in an editor set up as people do it, and waits for the server.
function M.edit()
  _G.server_messages = {}
  vim.lsp.handlers['window/showMessage'] = function(_, params) table.insert(_G.server_messages, params.message) end
  vim.lsp.handlers['agents/event'] = function(_, params) table.insert(M.happened, params) end
  -- One who always takes the first of what is offered.
  vim.ui.select = function(items, _, choose) choose(items[1], 1) end

  M.check('Neovim is 0.11 or newer', vim.fn.has('nvim-0.11') == 1, tostring(vim.version()))
  vim.cmd.filetype('on')
  local id
  -- As people have it in their settings: started for a file's type, shared by all of them.
  vim.api.nvim_create_autocmd('FileType', {
    pattern = 'python',
    callback = function()
      id = vim.lsp.start({
        name = 'agents',
        cmd = { agents, 'lsp', 'serve', '--log-file', world .. '/serve.log' },
        root_dir = repo,
        on_exit = function(code, signal) M.exited = { code = code, signal = signal } end,
      })
    end,
  })
  vim.cmd.edit(vim.fn.fnameescape(file))
  M.buffer = vim.api.nvim_get_current_buf()
  M.check('a server is started for the file', id ~= nil)
  M.client = M.wait('the server starts', function()
    local found = vim.lsp.get_client_by_id(id)
    return found and found.initialized and found
  end)
  M.check('it is attached', vim.lsp.buf_is_attached(M.buffer, id))
  M.client:request_sync('agents/subscribe', vim.empty_dict(), LONG, M.buffer)
  return id
end

function M.pending()
  return vim.tbl_filter(function(d) return d.source == 'cleveragents' end, vim.diagnostic.get(M.buffer))
end

function M.line_with(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(M.buffer, 0, -1, false)) do
    if line:find(text, 1, true) then return number end
  end
  M.give_up('no line has ' .. text, vim.api.nvim_buf_get_lines(M.buffer, 0, -1, false))
end

function M.act(title)
  vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title:find(title, 1, true) ~= nil end })
end

-- The text of a floating window that `vim.lsp.buf.hover` opens over a line.
function M.hover(text)
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then vim.api.nvim_win_close(window, true) end
  end
  local line = M.line_with(text)
  vim.api.nvim_win_set_cursor(0, { line, math.max(vim.fn.indent(line), 1) })
  vim.lsp.buf.hover()
  return M.wait('hover over ' .. text .. ' shows something', function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
      end
    end
  end)
end

return M
