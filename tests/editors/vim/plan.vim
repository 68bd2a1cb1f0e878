" A plan as a person meets it in Vim with ALE: what waits is among ALE's problems, code actions answer and apply, hover
" tells why. Writes a line per fact and leaves with 0 when all of them hold.
set nomore noswapfile hidden autoread shortmess=aoOtTIcF
let s:world = $AGENTS_WORLD
let s:repo = s:world . '/repo'

func s:Say(line)
  call writefile([a:line], s:world . '/facts', 'a')
endfunc

func s:GiveUp(what, more)
  call s:Say('FAILED - ' . a:what . ': ' . (type(a:more) == v:t_string ? a:more : string(a:more)))
  cquit
endfunc

func s:Check(what, holds, more = '')
  if !a:holds
    call s:GiveUp(a:what, a:more)
  endif
  call s:Say('ok - ' . a:what)
endfunc

" Waits until what is asked gives something; jobs and timers go on meanwhile.
func s:Wait(what, Ask, More = {-> ''})
  for _ in range(1200)
    let found = a:Ask()
    if !empty(found)
      call s:Say('ok - ' . a:what)
      return found
    endif
    sleep 50m
  endfor
  call s:GiveUp(a:what . ', not in time', a:More())
endfunc

" --- the world -------------------------------------------------------------------------------------------------------

func s:Must(command)
  let out = system('cd ' . s:repo . ' && ' . a:command)
  if v:shell_error
    call s:GiveUp(a:command, out)
  endif
  return out
endfunc

func s:Cli(...)
  return json_decode(s:Must($AGENTS . ' --format json ' . join(map(copy(a:000), {_, one -> shellescape(one)}))))['data']
endfunc

call mkdir(s:repo . '/app', 'p')
let s:file = s:repo . '/app/main.py'
call writefile(['import os', 'import sys', '', '', 'def main():', '    print(f"hello", sys.argv)'], s:file)
call s:Must('git init -q -b main && git config user.name "Ada Example" && git config user.email ada@example.invalid'
      \ . ' && git add -A && git commit -q -m start')
call writefile(['name: local/ruff', 'languages: [python]', 'command: "' . $RUFF . '"', 'args: [server]'], s:world . '/ruff.yaml')
call s:Cli('resource', 'add', 'git-checkout', 'local/repo', '--path', s:repo)
call s:Cli('project', 'create', 'local/app', '--resource', 'local/repo')
call s:Cli('lsp', 'add', '--config', s:world . '/ruff.yaml')
let s:plan = s:Cli('plan', 'use', 'builtin/fix-diagnostics', 'local/app', '--automation-profile', 'review')['plan_id']

func s:Standing()
  let status = s:Cli('plan', 'status', s:plan)
  let awaiting = type(status['awaiting']) == v:t_dict ? status['awaiting']['kind'] : 'nothing'
  return status['phase'] . '/' . status['state'] . '+' . awaiting
endfunc

call s:Check('a plan waits for a decision', s:Standing() ==# 'strategize/processing+decision', s:Standing())

" --- the editor: what the guide says to write into the vimrc ------------------------------------------------------------

packadd ale
filetype plugin on
call ale#linter#Define('python', {
      \ 'name': 'agents', 'lsp': 'stdio',
      \ 'executable': $AGENTS,
      \ 'command': '%e lsp serve --log-file ' . s:world . '/serve.log',
      \ 'project_root': {buffer -> ale#path#FindNearestDirectory(buffer, '.git')->fnamemodify(':h:h')},
      \ })
let g:ale_linters = {'python': ['agents']}
let g:ale_hover_to_preview = 1

execute 'edit ' . s:file
ALELint

func s:Waiting()
  return filter(copy(ale#engine#GetLoclist(bufnr('')))->filter({_, one -> one.text =~# 'Proposed'}), {_, one -> one.lnum > 0})
endfunc
let s:problems = s:Wait('what waits is among the problems', {-> s:Waiting()}, {-> ale#engine#GetLoclist(bufnr(''))})

" What a person types when ALE lists the actions: the number of the one whose title has these words.
func s:Choose(words)
  let s:words = a:words
  let s:offered = ''
  call cursor(a:words =~# '^Answer' ? s:Waiting()[0].lnum : 1, 1)
  ALECodeAction
  return s:Wait('code actions are offered: ' . a:words, {-> s:offered})
endfunc
runtime autoload/ale/util.vim
func! ale#util#Input(message, value)
  let s:offered = a:message
  for line in split(a:message, "\n")
    if line =~# s:words
      return matchstr(line, '^\d\+')
    endif
  endfor
  return ''
endfunc

func s:Rests()
  return s:Standing() !~# '+nothing$'
endfunc

" Takes what is proposed for each question, until the plan can be applied.
func s:Settle()
  for nth in range(12)
    call s:Wait('the plan rests', {-> s:Rests()}, {-> s:Standing()})
    if s:Standing() ==# 'execute/complete+apply_approval'
      return
    elseif s:Standing() =~# '+execute_approval$'
      call s:Cli('plan', 'execute', s:plan)
      continue
    endif
    call s:Wait('a question is shown', {-> s:Waiting()}, {-> s:Standing()})
    let before = map(s:Waiting(), {_, one -> one.text})
    call s:Choose('Answer .*(proposed)')
    call s:Wait('the answer is taken', {-> s:Rests() && (s:Standing() !~# '+decision$' || map(s:Waiting(), {_, one -> one.text}) != before)},
          \ {-> s:Standing() . ' ' . string(s:Waiting())})
  endfor
endfunc
call s:Settle()
call s:Check('all was answered in the editor', s:Standing() ==# 'execute/complete+apply_approval', s:Standing())

call cursor(6, 5)
ALEHover
func s:Preview()
  for window in range(1, winnr('$'))
    if getwinvar(window, '&previewwindow')
      return join(getbufline(winbufnr(window), 1, '$'), "\n")
    endif
  endfor
  return ''
endfunc
let s:told = s:Wait('hover shows something', {-> s:Preview()})
call s:Check('hover tells the decision that will change the line', s:told =~# 'F541', s:told)
pclose
call s:Check('the file is untouched', readfile(s:file)[0] ==# 'import os')

call s:Choose('Correct: choose "Leave alone"')
call s:Wait('the correction began', {-> s:Cli('plan', 'status', s:plan)['attempt'] == 2}, {-> s:Standing()})
call s:Settle()
let s:patch = s:Cli('plan', 'diff', s:plan)['files'][0]['patch']
call s:Check('another choice for the decision behind a line: its change is gone, the other is there',
      \ s:patch !~# '-import os' && s:patch =~# '+    print("hello"', s:patch)

call s:Choose('Apply plan')
call s:Wait('the plan is applied by a code action', {-> s:Standing() ==# 'apply/applied+nothing'}, {-> s:Standing()})
call s:Check('the file is as decided', readfile(s:file)[0] ==# 'import os' && readfile(s:file)[5] !~# 'f"', readfile(s:file))
call s:Say('Vim: all of this holds')
qall!
