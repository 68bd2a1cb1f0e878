--- `:checkhealth agents`.

local M = {}

function M.check()
  local health = vim.health
  health.start('CleverAgents')
  if vim.fn.has('nvim-0.11') == 1 then
    health.ok('Neovim ' .. tostring(vim.version()))
  else
    return health.error('Neovim 0.11 or newer is needed, this is ' .. tostring(vim.version()))
  end
  local command = require('agents').command({ '--format', 'json', 'version' })
  if vim.fn.executable(command[1]) == 0 then
    return health.error(('there is no program `%s`'):format(command[1]), {
      'install it: cargo install --path editors/cli --locked, in the checkout of CleverAgents',
      "or say where it is: vim.g.agents_program = '/path/to/agents'",
    })
  end
  local function ask(arguments)
    local done = vim.system(require('agents').command(vim.list_extend({ '--format', 'json' }, arguments)), { text = true }):wait(20000)
    local ok, document = pcall(vim.json.decode, done.stdout or '', { luanil = { object = true, array = true } })
    return ok and document or nil, done
  end
  local version, ran = ask({ 'version' })
  if not version then
    return health.error(('`%s` does not answer: %s'):format(command[1], vim.trim(ran.stderr or '')))
  end
  health.ok(('%s is version %s'):format(vim.fn.exepath(command[1]), vim.tbl_get(version, 'data', 'cli', 'version') or '?'))
  local clients = vim.lsp.get_clients({ name = 'agents' })
  if #clients > 0 then
    local buffers = vim.tbl_count(clients[1].attached_buffers)
    health.ok(('the server runs, for %d %s'):format(buffers, buffers == 1 and 'buffer' or 'buffers'))
  elseif vim.g.agents_enable == false then
    health.info('the server is not started by the plugin (vim.g.agents_enable is false)')
  else
    health.info('the server is not running: it starts when a file in a git checkout is opened')
  end
  local checks = ask({ 'diagnostics' })
  for _, one in ipairs(checks and vim.tbl_get(checks, 'data', 'checks') or {}) do
    local told = ({ ok = health.ok, warn = health.warn, error = health.error })[one.status] or health.info
    told(('%s: %s'):format(one.check, one.details))
  end
end

return M
