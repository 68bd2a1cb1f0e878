-- How long the plugin keeps Neovim busy at a stretch: processor time between two waits of its loop, while plans are shown,
-- a file with many marks is edited, and events of another process come in. Prints figures; what is too long is for people
-- to say, since times tell something about the machine, too.
--
--   tests/editors/neovim/run blocking

local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local t = dofile(vim.fs.joinpath(here, 'world.lua'))
local FINDINGS = 400

vim.opt.runtimepath:prepend(vim.fs.normalize(here .. '/../../../editors/neovim'))
vim.g.agents_program = vim.env.AGENTS
local text = {}
for nth = 1, FINDINGS do
  vim.list_extend(text, { ('def f%d():'):format(nth), '    return f"hello"', '', '' })
end
t.write(t.file, table.concat(text, '\n'))
t.must({ 'git', 'commit', '-q', '-a', '-m', 'many' }, t.repo)
local plan = t.plan('trusted')
t.check('a plan with many changes is ready', t.standing() == 'execute/complete+apply_approval', t.standing())

-- what is measured -------------------------------------------------------------------------------------------------------

local function spent()
  local usage = vim.uv.getrusage()
  return (usage.utime.sec + usage.stime.sec) * 1000 + (usage.utime.usec + usage.stime.usec) / 1000
end
local longest, woke = 0, nil
local before, after = assert(vim.uv.new_prepare()), assert(vim.uv.new_check())
before:start(function()
  if woke then longest = math.max(longest, spent() - woke) end
end)
after:start(function() woke = spent() end)

-- What is done, until `done` holds; the longest stretch of it.
local function measure(what, act, done, more)
  longest, woke = 0, spent()
  act()
  longest = math.max(longest, spent() - woke)
  t.wait(what, done, more)
  t.say(('# %s: at most %.1f ms of processor time at a stretch'):format(what, longest))
end

local function has(text) return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'):find(text, 1, true) end
local marks = vim.api.nvim_create_namespace('agents.marks')
local buffer

vim.cmd.filetype('on')
vim.cmd.runtime('plugin/agents.lua')
vim.cmd.cd(t.repo)
measure(FINDINGS .. ' marks are drawn', function()
  vim.cmd.edit(vim.fn.fnameescape(t.file))
  buffer = vim.api.nvim_get_current_buf()
end, function() return #vim.api.nvim_buf_get_extmarks(buffer, marks, 0, -1, {}) >= FINDINGS end)
measure('and again after an edit', function()
  vim.api.nvim_buf_set_lines(buffer, 1, 2, false, { '    return None' })
  -- Told to whoever types; a script's edits are not.
  vim.api.nvim_exec_autocmds('TextChanged', { buffer = buffer })
end, function() return #vim.api.nvim_buf_get_extmarks(buffer, marks, 0, -1, {}) == FINDINGS - 1 end,
  function() return vim.api.nvim_buf_get_extmarks(buffer, marks, 0, 5, { details = true }) end)
measure('the plans are listed', function() vim.cmd('Agents') end, function() return has('ready to apply') end)
measure('a review opens', function() vim.cmd('Agents review') end, function()
  return vim.wo.winbar:find('0 of ' .. FINDINGS, 1, true)
end, function() return vim.wo.winbar end)
require('agents.review').close()
measure('a plan is cancelled in another terminal', function()
  vim.system({ vim.env.AGENTS, 'plan', 'cancel', plan, '--reason', 'enough' }, { cwd = t.repo })
end, function() return #vim.api.nvim_buf_get_extmarks(buffer, marks, 0, -1, {}) == 0 end)
t.say('Neovim: what keeps it busy was measured')
os.exit(0)
