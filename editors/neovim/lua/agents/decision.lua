--- One decision: explain it, answer it, correct it.

local client = require('agents.client')
local pick = require('agents.pick')
local words = require('agents.words')

local M = {}

--- Shows a decision with its alternatives in a float.
---@param id string
function M.explain(id)
  client.content('agents:/decision/' .. id, function(document)
    local lines = vim.split(vim.trim(document.text), '\n')
    local buffer, window = vim.lsp.util.open_floating_preview(lines, 'markdown', {
      border = 'rounded',
      focus_id = 'agents-decision',
      max_width = 100,
      title = ' Decision (c correct, q close) ',
    })
    vim.api.nvim_set_current_win(window)
    vim.keymap.set('n', 'q', '<cmd>close<cr>', { buffer = buffer, nowait = true })
    vim.keymap.set('n', 'c', function()
      vim.api.nvim_win_close(window, true)
      M.correct(id, 'revert')
    end, { buffer = buffer, nowait = true })
  end)
end

--- Puts the options of a decision that waits to the person, and gives the plan what they say.
---@param plan? string
---@param id? string
function M.answer(plan, id)
  client.call('plan.pending', { plan = plan }, function(found)
    local waiting = vim.tbl_filter(function(one) return not id or one.decision_id == id end, found.decisions)
    pick.one(waiting, {
      prompt = 'Which decision?',
      none = 'No decision waits for an answer.',
      format = function(one) return words.brief(one.question, 120) end,
    }, function(one)
      local choices = vim.list_extend({}, one.options)
      table.sort(choices, function(a, b)
        if a.chosen ~= b.chosen then return a.chosen end
        return a.index < b.index
      end)
      table.insert(choices, { words = true })
      vim.ui.select(choices, {
        prompt = words.brief(one.question, 160),
        format_item = function(option)
          if option.words then return 'In your own words…' end
          local mark = option.chosen and (' (proposed%s)'):format(one.confidence and (', %.2f'):format(one.confidence) or '') or ''
          return words.brief(option.option, 100) .. mark
        end,
      }, function(option)
        if not option then return end
        local function give(text)
          client.call('plan.prompt', { plan = one.plan_id, decision = one.decision_id, guidance = text }, function(done)
            local next_one = done.awaiting and (' Next: ' .. words.brief(done.awaiting.question, 80)) or ''
            vim.notify(('Answered: %s.%s'):format(words.brief(done.guidance_added.option or text, 60), next_one))
          end)
        end
        if option.words then return pick.words('What shall be done instead?', give) end
        -- The number is clear where two options have the same words.
        give(tostring(option.index))
      end)
    end)
  end)
end

--- Corrects a decision with the person's words or by another of its alternatives, after what it changes was shown.
---@param id string
---@param mode 'revert'|'append'
function M.correct(id, mode)
  client.call('plan.explain', { decision = id }, function(one)
    local function go(guidance)
      client.call('plan.correct', { decision = id, mode = mode, guidance = guidance, dry_run = true }, function(preview)
        local undone = vim.tbl_get(preview, 'would_revert', 'decisions_to_invalidate') or {}
        local question = mode == 'append' and 'Append the fix?'
          or ('Correct it? %d %s taken back and done again.'):format(#undone, #undone == 1 and 'decision is' or 'decisions are')
        pick.sure(question, 'Yes', function()
          client.call('plan.correct', { decision = id, mode = mode, guidance = guidance }, function()
            vim.notify(('Corrected: %s'):format(words.brief(guidance, 80)))
          end)
        end)
      end)
    end
    if mode == 'append' then return pick.words('What shall be fixed on top of it?', go) end
    local others = vim.tbl_filter(function(option) return not option.chosen end, one.alternatives or {})
    table.insert(others, { words = true })
    vim.ui.select(others, {
      prompt = ('%s → %s. Instead:'):format(words.brief(one.question, 100), words.brief(one.chosen, 60)),
      format_item = function(option) return option.words and 'In your own words…' or words.brief(option.option, 100) end,
    }, function(option)
      if not option then return end
      if option.words then return pick.words('What shall be done instead?', go) end
      go(option.option)
    end)
  end)
end

return M
