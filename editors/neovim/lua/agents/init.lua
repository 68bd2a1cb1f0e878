--- CleverAgents in Neovim: plans, decisions, reviews. Works without `setup()`.

---@class agents.Options
---@field program? string|string[] the program, found on PATH unless given
---@field marks? boolean show decisions at the ends of their lines; on unless `false`
---@field notifications? boolean messages of plans that wait or end; on unless `false`

local M = {}

---@type agents.Options
M.options = { marks = true, notifications = true }

--- Changes options; there is no need to call it.
---@param options? agents.Options
function M.setup(options) M.options = vim.tbl_extend('force', M.options, options or {}) end

--- The program with arguments.
---@param arguments string[]
---@return string[]
function M.command(arguments)
  local program = M.options.program or vim.g.agents_program or 'agents'
  local command = type(program) == 'table' and vim.deepcopy(program) or { program }
  return vim.list_extend(command, arguments)
end

--- Links the plugin's highlights to groups that every colour scheme has; yours come first.
function M.highlights()
  for name, link in pairs({
    AgentsMark = 'LspInlayHint',
    AgentsDecided = 'DiagnosticOk',
    AgentsWaits = 'DiagnosticWarn',
    AgentsFailed = 'DiagnosticError',
    AgentsRuns = 'DiagnosticInfo',
    AgentsReplaced = 'Comment',
    AgentsTitle = 'Title',
    AgentsKeys = 'Comment',
    AgentsAccepted = 'DiagnosticOk',
    AgentsRejected = 'DiagnosticError',
    AgentsOpen = 'DiagnosticInfo',
  }) do
    vim.api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

--- What runs and what waits, for a statusline: `agents: 1 runs, 2 wait`; empty when there is nothing.
---@return string
function M.statusline() return require('agents.client').summary end

return M
