--- The list of plans.

local client = require('agents.client')
local page = require('agents.page')
local words = require('agents.words')

local M = {}

local function on(verb)
  return function(plan)
    if plan then require('agents.verbs').run(verb, { plan.id }) end
  end
end

--- Opens the list.
function M.open()
  page.open({
    name = 'plans',
    title = 'Plans',
    keys = {
      { '<CR>', 'decisions', on('tree') },
      { 'x', 'answer', on('answer') },
      { 'd', 'review', on('review') },
      { 'e', 'execute', on('execute') },
      { 'a', 'apply', on('apply') },
      { 'C', 'cancel', on('cancel') },
      { 'n', 'new plan', function() require('agents.verbs').run('use', {}) end },
    },
    concerns = function(event) return vim.startswith(event.event_type, 'plan.') end,
    read = function(done)
      client.call('plan.list', {}, function(found)
        local lines = {}
        for _, plan in ipairs(found.plans) do
          local sign, highlight = words.sign(plan)
          table.insert(lines, {
            item = plan,
            parts = {
              { sign .. ' ', highlight },
              { words.plan(plan) },
              { '   ' },
              { words.standing(plan), highlight },
              { ('   %s   %s'):format(words.ago(plan.created), plan.short_id), 'AgentsKeys' },
            },
          })
        end
        if #lines == 0 then
          lines = {
            { parts = { { 'There are no plans yet.' } } },
            { parts = { { 'Press n to make one from an action, or read :help agents-start.', 'AgentsKeys' } } },
          }
        end
        done(lines)
      end)
    end,
  })
end

return M
