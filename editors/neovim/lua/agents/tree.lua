--- The decisions of a plan as a tree.

local client = require('agents.client')
local decision = require('agents.decision')
local page = require('agents.page')
local words = require('agents.words')

local M = {}

--- The nodes of a tree in order, each with how deep it is.
---@param node? agents.Decision
---@param depth? integer
---@param out? { node: agents.Decision, depth: integer, parent?: agents.Decision }[]
---@param parent? agents.Decision
function M.flat(node, depth, out, parent)
  out = out or {}
  if node then
    table.insert(out, { node = node, depth = depth or 0, parent = parent })
    for _, child in ipairs(node.children) do M.flat(child, (depth or 0) + 1, out, node) end
  end
  return out
end

local function line(node, depth)
  local sign, highlight, state = words.decision_sign(node)
  local confidence = node.confidence and ('  %.2f'):format(node.confidence) or ''
  local faded = node.status == 'superseded' and 'AgentsReplaced' or nil
  return {
    item = node,
    parts = {
      { ('  '):rep(depth) },
      { sign .. ' ', highlight },
      { words.brief(node.question, 90), faded },
      { ' → ' .. words.brief(node.chosen, 70), faded or 'AgentsMark' },
      { confidence, 'AgentsKeys' },
      { state ~= '' and '  ' .. state or '', highlight },
    },
  }
end

--- Opens the tree of a plan.
---@param plan agents.Plan
function M.open(plan)
  local superseded = false
  local function on(run)
    return function(node)
      if node then run(node) end
    end
  end
  local function verb(name)
    return function() require('agents.verbs').run(name, { plan.id }) end
  end
  page.open({
    name = 'tree/' .. words.unique(plan),
    title = words.plan(plan),
    keys = {
      { '<CR>', 'explain', on(function(node) decision.explain(node.decision_id) end) },
      { 'x', 'answer', on(function(node) decision.answer(plan.id, node.status == 'pending' and node.decision_id or nil) end) },
      { 'c', 'correct', on(function(node) decision.correct(node.decision_id, 'revert') end) },
      { 'A', 'append a fix', on(function(node) decision.correct(node.decision_id, 'append') end) },
      { 'd', 'review', verb('review') },
      { 'e', 'execute', verb('execute') },
      { 'a', 'apply', verb('apply') },
      { '-', 'all plans', function() require('agents.plans').open() end },
      { 's', 'replaced ones', function(_, shown)
        superseded = not superseded
        page.draw(shown)
      end },
    },
    concerns = function(event) return event.plan_id == plan.id end,
    read = function(done)
      client.call('plan.tree', { plan = plan.id, show_superseded = superseded }, function(found)
        client.call('plan.status', { plan = plan.id }, function(status)
          local lines = vim.tbl_map(function(one) return line(one.node, one.depth) end, M.flat(found.tree))
          if #lines == 0 then lines = { { parts = { { 'Nothing is decided yet.' } } } } end
          local waits = status.awaiting and status.awaiting.question
          local standing = words.standing({
            phase = status.phase, state = status.state, awaiting = vim.tbl_get(status, 'awaiting', 'kind'),
          } --[[@as agents.Plan]])
          done(lines, ('%s: %s%s'):format(words.plan(plan), standing, waits and (' - ' .. words.brief(waits, 100)) or ''))
        end)
      end)
    end,
  })
end

return M
