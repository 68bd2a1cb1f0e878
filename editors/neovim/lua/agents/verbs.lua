--- What `:Agents` can do, and the same for lenses and code actions.

local client = require('agents.client')
local decision = require('agents.decision')
local pick = require('agents.pick')
local words = require('agents.words')

local M = {}

---@class agents.Verb
---@field what string
---@field takes ('plan'|'decision'|'checkpoint'|'action'|'project'|'profile'|'file'|'operation'|'words')[]
---@field run fun(words: string[])

local function ended(plan) return plan.state == 'applied' or plan.state == 'cancelled' end
local function any() return true end
local function open(plan) return not ended(plan) end
local function applicable(plan)
  return plan.awaiting == 'apply_approval' or plan.awaiting == 'reversion' or plan.state == 'constrained'
    or (plan.phase == 'execute' and plan.state == 'complete')
end
--- What else is asked has an answer of its own; the rest is left by going on.
local answered = { 'decision', 'spawn', 'apply_approval', 'reversion' }
local function startable(plan)
  return (plan.awaiting ~= nil and plan.awaiting ~= vim.NIL and not vim.tbl_contains(answered, plan.awaiting))
    or plan.state == 'errored' or (plan.phase == 'strategize' and plan.state == 'complete')
end

--- A decision: the one that is named, else the one behind the line of the cursor.
local function a_decision(given, prompt, done)
  if given then return done(given:upper()) end
  pick.behind_line(function(found)
    pick.one(found, {
      prompt = prompt,
      none = 'No decision is behind this line.',
      format = function(one) return one.label end,
    }, function(one) done(one.strategy_id or one.decision_id) end)
  end)
end

local function moved(text)
  return function() vim.notify('agents: ' .. text) end
end

local function show_document(uri)
  client.content(uri, function(document)
    vim.cmd('botright new')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(document.text, '\n'))
    vim.bo.buftype, vim.bo.bufhidden, vim.bo.modifiable = 'nofile', 'wipe', false
    vim.bo.filetype = document.languageId
  end)
end

---@type table<string, agents.Verb>
M.verbs = {
  plans = {
    what = 'list the plans',
    takes = {},
    run = function() require('agents.plans').open() end,
  },
  tree = {
    what = 'the decisions of a plan as a tree',
    takes = { 'plan' },
    run = function(args) pick.plan(args[1], 'Decisions of which plan?', any, require('agents.tree').open) end,
  },
  status = {
    what = 'where a plan stands, its decisions, files and checkpoints',
    takes = { 'plan' },
    run = function(args)
      pick.plan(args[1], 'Which plan?', any, function(plan) show_document('agents:/plan/' .. plan.id) end)
    end,
  },
  diff = {
    what = 'what a plan changes, as a patch',
    takes = { 'plan' },
    run = function(args)
      pick.plan(args[1], 'Changes of which plan?', any, function(plan) show_document(('agents:/plan/%s/diff'):format(plan.id)) end)
    end,
  },
  review = {
    what = 'review what a plan changes, change by change',
    takes = { 'plan' },
    run = function(args)
      local function changed(plan) return open(plan) and plan.phase ~= 'strategize' end
      pick.plan(args[1], 'Review which plan?', changed, require('agents.review').open)
    end,
  },
  use = {
    what = 'make a plan from an action',
    takes = { 'action', 'project', 'profile' },
    run = function(args)
      local function make(action, project)
        local params = { action = action, projects = { project }, automation_profile = args[3] }
        client.call('plan.use', params, function() moved(('a plan of %s begins'):format(action))() end)
      end
      local function with_action(action)
        if args[2] then return make(action, args[2]) end
        client.call('project.list', {}, function(found)
          pick.one(found.projects, {
            prompt = 'On which project?',
            none = 'There is no project yet: agents project create',
            format = function(one) return one.name end,
          }, function(one) make(action, one.name) end)
        end)
      end
      if args[1] then return with_action(args[1]) end
      client.call('action.list', {}, function(found)
        pick.one(found.actions, {
          prompt = 'Which action?',
          none = 'There is no action yet: agents action create, or agents quickstart',
          format = function(one) return ('%s: %s'):format(one.name, words.brief(one.description, 80)) end,
        }, function(one) with_action(one.name) end)
      end)
    end,
  },
  execute = {
    what = "start a plan's next phase, or go on with it",
    takes = { 'plan' },
    run = function(args)
      pick.plan(args[1], 'Go on with which plan?', startable, function(plan)
        client.call('plan.execute', { plan = plan.id }, moved(words.plan(plan) .. ' goes on'))
      end)
    end,
  },
  apply = {
    what = "apply a plan's changes to the checkout",
    takes = { 'plan' },
    run = function(args)
      pick.plan(args[1], 'Apply which plan?', applicable, function(plan)
        client.call('plan.diff', { plan = plan.id }, function(diff)
          local sum = diff.diff_summary
          local size = ('%d %s, +%d -%d'):format(sum.files_changed, sum.files_changed == 1 and 'file' or 'files',
            sum.insertions, sum.deletions)
          pick.sure(('Apply %s (%s)?'):format(words.plan(plan), size), 'Apply', function()
            client.call('plan.apply', { plan = plan.id }, moved(words.plan(plan) .. ' is applied now'))
          end)
        end)
      end)
    end,
  },
  answer = {
    what = 'answer a decision that waits',
    takes = { 'plan', 'decision' },
    run = function(args) decision.answer(args[1], args[2] and args[2]:upper()) end,
  },
  explain = {
    what = 'explain a decision, or the one behind this line',
    takes = { 'decision' },
    run = function(args) a_decision(args[1], 'Explain which decision?', decision.explain) end,
  },
  correct = {
    what = 'correct a decision, or the one behind this line',
    takes = { 'decision' },
    run = function(args)
      a_decision(args[1], 'Correct which decision?', function(id) decision.correct(id, 'revert') end)
    end,
  },
  append = {
    what = 'append a fix to a decision, or the one behind this line',
    takes = { 'decision' },
    run = function(args)
      a_decision(args[1], 'Append a fix to which decision?', function(id) decision.correct(id, 'append') end)
    end,
  },
  rollback = {
    what = 'bring a plan back to a checkpoint',
    takes = { 'plan', 'checkpoint' },
    run = function(args)
      local function back(plan, checkpoint)
        local params = { plan = plan.id, checkpoint = checkpoint, dry_run = true }
        client.call('plan.rollback', params, function()
          pick.sure('Take back what was done since?', 'Take it back', function()
            client.call('plan.rollback', { plan = plan.id, checkpoint = checkpoint }, moved(words.plan(plan) .. ' is back there'))
          end)
        end)
      end
      pick.plan(args[1], 'Roll back which plan?', open, function(plan)
        if args[2] then return back(plan, args[2]) end
        client.call('plan.artifacts', { plan = plan.id }, function(found)
          pick.one(found.checkpoints, {
            prompt = 'To which checkpoint?',
            none = 'The plan has no checkpoints.',
            format = function(one) return ('%s (%s)'):format(one.label, words.ago(one.created)) end,
          }, function(one) back(plan, one.id) end)
        end)
      end)
    end,
  },
  revert = {
    what = 'take an applied plan back by a plan of its own',
    takes = { 'plan' },
    run = function(args)
      pick.plan(args[1], 'Take back which plan?', function(plan) return plan.state == 'applied' end, function(plan)
        client.call('plan.revert', { plan = plan.id }, moved('a plan that takes it back begins'))
      end)
    end,
  },
  cancel = {
    what = 'give a plan up for good',
    takes = { 'plan' },
    run = function(args)
      pick.plan(args[1], 'Give up which plan?', open, function(plan)
        pick.sure(('Give up %s? It cannot be taken up again.'):format(words.plan(plan)), 'Give it up', function()
          client.call('plan.cancel', { plan = plan.id }, moved(words.plan(plan) .. ' is cancelled'))
        end)
      end)
    end,
  },
  marks = {
    what = 'turn the marks at the ends of lines on or off',
    takes = {},
    run = function() require('agents.marks').toggle() end,
  },
  run = {
    what = 'run any operation: its name, then its parameters as JSON',
    takes = { 'operation', 'words' },
    run = function(args)
      if not args[1] then return client.fail('say which operation: :Agents run plan.guard {"plan": "..."}') end
      local text = table.concat(args, ' ', 2)
      local ok, params = pcall(vim.json.decode, text == '' and '{}' or text)
      if not ok or type(params) ~= 'table' then
        return client.fail(('`%s` is no JSON object, such as {"plan": "01KD..."}'):format(text))
      end
      client.call(args[1], params, function(result)
        vim.cmd('botright new')
        vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(vim.inspect(result), '\n'))
        vim.bo.buftype, vim.bo.bufhidden, vim.bo.filetype = 'nofile', 'wipe', 'lua'
      end)
    end,
  },
}

--- Carries a verb out.
---@param name string
---@param args string[]
function M.run(name, args)
  local found = M.verbs[name]
  if not found then
    local names = vim.tbl_keys(M.verbs)
    table.sort(names)
    return client.fail(('there is no `%s`: %s'):format(name, table.concat(names, ', ')))
  end
  found.run(args or {})
end

local function first_of(operation, params, list, name)
  local found = client.ask(operation, params)
  return vim.tbl_map(function(one) return one[name] end, found and found[list] or {})
end

--- What each kind of argument can be, given the arguments before it.
local COMPLETE = {
  plan = function() return first_of('plan.list', {}, 'plans', 'short_id') end,
  action = function() return first_of('action.list', {}, 'actions', 'name') end,
  project = function() return first_of('project.list', {}, 'projects', 'name') end,
  profile = function() return first_of('automation_profile.list', {}, 'profiles', 'name') end,
  checkpoint = function(before)
    return before[1] and first_of('plan.artifacts', { plan = before[1] }, 'checkpoints', 'id') or {}
  end,
  decision = function(before)
    local found = {}
    local plans = before[1] and { before[1] } or first_of('plan.list', {}, 'plans', 'id')
    for _, plan in ipairs(vim.list_slice(plans, 1, 5)) do
      local shown = client.ask('plan.tree', { plan = plan })
      for _, one in ipairs(require('agents.tree').flat(shown and shown.tree)) do table.insert(found, one.node.decision_id) end
    end
    return found
  end,
  operation = function()
    local server = client.get()
    local commands = server and vim.tbl_get(server.server_capabilities, 'executeCommandProvider', 'commands') or {}
    return vim.tbl_map(function(name) return (name:gsub('^agents%.', '')) end, commands)
  end,
}

--- Completion of `:Agents`: the verbs, then what each of them takes.
---@param lead string
---@param line string up to the cursor
---@return string[]
function M.complete(lead, line)
  local args = vim.split(vim.trim(line:sub(1, #line - #lead)), '%s+', { trimempty = true })
  table.remove(args, 1)
  local choices
  if #args == 0 then
    choices = vim.tbl_keys(M.verbs)
    table.sort(choices)
  else
    local taken = M.verbs[table.remove(args, 1)]
    local kind = taken and COMPLETE[taken.takes[#args + 1]]
    choices = kind and kind(args) or {}
  end
  return vim.tbl_filter(function(one) return vim.startswith(one:lower(), lead:lower()) end, choices)
end

--- Lenses and code actions of the server open what the plugin has for them.
function M.take_over()
  local function with(run)
    return function(command) run(vim.tbl_get(command, 'arguments', 1) or {}) end
  end
  local function verb(name)
    return with(function(params) M.run(name, { params.plan }) end)
  end
  vim.lsp.commands['agents.plan.explain'] = with(function(params) decision.explain(params.decision) end)
  vim.lsp.commands['agents.plan.diff'] = verb('review')
  vim.lsp.commands['agents.plan.status'] = verb('tree')
  vim.lsp.commands['agents.decision.answer'] = with(function(params) decision.answer(nil, params.decision) end)
  vim.lsp.commands['agents.plan.apply'] = verb('apply')
  vim.lsp.commands['agents.plan.revert'] = verb('revert')
  vim.lsp.commands['agents.plan.rollback'] = with(function(params) M.run('rollback', { params.plan, params.checkpoint }) end)
end

return M
