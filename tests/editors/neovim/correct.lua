-- A decision that somebody made otherwise, corrected in Neovim: the code action on the changed lines, what becomes of
-- the decision, and hover afterwards. Run by `run` next to this file.

local w = dofile(vim.fs.joinpath(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)), 'world.lua'))
local check, wait, hover, must = w.check, w.wait, w.hover, w.must

local plan = w.plan('trusted')
local rests = 'execute/complete+apply_approval'
check('a plan is executed and not applied', w.standing() == rests, w.standing())
w.edit()

-- What is offered over a line, of one kind.
local function offered(text, kind)
  local at = { line = w.line_with(text) - 1, character = 0 }
  local answers = w.client:request_sync('textDocument/codeAction', {
    textDocument = { uri = vim.uri_from_bufnr(w.buffer) },
    range = { start = at, ['end'] = at },
    context = { diagnostics = {}, only = { kind } },
  }, 60000, w.buffer)
  return answers and answers.result or {}
end

local function decisions()
  local found = {}
  local function walk(node)
    table.insert(found, node)
    for _, child in ipairs(node.children or {}) do walk(child) end
  end
  walk(w.cli('plan', 'tree', plan).tree)
  return found
end

local function strategy(rule)
  for _, decision in ipairs(decisions()) do
    if decision.type == 'strategy_choice' and decision.question:find(rule, 1, true) then return decision end
  end
  w.give_up('no strategy about ' .. rule, decisions())
end

-- before ---------------------------------------------------------------------------------------------------------------

local old, other = strategy('F401'), strategy('F541')
local told = hover('import os')
check('hover tells the decision that takes the line away', told:find('F401', 1, true) ~= nil, told)
local corrections = wait('corrections are offered on the changed line', function()
  local found = offered('import os', 'agents.correct')
  return #found > 0 and found
end)
local title
for _, action in ipairs(corrections) do
  check('each of them says so', vim.startswith(action.title, 'Correct: choose "'), action.title)
  check('what is chosen already is not offered', not action.title:find(old.chosen, 1, true), action.title)
  if action.title:find('eave', 1, true) then title = action.title end
end
check('to leave it alone is one of them', title ~= nil, corrections)

-- the code action ------------------------------------------------------------------------------------------------------

vim.api.nvim_win_set_cursor(0, { w.line_with('import os'), 0 })
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title == title end })
local new = wait('the decision is superseded', function()
  local now = strategy('F401')
  return now.decision_id ~= old.decision_id and now
end, w.standing)
check('by the choice of the code action', title:find(new.chosen, 1, true) ~= nil, { title, new })
wait('the plan is done again', function() return w.standing() == rests end, w.standing)
local explained = w.cli('plan', 'explain', old.decision_id)
check('the old one is kept and says what replaced it', explained.superseded_by == new.decision_id, explained)
check('it names its correction', explained.corrections[1].new_decision == new.decision_id
  and explained.corrections[1].state == 'completed', explained.corrections)
check('the attempt is the second', w.cli('plan', 'status', plan).attempt == 2)
local still = strategy('F541')
check('the other decision is untouched', still.decision_id == other.decision_id and vim.deep_equal(still.chosen, other.chosen), still)

-- afterwards -----------------------------------------------------------------------------------------------------------

wait('the lines show no change of it any more', function()
  return #offered('import os', 'agents.correct') == 0
end, function() return offered('import os', 'agents.correct') end)
told = hover('hello')
check('the other line still tells its decision', told:find('F541', 1, true) ~= nil, told)

-- And back, to a choice that changes the line: hover tells the new one.
w.cli('plan', 'correct', '--mode', 'revert', '--guidance', old.chosen, '--yes', new.decision_id)
check('it rests again', w.standing() == rests, w.standing())
local again = strategy('F401')
wait('the line has a decision behind it again', function()
  return #offered('import os', 'agents.explain') > 0
end)
told = hover('import os')
check('hover tells what was decided last', told:find('F401', 1, true) ~= nil, told)
check('and is a third decision', again.decision_id ~= old.decision_id and again.decision_id ~= new.decision_id, again)

local start = must({ 'git', 'rev-parse', 'HEAD' }, w.repo)
vim.api.nvim_win_set_cursor(0, { w.line_with('hello'), 0 })
w.act('Apply plan')
wait('the plan is applied', function() return w.standing() == 'apply/applied+nothing' end, w.standing)
check('as one commit', must({ 'git', 'rev-parse', 'HEAD^' }, w.repo) == start)
check('with what was decided last', w.read(w.file) == 'import sys\n\n\ndef main():\n    print("hello", sys.argv)\n', w.read(w.file))

w.client:stop()
wait('the server stops when it is asked', function() return w.exited end)
check('without an error', w.exited.code == 0, w.exited)
w.say('Neovim: all of this holds')
os.exit(0)
