--- Reviewing what a plan changes, change by change, in two windows: before and after. A rejection is kept until it is
--- sent: then it becomes a correction of the decision behind the change. None is sent while a worker is at the plan.

local client = require('agents.client')
local decision = require('agents.decision')
local pick = require('agents.pick')
local tree = require('agents.tree')
local words = require('agents.words')

local M = {}

local space = vim.api.nvim_create_namespace('agents.review')

---@class agents.Change one change of one place
---@field key string what the change says, so that a mark outlives a refresh and no change that became another
---@field file string
---@field first integer 1-based line of the text after the change
---@field last integer before `first` where lines are only taken away
---@field decisions string[]
---@field reasons string[]
---@field insertions integer
---@field deletions integer

---@class agents.Mark
---@field as 'accepted'|'rejected'
---@field reason? string
---@field decision? string
---@field sent? boolean

--- The changes of a plan in the order of its files.
---@param diff table the result of `plan.diff`
---@return agents.Change[]
function M.changes(diff)
  local found, seen = {}, {}
  for _, file in ipairs(diff.patch_preview) do
    for _, hunk in ipairs(file.hunks) do
      local run
      -- The line of the new text that would come next.
      local next_line = 1
      for _, line in ipairs(hunk.lines) do
        if line.new then
          next_line = line.new
          break
        end
      end
      for _, line in ipairs(hunk.lines) do
        if line.kind == '+' or line.kind == '-' then
          if not run then
            run = { file = file.file, first = next_line, last = next_line - 1, texts = {}, decisions = {}, insertions = 0, deletions = 0 }
            run.hunk = hunk
            table.insert(found, run)
          end
          table.insert(run.texts, line.kind .. line.text)
          if line.decision_id and not vim.tbl_contains(run.decisions, line.decision_id) then
            table.insert(run.decisions, line.decision_id)
          end
          if line.kind == '+' then
            run.insertions, run.last, next_line = run.insertions + 1, line.new or run.last, (line.new or next_line) + 1
          else
            run.deletions = run.deletions + 1
          end
        else
          run = nil
          next_line = line.new and line.new + 1 or next_line
        end
      end
    end
  end
  for _, change in ipairs(found) do
    local digest = vim.fn.sha256(change.file .. '\n' .. table.concat(change.texts, '\n')):sub(1, 20)
    local nth = seen[digest] or 0
    seen[digest] = nth + 1
    -- The same change twice in a file is two changes.
    change.key = nth == 0 and digest or digest .. '-' .. nth
    if #change.decisions == 0 then change.decisions = change.hunk.decisions end
    change.reasons = {}
    for at, id in ipairs(change.hunk.decisions) do
      if vim.tbl_contains(change.decisions, id) then table.insert(change.reasons, change.hunk.reasons[at]) end
    end
    change.hunk, change.texts = nil, nil
  end
  return found
end

--- The decision that a person means who rejects a change: the choice that the change carries out, where there is one,
--- else the change's own decision.
---@param root? agents.Decision
---@param change agents.Change
---@return string?
function M.behind(root, change)
  local known, parents = {}, {}
  for _, one in ipairs(tree.flat(root)) do
    known[one.node.decision_id] = one.node
    parents[one.node.decision_id] = one.parent
  end
  -- What stands now in the place of a decision that was answered or corrected.
  local function standing(node)
    local next_one = node.superseded_by and known[node.superseded_by]
    return next_one and next_one ~= node and standing(next_one) or node
  end
  local function nearest(id, type)
    local at = known[id]
    while at do
      if at.type == type then return at end
      at = parents[at.decision_id]
    end
    for _, on in ipairs(known[id] and known[id].depends_on or {}) do
      if known[on] and known[on].type == type then return known[on] end
    end
  end
  for _, id in ipairs(change.decisions) do
    local choice = nearest(id, 'strategy_choice') or nearest(id, 'user_intervention')
    if choice then return standing(choice).decision_id end
  end
  return change.decisions[1]
end

-- what was thought of each change, kept between sessions -----------------------------------------------------------------

local function store(plan)
  local folder = vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'agents', 'reviews')
  return folder, vim.fs.joinpath(folder, plan .. '.json')
end

---@return table<string, agents.Mark>
local function load(plan)
  local _, path = store(plan)
  local file = io.open(path)
  if not file then return {} end
  local ok, marks = pcall(vim.json.decode, file:read('*a'))
  file:close()
  return ok and type(marks) == 'table' and marks or {}
end

local function save(plan, marks)
  local folder, path = store(plan)
  vim.fn.mkdir(folder, 'p')
  local file = assert(io.open(path .. '.new', 'w'))
  file:write(vim.json.encode(next(marks) and marks or vim.empty_dict()))
  file:close()
  assert(vim.uv.fs_rename(path .. '.new', path))
end

-- the review that is open ------------------------------------------------------------------------------------------------

---@class agents.Review
---@field plan agents.Plan
---@field diff table
---@field changes agents.Change[]
---@field marks table<string, agents.Mark>
---@field at integer the change that is shown
---@field tab integer
---@field before integer a window
---@field after integer a window
---@field due boolean rejections go out as soon as nobody works on the plan
local review

---@return { accepted: integer, rejected: integer, open: integer, total: integer }
function M.tally(changes, marks)
  local found = { accepted = 0, rejected = 0, open = 0, total = #changes }
  for _, change in ipairs(changes) do
    local as = marks[change.key] and marks[change.key].as or 'open'
    found[as] = found[as] + 1
  end
  return found
end

local function tally_words()
  local found = M.tally(review.changes, review.marks)
  local rejected = found.rejected > 0 and (', %d rejected'):format(found.rejected) or ''
  return ('%d of %d reviewed%s'):format(found.accepted + found.rejected, found.total, rejected)
end

--- Rejections that are still to be sent, one per decision: their reasons belong together.
---@return { decision: string, guidance: string, keys: string[] }[]
function M.to_send(changes, marks)
  local queue, by = {}, {}
  for _, change in ipairs(changes) do
    local mark = marks[change.key]
    if mark and mark.as == 'rejected' and not mark.sent and mark.decision then
      local entry = by[mark.decision]
      if not entry then
        entry = { decision = mark.decision, guidance = mark.reason, keys = {} }
        by[mark.decision] = entry
        table.insert(queue, entry)
      elseif not entry.guidance:find(mark.reason, 1, true) then
        entry.guidance = ('%s\n%s: %s'):format(entry.guidance, change.file, mark.reason)
      end
      table.insert(entry.keys, change.key)
    end
  end
  return queue
end

local KEYS = 'A accept  X reject  U unmark  K explain  S send  ]c [c  q close'

local LOOKS = { accepted = { '✓ accepted', 'AgentsAccepted' }, rejected = { '✗ rejected', 'AgentsRejected' } }

local function draw()
  if not review or not vim.api.nvim_win_is_valid(review.after) then return end
  local buffer = vim.api.nvim_win_get_buf(review.after)
  local shown = review.changes[review.at]
  vim.api.nvim_buf_clear_namespace(buffer, space, 0, -1)
  for nth, change in ipairs(review.changes) do
    if change.file == shown.file then
      local mark = review.marks[change.key]
      local look = mark and LOOKS[mark.as] or { '○ to review', 'AgentsOpen' }
      local text = ('change %d of %d: %s%s'):format(nth, #review.changes, look[1], mark and mark.sent and ', sent' or '')
      local lines = { { { '  ' .. text, look[2] }, { '  ' .. words.brief(table.concat(change.reasons, '; '), 90), 'AgentsKeys' } } }
      local row = math.min(math.max(change.first, 1), vim.api.nvim_buf_line_count(buffer)) - 1
      vim.api.nvim_buf_set_extmark(buffer, space, row, 0, { virt_lines = lines, virt_lines_above = row > 0 })
    end
  end
  vim.wo[review.before].winbar = 'before: ' .. shown.file:gsub('%%', '%%%%')
  vim.wo[review.after].winbar = ('%%#AgentsTitle#%s%%* %s   %%<%s'):format(
    words.plan(review.plan):gsub('%%', '%%%%'), tally_words(), '%#AgentsKeys#' .. KEYS .. '%*')
end

local function side(window, name, text, filetype)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(name, '*?[]{}\\') .. '$')
  if buffer < 0 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, name)
  end
  local lines = vim.split(text, '\n')
  if lines[#lines] == '' then table.remove(lines) end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable, vim.bo[buffer].bufhidden = false, 'hide'
  -- Syntax without a file type: no server is started for a text that is no file.
  if filetype and vim.bo[buffer].syntax == '' then vim.bo[buffer].syntax = filetype end
  vim.api.nvim_win_set_buf(window, buffer)
  local function map(key, run, what) vim.keymap.set('n', key, run, { buffer = buffer, nowait = true, desc = what }) end
  map(']c', function() M.go(1) end, 'Next change')
  map('[c', function() M.go(-1) end, 'Previous change')
  map('A', M.accept, 'Accept this change')
  map('X', M.reject, 'Reject this change')
  map('U', M.unmark, 'Take the mark off this change')
  map('K', M.explain, 'Explain the decision behind this change')
  map('S', M.send, 'Send the rejections')
  map('q', M.close, 'Close the review')
  return buffer
end

local function text_of(hash, path, done)
  if not hash then return done('') end
  client.content(('agents:/text/%s/%s'):format(hash, path), function(document) done(document.text) end)
end

local function show(at)
  local change = review.changes[at]
  local file = vim.iter(review.diff.files):find(function(one) return one.path == change.file end)
  if not file then return end
  review.at = at
  text_of(file.base_hash, file.path, function(before)
    text_of(file.sandbox_hash, file.path, function(after)
      if not review or not vim.api.nvim_win_is_valid(review.after) then return end
      local filetype = vim.filetype.match({ filename = file.path })
      side(review.before, ('agents://review/%s/before/%s'):format(words.unique(review.plan), file.old_path or file.path), before, filetype)
      side(review.after, ('agents://review/%s/after/%s'):format(words.unique(review.plan), file.path), after, filetype)
      for _, window in ipairs({ review.before, review.after }) do
        vim.api.nvim_win_call(window, function() vim.cmd.diffthis() end)
      end
      vim.api.nvim_set_current_win(review.after)
      local last = vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(review.after))
      vim.api.nvim_win_set_cursor(review.after, { math.min(math.max(change.first, 1), last), 0 })
      vim.cmd('normal! zvzz')
      -- Lines that are taken away above the first one stand above it.
      if change.first <= 1 then vim.fn.winrestview({ topline = 1, topfill = change.deletions }) end
      draw()
    end)
  end)
end

--- The next or the previous change, those without a mark first.
---@param by 1|-1
function M.go(by)
  if not review then return end
  local count = #review.changes
  local fallback
  for n = 1, count do
    local at = (review.at - 1 + by * n) % count + 1
    fallback = fallback or at
    if not review.marks[review.changes[at].key] then return show(at) end
  end
  show(fallback)
end

local function mark(change, value)
  review.marks[change.key] = value
  save(review.plan.id, review.marks)
  draw()
end

--- The change at the cursor, else the one that is shown.
local function current()
  if not review then return nil end
  local row = vim.api.nvim_get_current_win() == review.after and vim.api.nvim_win_get_cursor(0)[1]
  local shown = review.changes[review.at]
  for at, change in ipairs(review.changes) do
    if row and change.file == shown.file and change.first <= row and row <= math.max(change.first, change.last) then
      review.at = at
      return change
    end
  end
  return shown
end

function M.accept()
  local change = current()
  if not change then return end
  mark(change, { as = 'accepted' })
  M.go(1)
end

function M.unmark()
  local change = current()
  if change then mark(change, nil) end
end

function M.explain()
  local change = current()
  if not change then return end
  if change.decisions[1] then return decision.explain(change.decisions[1]) end
  vim.notify('agents: no decision is on record for this change: somebody edited the sandbox')
end

--- Asks why, and keeps the rejection until it is sent.
function M.reject()
  local change, plan = current(), review and review.plan.id
  if not change then return end
  pick.words('Why is this change wrong?', function(reason)
    client.call('plan.tree', { plan = plan, show_superseded = true }, function(found)
      if not review or review.plan.id ~= plan then return end
      local behind = M.behind(found.tree, change)
      mark(change, { as = 'rejected', reason = reason, decision = behind, sent = false })
      if not behind then vim.notify('agents: no decision is on record for this change, so there is nothing to correct') end
      M.go(1)
    end)
  end)
end

--- Sends the rejections as corrections: now, or as soon as nobody works on the plan.
function M.send()
  if not review then return end
  local queue = M.to_send(review.changes, review.marks)
  if #queue == 0 then return vim.notify('agents: there is no rejection to send') end
  client.call('plan.list', {}, function(found)
    local plan = vim.iter(found.plans):find(function(one) return one.id == review.plan.id end)
    if plan and not plan.awaiting and (plan.state == 'processing' or plan.state == 'queued') then
      review.due = true
      return vim.notify('agents: the plan is being worked on; the rejections are sent when it rests')
    end
    review.due = false
    -- One after another: a correction may replace what the next one is about.
    local first = queue[1]
    client.call('plan.correct', { decision = first.decision, mode = 'revert', guidance = first.guidance }, function()
      for _, key in ipairs(first.keys) do review.marks[key].sent = true end
      save(review.plan.id, review.marks)
      review.due = #queue > 1
      draw()
      vim.notify('agents: a rejection was sent as a correction; the plan does again what hangs on it')
    end)
  end)
end

function M.close()
  if not review then return end
  client.listen(M, nil)
  local tab = review.tab
  review = nil
  if vim.api.nvim_tabpage_is_valid(tab) then
    vim.api.nvim_set_current_tabpage(tab)
    pcall(vim.cmd.tabclose)
  end
end

local function follow(events)
  local touched = review and vim.iter(events):any(function(event) return event.plan_id == review.plan.id end)
  if not touched then return end
  client.call('plan.list', {}, function(found)
    local plan = review and vim.iter(found.plans):find(function(one) return one.id == review.plan.id end)
    if not plan or (not plan.awaiting and (plan.state == 'processing' or plan.state == 'queued')) then return end
    review.plan = plan
    client.call('plan.diff', { plan = plan.id }, function(diff)
      if not review or review.plan.id ~= plan.id then return end
      local key = review.changes[review.at].key
      local changes = M.changes(diff)
      if #changes == 0 then
        vim.notify('agents: the plan changes nothing any more')
        return M.close()
      end
      review.diff, review.changes, review.at = diff, changes, 1
      for at, change in ipairs(changes) do
        if change.key == key then review.at = at end
      end
      show(review.at)
      if review.due then M.send() end
    end)
  end)
end

--- Opens the review of a plan at its first change without a mark.
---@param plan agents.Plan
function M.open(plan)
  client.call('plan.diff', { plan = plan.id }, function(diff)
    local changes = M.changes(diff)
    if #changes == 0 then
      return vim.notify(('agents: %s changes nothing that can be reviewed'):format(words.plan(plan)))
    end
    if review then M.close() end
    vim.cmd.tabnew()
    local after = vim.api.nvim_get_current_win()
    vim.cmd('leftabove vsplit')
    local before = vim.api.nvim_get_current_win()
    review = {
      plan = plan, diff = diff, changes = changes, marks = load(plan.id), at = #changes, due = false,
      tab = vim.api.nvim_get_current_tabpage(), before = before, after = after,
    }
    client.listen(M, follow)
    M.go(1)
  end)
end

return M
