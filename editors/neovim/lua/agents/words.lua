--- Names and short texts for people. No id is shown where a name serves.

local M = {}

---@class agents.Plan
---@field id string
---@field short_id string
---@field phase string
---@field state string
---@field awaiting? string
---@field action string
---@field project string
---@field created string

---@class agents.Decision a node of the tree
---@field type string
---@field decision_id string
---@field status 'active'|'pending'|'superseded'
---@field question string
---@field chosen string
---@field confidence? number
---@field depends_on? string[]
---@field artifacts string[]
---@field children agents.Decision[]

local WAITS = {
  confirm_strategize = 'may it start?',
  decision = 'a decision waits',
  execute_approval = 'may it execute?',
  spawn = 'may a child plan start?',
  retry = 'a step failed',
  restore = 'a step failed',
  validation_fix = 'a validation failed',
  strategy_revision = 'a validation failed',
  apply_approval = 'ready to apply',
  reversion = 'no longer fits the checkout',
  rollback = 'rolled back',
  budget = 'a limit is reached',
  recovery = 'was interrupted',
  language_server = 'a language server does not answer',
  child_plan = 'a child plan waits',
}

--- The first line of a text, at most `most` characters of it.
---@param text? string
---@param most? integer
---@return string
function M.brief(text, most)
  most = most or 80
  local line = vim.trim((text or ''):match('%S[^\n]*') or '')
  if vim.fn.strchars(line) <= most then return line end
  return vim.fn.strcharpart(line, 0, most - 1) .. '…'
end

local function last_part(name) return name:match('[^/]*$') end

--- What a plan is called: its action and its projects.
---@param plan { action: string, project?: string }
---@return string
function M.plan(plan)
  local projects = vim.tbl_map(last_part, vim.split(plan.project or '', ', ', { plain = true, trimempty = true }))
  local action = last_part(plan.action)
  return #projects > 0 and ('%s on %s'):format(action, table.concat(projects, ', ')) or action
end

--- What a plan is called where two of the same name must be told apart.
---@param plan agents.Plan
---@return string
function M.unique(plan) return ('%s (%s)'):format(M.plan(plan), plan.id:sub(1, 8)) end

--- Where a plan stands.
---@param plan agents.Plan
---@return string
function M.standing(plan)
  if plan.awaiting then return WAITS[plan.awaiting] or plan.awaiting:gsub('_', ' ') end
  return ({
    applied = 'applied',
    cancelled = 'cancelled',
    errored = plan.phase .. ' failed',
    constrained = 'cannot be applied',
    complete = plan.phase .. ' done',
    queued = plan.phase .. ' starts',
    processing = plan.phase .. ' runs',
  })[plan.state] or plan.state
end

--- A sign and its highlight; the words beside it say the same.
---@param plan agents.Plan
---@return string sign, string highlight
function M.sign(plan)
  if plan.state == 'applied' then return '✓', 'AgentsDecided' end
  if plan.state == 'cancelled' then return '⊘', 'AgentsReplaced' end
  if plan.state == 'errored' or plan.state == 'constrained' then return '✗', 'AgentsFailed' end
  if plan.awaiting then return '?', 'AgentsWaits' end
  if plan.state == 'complete' then return '?', 'AgentsWaits' end
  return '▸', 'AgentsRuns'
end

---@param decision agents.Decision
---@return string sign, string highlight, string words
function M.decision_sign(decision)
  if decision.status == 'pending' then return '?', 'AgentsWaits', 'waits for you' end
  if decision.status == 'superseded' then return '~', 'AgentsReplaced', 'replaced' end
  return '✓', 'AgentsDecided', ''
end

--- How long ago a moment was, in the largest unit that fits.
---@param moment string RFC 3339, UTC
---@return string
function M.ago(moment)
  local y, mo, d, h, mi, s = moment:match('(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not y then return '' end
  local now = os.time(os.date('!*t') --[[@as osdateparam]])
  local seconds = math.max(0, now - os.time({ year = y, month = mo, day = d, hour = h, min = mi, sec = s, isdst = false }))
  for _, unit in ipairs({ { 86400, 'd' }, { 3600, 'h' }, { 60, 'min' } }) do
    if seconds >= unit[1] then return ('%d %s ago'):format(math.floor(seconds / unit[1]), unit[2]) end
  end
  return 'now'
end

return M
