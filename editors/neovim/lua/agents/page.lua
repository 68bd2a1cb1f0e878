--- Buffers that show something of ours: a list or a tree with keys, drawn again when something happened.

local client = require('agents.client')

local M = {}

local space = vim.api.nvim_create_namespace('agents.page')

---@class agents.Line
---@field parts { [1]: string, [2]?: string }[] texts with their highlights
---@field item? any what the line is about

---@class agents.Page
---@field name string shown as the buffer's name
---@field title string
---@field keys { [1]: string, [2]: string, [3]: fun(item: any, page: agents.Page) }[] key, what it does, how
---@field read fun(done: fun(lines: agents.Line[], title?: string)) reads what is shown now
---@field concerns? fun(event: agents.Event): boolean whether an event makes it be read again
---@field buffer? integer
---@field items? table<integer, any>

--- Reads and draws a page; the cursor stays at its item.
---@param page agents.Page
function M.draw(page)
  page.read(function(lines, title)
    if not vim.api.nvim_buf_is_valid(page.buffer) then return end
    local hints = vim.tbl_map(function(key) return key[1] .. ' ' .. key[2] end, page.keys)
    local all = { { parts = { { title or page.title, 'AgentsTitle' } } } }
    table.insert(all, { parts = { { table.concat(hints, '   '), 'AgentsKeys' } } })
    table.insert(all, { parts = {} })
    vim.list_extend(all, lines)
    page.items = {}
    local texts = {}
    for number, line in ipairs(all) do
      page.items[number] = line.item
      table.insert(texts, (table.concat(vim.tbl_map(function(part) return part[1] end, line.parts)):gsub('\n', ' ')))
    end
    vim.bo[page.buffer].modifiable = true
    vim.api.nvim_buf_set_lines(page.buffer, 0, -1, false, texts)
    vim.bo[page.buffer].modifiable = false
    vim.api.nvim_buf_clear_namespace(page.buffer, space, 0, -1)
    for number, line in ipairs(all) do
      local column = 0
      for _, part in ipairs(line.parts) do
        if part[2] then
          vim.api.nvim_buf_set_extmark(page.buffer, space, number - 1, column,
            { end_col = column + #part[1], hl_group = part[2] })
        end
        column = column + #part[1]
      end
    end
    -- The first time, the cursor goes to the first line that is about something.
    if not page.drawn then
      page.drawn = true
      local first = math.min(4, #all)
      for _, window in ipairs(vim.fn.win_findbuf(page.buffer)) do vim.api.nvim_win_set_cursor(window, { first, 0 }) end
    end
  end)
end

--- Opens a page in a window below, or goes to it where it is open.
---@param page agents.Page
function M.open(page)
  local name = 'agents://' .. page.name
  local known = vim.fn.bufnr('^' .. vim.fn.escape(name, '*?[]{}\\') .. '$')
  local window = known > 0 and vim.fn.win_findbuf(known)[1]
  if window then
    vim.api.nvim_set_current_win(window)
    return vim.api.nvim_exec_autocmds('User', { pattern = 'AgentsRefresh:' .. name })
  end
  -- From one page to the next in its window; elsewhere in a window below.
  if vim.bo.filetype == 'agents' then vim.cmd.enew() else vim.cmd('botright 15new') end
  page.buffer = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_name(page.buffer, name)
  vim.bo[page.buffer].buftype, vim.bo[page.buffer].bufhidden = 'nofile', 'wipe'
  vim.bo[page.buffer].swapfile, vim.bo[page.buffer].filetype = false, 'agents'
  vim.wo.wrap, vim.wo.number, vim.wo.relativenumber, vim.wo.signcolumn = false, false, false, 'no'
  vim.wo.cursorline = true
  local function item() return page.items and page.items[vim.api.nvim_win_get_cursor(0)[1]] end
  for _, key in ipairs(page.keys) do
    vim.keymap.set('n', key[1], function() key[3](item(), page) end, { buffer = page.buffer, nowait = true, desc = key[2] })
  end
  vim.keymap.set('n', 'q', '<cmd>close<cr>', { buffer = page.buffer, nowait = true, desc = 'close' })
  local refresh = vim.api.nvim_create_autocmd('User', {
    pattern = 'AgentsRefresh:' .. name,
    callback = function() M.draw(page) end,
  })
  client.listen(page, function(events)
    if not page.concerns or vim.iter(events):any(page.concerns) then M.draw(page) end
  end)
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = page.buffer,
    callback = function()
      client.listen(page, nil)
      vim.api.nvim_del_autocmd(refresh)
    end,
  })
  M.draw(page)
end

return M
