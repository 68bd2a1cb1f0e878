--- Marks of decisions at the ends of their lines, as virtual text. They come from the server's inlay hints and are drawn
--- here, so that they can be on while the hints of other servers are off.

local M = {}

local space = vim.api.nvim_create_namespace('agents.marks')

---@type table<integer, true>
local attached = {}

local function on() return require('agents').options.marks ~= false end

local function label(hint)
  if type(hint.label) == 'string' then return hint.label end
  return table.concat(vim.tbl_map(function(part) return part.value end, hint.label))
end

--- Asks for the marks of a buffer and draws them.
---@param buffer integer
function M.draw(buffer)
  local client = vim.lsp.get_clients({ name = 'agents', bufnr = buffer })[1]
  if not client or not vim.api.nvim_buf_is_loaded(buffer) then return end
  if not on() then return vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1) end
  local last = vim.api.nvim_buf_line_count(buffer)
  local params = {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    range = { start = { line = 0, character = 0 }, ['end'] = { line = last, character = 0 } },
  }
  client:request('textDocument/inlayHint', params, function(refused, hints)
    if refused or not vim.api.nvim_buf_is_loaded(buffer) then return end
    vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
    for _, hint in ipairs(hints or {}) do
      if hint.position.line < vim.api.nvim_buf_line_count(buffer) then
        vim.api.nvim_buf_set_extmark(buffer, space, hint.position.line, 0, {
          virt_text = { { '  ' .. vim.trim(label(hint)), 'AgentsMark' } },
          virt_text_pos = 'eol',
          hl_mode = 'combine',
        })
      end
    end
  end, buffer)
end

--- Draws all buffers anew.
function M.refresh()
  for buffer in pairs(attached) do
    if vim.api.nvim_buf_is_valid(buffer) then M.draw(buffer) else attached[buffer] = nil end
  end
end

---@param buffer integer
function M.attach(buffer)
  if attached[buffer] then return M.draw(buffer) end
  attached[buffer] = true
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'TextChanged', 'BufWritePost' }, {
    buffer = buffer,
    callback = function() M.draw(buffer) end,
  })
  M.draw(buffer)
end

--- Turns the marks on or off.
function M.toggle()
  require('agents').options.marks = not on()
  M.refresh()
  vim.notify('agents: marks are ' .. (on() and 'on' or 'off'))
end

return M
