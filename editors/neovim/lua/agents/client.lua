--- The language client: finds it, asks it, and hands on what it is told.

local M = {}

--- What runs and what waits, kept up to date by events.
M.summary = ''

---@class agents.Event
---@field sequence integer
---@field event_type string
---@field plan_id? string
---@field details table

---@type table<any, fun(events: agents.Event[])>
local listeners = {}

--- How long events are gathered before anything is drawn, in milliseconds.
local GATHER = 60

---@type agents.Event[]
local gathered = {}
local timer

--- Calls back with what happened to plans, gathered; `key` names the listener.
---@param key any
---@param listener? fun(events: agents.Event[]) none ends it
function M.listen(key, listener) listeners[key] = listener end

local function tell()
  timer = nil
  local events = gathered
  gathered = {}
  M.count()
  for _, listener in pairs(vim.deepcopy(listeners)) do
    local ok, why = pcall(listener, events)
    if not ok then vim.notify('agents: ' .. why, vim.log.levels.ERROR) end
  end
end

M.handlers = {
  ['agents/event'] = function(_, event)
    table.insert(gathered, event)
    if not timer then timer = vim.defer_fn(tell, GATHER) end
  end,
  ['workspace/codeLens/refresh'] = function(_, _, context)
    local client = vim.lsp.get_client_by_id(context.client_id)
    for buffer in pairs(client and client.attached_buffers or {}) do
      if vim.api.nvim_buf_is_loaded(buffer) then vim.lsp.codelens.refresh({ bufnr = buffer }) end
    end
    return vim.NIL
  end,
  ['workspace/inlayHint/refresh'] = function()
    require('agents.marks').refresh()
    return vim.NIL
  end,
}

---@param client vim.lsp.Client
function M.on_init(client)
  -- Our marks are drawn by the plugin, so that turning them off leaves those of other servers on.
  client.server_capabilities.inlayHintProvider = nil
  client:notify('workspace/didChangeConfiguration', {
    settings = { cleveragents = { notifications = require('agents').options.notifications ~= false } },
  })
  client:request('agents/subscribe', vim.empty_dict(), function() M.count() end)
  require('agents.verbs').take_over()
end

---@param client vim.lsp.Client
---@param buffer integer
function M.on_attach(client, buffer)
  require('agents.marks').attach(buffer)
  if client:supports_method('textDocument/codeLens') then vim.lsp.codelens.refresh({ bufnr = buffer }) end
end

--- The client of the present buffer, else any; one is started where there is none.
---@return vim.lsp.Client?
function M.get()
  local found = vim.lsp.get_clients({ name = 'agents', bufnr = 0 })[1] or vim.lsp.get_clients({ name = 'agents' })[1]
  if found then return found end
  local config = vim.lsp.config['agents']
  if not config then return nil end
  config = vim.tbl_extend('force', config, { name = 'agents', root_dir = vim.fs.root(0, '.git') or vim.fn.getcwd() })
  local id = vim.lsp.start(config, { attach = false })
  return id and vim.lsp.get_client_by_id(id)
end

local function wait_for_start(client)
  return client and vim.wait(10000, function() return client.initialized or client:is_stopped() end, 10)
    and not client:is_stopped()
end

---@param message string
function M.fail(message) vim.notify('agents: ' .. message, vim.log.levels.ERROR) end

--- Carries an operation out and calls back with its result. What is refused is shown to the person.
---@param operation string such as `plan.status`
---@param params? table
---@param done? fun(result: table)
function M.call(operation, params, done)
  local client = M.get()
  if not wait_for_start(client) then return M.fail('the server does not start: see :checkhealth agents') end
  ---@cast client vim.lsp.Client
  local request = {
    command = 'agents.' .. operation,
    arguments = { params and next(params) and params or vim.empty_dict() },
  }
  client:request('workspace/executeCommand', request, function(refused, result)
    if refused then
      local hints = vim.tbl_get(refused, 'data', 'suggestions') or {}
      local more = #hints > 0 and ('\n' .. table.concat(hints, '\n')) or ''
      return M.fail(refused.message .. more)
    end
    if done then done(M.plain(result)) end
  end)
end

--- The same for completion, which cannot wait: nothing when it takes too long.
---@param operation string
---@param params? table
---@return table?
function M.ask(operation, params)
  local client = M.get()
  if not (client and client.initialized) then return nil end
  local request = {
    command = 'agents.' .. operation,
    arguments = { params and next(params) and params or vim.empty_dict() },
  }
  local answer = client:request_sync('workspace/executeCommand', request, 1000)
  return answer and answer.result and M.plain(answer.result)
end

--- A virtual document.
---@param uri string
---@param done fun(document: { text: string, languageId: string })
function M.content(uri, done)
  local client = M.get()
  if not wait_for_start(client) then return M.fail('the server does not start: see :checkhealth agents') end
  ---@cast client vim.lsp.Client
  client:request('agents/content', { uri = uri }, function(refused, document)
    if refused then return M.fail(refused.message) end
    done(document)
  end)
end

--- Without `vim.NIL`, which is neither false nor nothing.
function M.plain(value)
  if value == vim.NIL then return nil end
  if type(value) ~= 'table' then return value end
  local out = {}
  for key, one in pairs(value) do out[key] = M.plain(one) end
  return out
end

--- Counts what runs and what waits.
function M.count()
  if not vim.lsp.get_clients({ name = 'agents' })[1] then return end
  M.call('plan.list', {}, function(found)
    local runs, waits = 0, 0
    for _, plan in ipairs(found.plans) do
      if plan.state ~= 'applied' and plan.state ~= 'cancelled' then
        local running = not plan.awaiting and (plan.state == 'processing' or plan.state == 'queued')
        if running then runs = runs + 1 else waits = waits + 1 end
      end
    end
    local parts = {}
    if runs > 0 then table.insert(parts, runs == 1 and '1 runs' or runs .. ' run') end
    if waits > 0 then table.insert(parts, waits == 1 and '1 waits' or waits .. ' wait') end
    M.summary = #parts > 0 and 'agents: ' .. table.concat(parts, ', ') or ''
    vim.cmd.redrawstatus({ bang = true })
  end)
end

return M
