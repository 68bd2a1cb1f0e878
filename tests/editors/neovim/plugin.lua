-- The plugin as a person uses it: nothing set up, plans and decisions in windows, correct, review, marks, help.
-- Run by `run` next to this file; prints a line per fact and leaves with 0 when all of them hold.

local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local t = dofile(vim.fs.joinpath(here, 'world.lua'))
local check, wait = t.check, t.wait

local plugin = vim.fs.normalize(here .. '/../../../editors/neovim')
vim.opt.runtimepath:prepend(plugin)
vim.g.agents_program = vim.env.AGENTS
local plan = t.plan('trusted')
check('a plan is ready to apply', t.standing() == 'execute/complete+apply_approval', t.standing())

local told = {}
vim.notify = function(message) table.insert(told, message) end
-- What the person chooses and says, in order; a function sees what is offered.
local choices, inputs, offered = {}, {}, {}
vim.ui.select = function(items, options, choose)
  local shown = vim.tbl_map(options.format_item or tostring, items)
  table.insert(offered, { prompt = options.prompt, items = shown })
  local wanted = table.remove(choices, 1)
  if not wanted then t.give_up('nothing was to be chosen: ' .. options.prompt, shown) end
  for at, text in ipairs(shown) do
    if text:find(wanted, 1, true) then return choose(items[at], at) end
  end
  t.give_up(('%s is not offered'):format(wanted), shown)
end
vim.ui.input = function(options, done)
  local text = table.remove(inputs, 1)
  if not text then t.give_up('no words were to be asked for: ' .. options.prompt) end
  done(text)
end

-- started by itself ------------------------------------------------------------------------------------------------------

vim.cmd.filetype('on')
vim.cmd.runtime('plugin/agents.lua')
vim.cmd.cd(t.repo)
vim.cmd.edit(vim.fn.fnameescape(t.file))
local buffer = vim.api.nvim_get_current_buf()
local client = wait('the server is started without setup()', function()
  local found = vim.lsp.get_clients({ name = 'agents', bufnr = buffer })[1]
  return found and found.initialized and found
end)

local function lines(of) return vim.api.nvim_buf_get_lines(of or 0, 0, -1, false) end
local function has(of, text) return table.concat(lines(of), '\n'):find(text, 1, true) ~= nil end

-- marks ------------------------------------------------------------------------------------------------------------------

local marks = vim.api.nvim_create_namespace('agents.marks')
local function drawn()
  return vim.tbl_map(function(mark) return { line = mark[2], text = mark[4].virt_text[1][1] } end,
    vim.api.nvim_buf_get_extmarks(buffer, marks, 0, -1, { details = true }))
end
local both = wait('decisions are marked at the ends of their lines', function()
  local found = drawn()
  return #found == 2 and found
end, drawn)
check('with what is proposed', both[2].line == 5 and both[2].text:find('proposed 0.95: Ruff (F541)', 1, true), both)
check('and are no inlay hints of Neovim', client.server_capabilities.inlayHintProvider == nil)
vim.cmd('Agents marks')
wait('they can be turned off', function() return #drawn() == 0 end)
vim.cmd('Agents marks')
wait('and on again', function() return #drawn() == 2 end)

-- completion of the command ----------------------------------------------------------------------------------------------

local function completed(line) return vim.fn.getcompletion(line, 'cmdline') end
check('verbs are completed', vim.deep_equal(completed('Agents re'), { 'revert', 'review' }), completed('Agents re'))
check('plans are completed', vim.deep_equal(completed('Agents tree '), { plan:sub(1, 8) }), completed('Agents tree '))
check('actions are completed', vim.tbl_contains(completed('Agents use local/'), 'local/fix-diagnostics'))
check('profiles are completed', vim.tbl_contains(completed('Agents use local/fix-diagnostics local/app c'), 'cautious'))
check('operations are completed', vim.tbl_contains(completed('Agents run plan.g'), 'plan.guard'))
check('decisions are completed', #completed('Agents explain ') == 5, completed('Agents explain '))

-- lists and trees --------------------------------------------------------------------------------------------------------

vim.cmd('Agents')
wait('the plans are listed', function() return has(0, 'fix-diagnostics on app') and has(0, 'ready to apply') end, lines)
check('no id stands where a name serves', not has(0, plan))
check('its keys are shown', has(0, '<CR> decisions'))
vim.api.nvim_feedkeys(vim.keycode('<CR>'), 'xt', false)
local tree = wait('the tree of decisions opens', function()
  return vim.bo.filetype == 'agents' and has(0, 'Ruff (F541)') and vim.api.nvim_get_current_buf()
end, lines)
local window = vim.api.nvim_get_current_win()
local function to(text)
  vim.api.nvim_set_current_win(window)
  for number, line in ipairs(lines(tree)) do
    if line:find(text, 1, true) then return vim.api.nvim_win_set_cursor(window, { number, 0 }) end
  end
  t.give_up('no line has ' .. text, lines(tree))
end
to('finding of F541')
vim.api.nvim_feedkeys(vim.keycode('<CR>'), 'xt', false)
wait('a decision is explained in a float', function()
  return vim.api.nvim_win_get_config(0).relative ~= '' and has(0, 'Leave alone')
end, lines)
vim.api.nvim_feedkeys('q', 'xt', false)

-- correct ----------------------------------------------------------------------------------------------------------------

choices = { 'Leave alone', 'Yes' }
to('finding of F541')
vim.api.nvim_feedkeys('c', 'xt', false)
wait('the decision is corrected', function()
  local shown = t.cli('plan', 'tree', plan)
  return shown.summary.superseded > 0 and t.standing() == 'execute/complete+apply_approval'
end, function() return { told = told, offered = offered, at = t.standing() } end)
check('after it was said what is done again', offered[#offered].prompt:find('taken back and done again', 1, true), offered)
wait('the tree shows it, told by the server', function() return has(tree, '→ Leave alone') end, function() return lines(tree) end)
wait('and the mark is gone from the file', function() return #drawn() == 1 end, drawn)
local patch = t.cli('plan', 'diff', plan).files[1].patch
check('only what hung on it was taken back', patch:find('-import os', 1, true) and not patch:find('f"hello"', 1, true), patch)
vim.cmd('bwipeout ' .. tree)

-- review -----------------------------------------------------------------------------------------------------------------

vim.cmd('Agents review')
wait('the review shows before and after', function()
  local shown = vim.api.nvim_tabpage_list_wins(0)
  return #shown == 2 and has(vim.api.nvim_win_get_buf(shown[1]), 'import os')
    and has(vim.api.nvim_win_get_buf(shown[2]), 'import sys') and vim.wo[shown[2]].winbar:find('0 of 1 reviewed', 1, true)
end, function() return vim.tbl_map(function(w) return { lines(vim.api.nvim_win_get_buf(w)), vim.wo[w].winbar } end, vim.api.nvim_tabpage_list_wins(0)) end)
local after = vim.api.nvim_get_current_win()
vim.api.nvim_feedkeys('A', 'xt', false)
wait('a change is accepted', function() return vim.wo[after].winbar:find('1 of 1 reviewed', 1, true) end)
inputs = { 'os is used by a plugin' }
vim.api.nvim_feedkeys('X', 'xt', false)
wait('a change is rejected with a reason', function() return vim.wo[after].winbar:find('1 rejected', 1, true) end,
  function() return vim.wo[after].winbar end)
check('which is kept until it is sent', t.cli('plan', 'tree', plan).summary.superseded > 0)
local before = t.cli('plan', 'tree', plan, '--show-superseded').summary.superseded
vim.api.nvim_feedkeys('S', 'xt', false)
wait('it is sent as a correction of the choice behind it', function()
  return t.cli('plan', 'tree', plan, '--show-superseded').summary.superseded > before
end, function() return { told, t.cli('plan', 'tree', plan) } end)
wait('the plan comes to rest', function() return t.standing():find('+nothing', 1, true) == nil end)
require('agents.review').close()

-- what another process does ----------------------------------------------------------------------------------------------

vim.cmd('Agents')
local list = vim.api.nvim_get_current_buf()
t.cli('plan', 'cancel', plan, '--reason', 'enough')
wait('what a command in another terminal does is shown', function() return has(list, 'cancelled') end, function() return lines(list) end)
vim.cmd('bwipeout ' .. list)

-- entity files -----------------------------------------------------------------------------------------------------------

vim.cmd.edit(vim.fn.fnameescape(t.world .. '/fix.yaml'))
local yaml = vim.api.nvim_get_current_buf()
vim.lsp.start(vim.tbl_extend('force', vim.lsp.config.agents, { name = 'agents', root_dir = t.repo }), { bufnr = yaml })
wait('the server has the entity file', function() return vim.lsp.get_clients({ name = 'agents', bufnr = yaml })[1] end)
vim.api.nvim_buf_set_lines(yaml, -1, -1, false, { 'automation_profile: ' })
vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(yaml), 20 })
local items = client:request_sync('textDocument/completion',
  vim.lsp.util.make_position_params(0, client.offset_encoding), 20000, yaml).result
check('profiles are offered in an action', vim.iter(items):any(function(item) return item.label == 'cautious' end), items)

-- help -------------------------------------------------------------------------------------------------------------------

-- Where its tags may be written.
local help = t.world .. '/help'
t.write(help .. '/doc/agents.txt', t.read(plugin .. '/doc/agents.txt'))
vim.opt.runtimepath:prepend(help)
vim.cmd('helptags ' .. vim.fn.fnameescape(help .. '/doc'))
vim.cmd('help agents-review')
check('the help has its tags', vim.bo.filetype == 'help' and has(0, 'Reviewing'))
vim.cmd('checkhealth agents')
check('checkhealth finds the program', has(0, 'is version 0.1.0'), lines())
check('and the server', has(0, 'the server runs'), lines())
check('nothing was to be chosen in vain', #choices == 0 and #inputs == 0, { choices, inputs })
t.say('Neovim plugin: all of this holds')
os.exit(0)
