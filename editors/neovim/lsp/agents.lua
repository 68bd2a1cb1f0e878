--- The language server of CleverAgents, for `vim.lsp.enable('agents')`. Settings of your own go over it with
--- `vim.lsp.config('agents', { ... })`.

---@type vim.lsp.Config
return {
  cmd = function(dispatchers)
    return vim.lsp.rpc.start(require('agents').command({ 'lsp', 'serve' }), dispatchers)
  end,
  -- For files of a git checkout; a buffer that is no file starts nothing.
  root_dir = function(buffer, start)
    local name = vim.api.nvim_buf_get_name(buffer)
    local root = name ~= '' and vim.bo[buffer].buftype == '' and vim.fs.root(buffer, '.git')
    if root then start(root) end
  end,
  -- Neovim draws lenses when it is told to; this lets the server tell it.
  capabilities = { workspace = { codeLens = { refreshSupport = true } } },
  handlers = require('agents.client').handlers,
  on_init = function(client) require('agents.client').on_init(client) end,
  on_attach = function(client, buffer) require('agents.client').on_attach(client, buffer) end,
}
