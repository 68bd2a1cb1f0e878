--- Letting a person choose, by `vim.ui.select`.

local client = require('agents.client')
local words = require('agents.words')

local M = {}

--- Asks which of several; one is taken without asking, none is said.
---@param items any[]
---@param options { prompt: string, format: (fun(item: any): string), none: string }
---@param done fun(item: any)
function M.one(items, options, done)
  if #items == 0 then return vim.notify('agents: ' .. options.none) end
  if #items == 1 then return done(items[1]) end
  vim.ui.select(items, { prompt = options.prompt, format_item = options.format }, function(item)
    if item then done(item) end
  end)
end

--- A plan by its id or its beginning, else chosen among those that fit.
---@param given? string
---@param prompt string
---@param fits fun(plan: agents.Plan): boolean
---@param done fun(plan: agents.Plan)
function M.plan(given, prompt, fits, done)
  client.call('plan.list', {}, function(found)
    if given then
      local same = vim.tbl_filter(function(plan) return vim.startswith(plan.id, given:upper()) end, found.plans)
      if #same ~= 1 then
        return client.fail(#same == 0 and ('there is no plan `%s`'):format(given)
          or ('`%s` is the start of several plans'):format(given))
      end
      return done(same[1])
    end
    M.one(vim.tbl_filter(fits, found.plans), {
      prompt = prompt,
      none = 'There is no plan for this. Make one: :Agents use',
      format = function(plan)
        return ('%s: %s (%s)'):format(words.plan(plan), words.standing(plan), words.ago(plan.created))
      end,
    }, done)
  end)
end

--- The decisions behind the line of the cursor.
---@param done fun(decisions: { decision_id: string, strategy_id?: string, plan_id: string, label: string }[])
function M.behind_line(done)
  local file = vim.api.nvim_buf_get_name(0)
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') .. (vim.bo.endofline and '\n' or '')
  client.call('plan.blame', { file = file, line = line, text = text }, function(found)
    local decisions, seen = {}, {}
    for _, one in ipairs(found.segments) do
      if not seen[one.decision_id] then
        seen[one.decision_id] = true
        local strategy = one.strategy
        table.insert(decisions, {
          decision_id = one.decision_id,
          strategy_id = strategy and strategy.decision_id,
          plan_id = one.plan_id,
          label = words.brief(strategy and strategy.chosen or one.chosen, 100),
        })
      end
    end
    done(decisions)
  end)
end

--- Asks for words that are not empty.
---@param prompt string
---@param done fun(text: string)
function M.words(prompt, done)
  vim.ui.input({ prompt = prompt .. ' ' }, function(text)
    text = text and vim.trim(text)
    if text and text ~= '' then done(text) end
  end)
end

--- Asks before something that cannot be taken back easily.
---@param question string
---@param yes string
---@param done fun()
function M.sure(question, yes, done)
  vim.ui.select({ yes, 'Not now' }, { prompt = question }, function(item)
    if item == yes then done() end
  end)
end

return M
