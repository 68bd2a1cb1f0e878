;;; plan.el --- A plan as a person meets it in Emacs -*- lexical-binding: t -*-

;; What waits is a Flymake diagnostic, code actions answer and apply, ElDoc tells why.
;; Run by `run' next to this file; prints a line per fact and leaves with 0 when all of them hold.

(package-initialize)
(require 'cl-lib)
(require 'eglot)
(require 'flymake)
(require 'seq)
(require 'subr-x)

(defconst world (getenv "AGENTS_WORLD"))
(defconst agents (getenv "AGENTS"))
(defconst repo (expand-file-name "repo" world))
(defconst file (expand-file-name "app/main.py" repo))

;;; Facts

(defun say (format &rest arguments)
  "Print a line made of FORMAT and ARGUMENTS."
  (princ (concat (apply #'format format arguments) "\n")))

(defun give-up (what &optional more)
  "End as failed: WHAT does not hold, MORE says what is there instead."
  (say "FAILED - %s" what)
  (when more (say "%s" more))
  (let ((log (expand-file-name "serve.log" world)))
    (when (file-exists-p log)
      (with-temp-buffer (insert-file-contents log) (say "%s" (buffer-string)))))
  (kill-emacs 1))

(defun check (what holds &optional more)
  "WHAT is a fact when HOLDS; MORE is shown when not."
  (unless holds (give-up what more))
  (say "ok - %s" what))

(defun wait (what ask &optional more)
  "Wait until ASK gives something, which is returned; WHAT names it, MORE tells what is there instead."
  (let ((end (+ (float-time) 60)) found)
    (while (not (or (setq found (funcall ask)) (> (float-time) end)))
      (accept-process-output nil 0.05))
    (unless found (give-up (concat what ": not in time") (and more (funcall more))))
    (say "ok - %s" what)
    found))

;;; The world

(defun must (directory &rest command)
  "Run COMMAND in DIRECTORY; what it printed."
  (let ((default-directory (file-name-as-directory directory)))
    (with-temp-buffer
      (let ((code (apply #'call-process (car command) nil (list t nil) nil (cdr command))))
        (unless (eq code 0) (give-up (string-join command " ") (buffer-string)))
        (string-trim (buffer-string))))))

(defun cli (&rest arguments)
  "What the command of ARGUMENTS answers."
  (let ((document (json-parse-string (apply #'must world agents "--format" "json" arguments)
                                     :object-type 'alist :null-object nil :false-object nil)))
    (alist-get 'data document)))

(defun write (path text)
  "Write TEXT to the file at PATH."
  (make-directory (file-name-directory path) t)
  (with-temp-file path (insert text)))

(write file "import os\nimport sys\n\n\ndef main():\n    print(f\"hello\", sys.argv)\n")
(must world "git" "init" "-q" "-b" "main" repo)
(must repo "git" "config" "user.name" "Ada Example")
(must repo "git" "config" "user.email" "ada@example.invalid")
(must repo "git" "add" "-A")
(must repo "git" "commit" "-q" "-m" "start")
(write (expand-file-name "ruff.yaml" world)
       (format "name: local/ruff\nlanguages: [python]\ncommand: \"%s\"\nargs: [server]\n" (getenv "RUFF")))
(write (expand-file-name "fix.yaml" world) "\
name: local/fix-diagnostics
description: Fix what the language servers report
definition_of_done: Nothing that has an agreed fix is left
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
")
(cli "resource" "add" "git-checkout" "local/repo" "--path" repo)
(cli "project" "create" "local/app" "--resource" "local/repo")
(cli "lsp" "add" "--config" (expand-file-name "ruff.yaml" world))
(cli "action" "create" "--config" (expand-file-name "fix.yaml" world))

(defconst plan
  (alist-get 'plan_id
             (cli "plan" "use" "local/fix-diagnostics" "local/app" "--automation-profile" "review")))

(defun standing ()
  "Where the plan stands, such as \"strategize/processing+decision\"."
  (let ((status (cli "plan" "status" plan)))
    (format "%s/%s+%s" (alist-get 'phase status) (alist-get 'state status)
            (or (alist-get 'kind (alist-get 'awaiting status)) "nothing"))))

(check "a plan waits for a decision" (equal (standing) "strategize/processing+decision") (standing))

;;; The editor

(setq eglot-sync-connect 30
      eglot-autoshutdown nil
      eglot-confirm-server-initiated-edits nil
      flymake-no-changes-timeout 0.1
      ;; Nothing asks a batch Emacs whether a file that changed on disk may be read again.
      revert-without-query '(".*")
      make-backup-files nil
      create-lockfiles nil)

(find-file file)
(defconst buffer (current-buffer))
(defconst command (list agents "lsp" "serve" "--log-file" (expand-file-name "serve.log" world)))
(eglot (list major-mode) (project-current nil repo) 'eglot-lsp-server command "python")
(defconst server (wait "a server is started for the file" #'eglot-current-server))
(check "it says who it is" (plist-get (eglot--server-info server) :name))

(defun waiting ()
  "The diagnostics of decisions that wait."
  ;; As ElDoc asks at each move. What came together with the answer to a request that Emacs waited for is only read when
  ;; something else comes.
  (jsonrpc-async-request server :textDocument/hover (eglot--TextDocumentPositionParams) :success-fn #'ignore)
  (flymake-start)
  (accept-process-output nil 0.05)
  (seq-filter (lambda (diagnostic) (string-match-p "Proposed" (flymake-diagnostic-text diagnostic)))
              (flymake-diagnostics)))

(defun actions (beginning end)
  "The code actions that the server offers between BEGINNING and END."
  (append (jsonrpc-request
           server :textDocument/codeAction
           (list :textDocument (eglot--TextDocumentIdentifier)
                 :range (list :start (eglot--pos-to-lsp-position beginning)
                              :end (eglot--pos-to-lsp-position end))
                 :context (list :diagnostics [])))
          nil))

(defun act (title beginning end)
  "Carry out the code action between BEGINNING and END whose title has TITLE."
  (let* ((offered (actions beginning end))
         (action (seq-find (lambda (one) (string-search title (plist-get one :title))) offered)))
    (unless action (give-up (format "no code action %s" title) (format "%S" offered)))
    ;; As Eglot itself does with what the person picked.
    (let ((command (plist-get action :command)))
      (if (stringp command)
          (eglot-execute-command server (intern command) (plist-get action :arguments))
        (eglot-execute-command server (intern (plist-get command :command))
                               (plist-get command :arguments))))))

(defun line-with (text)
  "Go to the line with TEXT; where it begins."
  (goto-char (point-min))
  (unless (search-forward text nil t) (give-up (format "no line has %s" text) (buffer-string)))
  (back-to-indentation)
  (point))

(defun hover (text)
  "What the server tells about the line with TEXT."
  (line-with text)
  (let* ((answer (wait (format "hover over %s shows something" text)
                       (lambda ()
                         (jsonrpc-request server :textDocument/hover
                                          (eglot--TextDocumentPositionParams)))))
         (contents (plist-get answer :contents)))
    (substring-no-properties (eglot--hover-info contents (plist-get answer :range)))))

;;; What waits

(defconst first-question (wait "the decision that waits is a diagnostic" (lambda () (car (waiting)))))
(check "it is a warning" (memq (flymake-diagnostic-type first-question) '(eglot-warning :warning))
       (format "%S" first-question))

;; Every decision is answered where it shows, until nothing waits any more. Strategize decides, Execute asks again.
(let ((answered 0))
  (while (not (equal (standing) "execute/complete+apply_approval"))
    (let* ((one (wait "something waits in this file" (lambda () (car (waiting))) #'standing))
           (text (flymake-diagnostic-text one)))
      (act "(proposed)" (flymake-diagnostic-beg one) (flymake-diagnostic-end one))
      (setq answered (1+ answered))
      (wait "the answer takes the question away"
            (lambda ()
              (let ((now (car (waiting)))) (not (and now (equal (flymake-diagnostic-text now) text)))))
            #'standing)
      (check "there is an end to the questions" (< answered 12) text)
      ;; The plan goes on by itself until it asks again or is done.
      (wait "the plan comes to rest" (lambda () (not (string-suffix-p "+nothing" (standing)))))))
  (check "decisions were answered" (>= answered 2) answered))
(wait "no diagnostic is left" (lambda () (null (waiting))))

;;; Executed, not applied

(check "the file is untouched" (progn (line-with "import os") t))
(let ((told (hover "hello")))
  (check "hover tells the decision that will change the line" (string-search "F541" told) told))
(let ((told (hover "import os")))
  (check "hover tells the decision that will take the line away" (string-search "F401" told) told))

;;; Applied

(defconst start (must repo "git" "rev-parse" "HEAD"))
(let ((here (line-with "hello"))) (act "Apply plan" here here))
(wait "the plan is applied" (lambda () (equal (standing) "apply/applied+nothing")) #'standing)
(check "as one commit" (equal (must repo "git" "rev-parse" "HEAD^") start))
(revert-buffer t t t)
(check "the buffer has the changes"
       (equal (buffer-string) "import sys\n\n\ndef main():\n    print(\"hello\", sys.argv)\n")
       (buffer-string))
(unless (eglot-managed-p) (eglot--maybe-activate-editing-mode))
(wait "it is attached again after a reload" #'eglot-managed-p)
(let ((told (hover "hello")))
  (check "hover on the changed line still tells its decision" (string-search "F541" told) told)
  (check "and that it is applied" (not (string-search "not applied" told)) told))

;; It says goodbye and does not wait for the answer to it, so there is no exit status to look at.
(eglot-shutdown server nil 20)
(check "the server stops when it is asked" (not (jsonrpc-running-p server)))
(say "Emacs %s: all of this holds" emacs-version)
(kill-emacs 0)
;;; plan.el ends here
