-- Starts the plugin: the command, the keys to map, and the language server for all files.
if vim.g.loaded_agents then return end
vim.g.loaded_agents = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify('agents: Neovim 0.11 or newer is needed', vim.log.levels.ERROR)
  return
end

local function verb(name)
  return function() require('agents.verbs').run(name, {}) end
end

vim.api.nvim_create_user_command('Agents', function(call)
  local words = call.fargs
  require('agents.verbs').run(table.remove(words, 1) or 'plans', words, call.range > 0 and { call.line1, call.line2 })
end, {
  nargs = '*',
  range = true,
  desc = 'Plans and decisions of CleverAgents',
  complete = function(lead, line) return require('agents.verbs').complete(lead, line) end,
})

for name, what in pairs({
  plans = 'List the plans',
  tree = 'Show the decisions of a plan',
  explain = 'Explain the decision behind this line',
  answer = 'Answer a decision that waits',
  correct = 'Correct the decision behind this line',
  append = 'Append a fix to the decision behind this line',
  review = 'Review what a plan changes',
  apply = 'Apply a plan',
  execute = 'Start the next phase of a plan',
  use = 'Make a plan from an action',
  marks = 'Turn the marks of decisions on or off',
}) do
  vim.keymap.set('n', ('<Plug>(agents-%s)'):format(name), verb(name), { desc = what })
end

local group = vim.api.nvim_create_augroup('agents', {})
vim.api.nvim_create_autocmd('ColorScheme', {
  group = group,
  callback = function() require('agents').highlights() end,
})
require('agents').highlights()

-- `vim.g.agents_enable = false` before this leaves the server to your own `vim.lsp.enable('agents')`.
if vim.g.agents_enable ~= false then vim.lsp.enable('agents') end
