-- A plan as a person meets it in Neovim: what waits is a diagnostic, code actions answer and apply, hover tells why.
-- Run by `run` next to this file; prints a line per fact and leaves with 0 when all of them hold.

local w = dofile(vim.fs.joinpath(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)), 'world.lua'))
local check, wait, act, hover, read, must = w.check, w.wait, w.act, w.hover, w.read, w.must
local standing, pending, line_with, repo, file = w.standing, w.pending, w.line_with, w.repo, w.file

w.plan('review')
check('a plan waits for a decision', standing() == 'strategize/processing+decision', standing())
local id = w.edit()
local buffer, client = w.buffer, w.client

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
check('the editor was told what happened', #w.happened > 0)

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
wait('the server stops when it is asked', function() return w.exited end)
check('without an error', w.exited.code == 0, w.exited)
w.say('Neovim: all of this holds')
os.exit(0)
