@WF-10
Feature: Format fifteen packages of one repository without anybody watching
  A script in bash makes a plan for each package and lets them run to the end side by side. With nobody at the keyboard
  its exit codes are right and its JSON can be read by another program. Fourteen packages are formatted, each by a commit
  of its own that loses nothing of the others; one cannot be, and says why.

  A scripted actor stands for the model; the validation is the real ruff. The packages are folders of one checkout, which
  is one resource of all the projects: a folder inside a checkout is no resource of its own.

  Scenario: Fourteen succeed, one fails, and the lists say so
    Given the repository "monorepo" with
      | packages/auth/main.py      | x={'a':1}\n   |
      | packages/billing/main.py   | x={'a':1}\n   |
      | packages/cache/main.py     | x={'a':1}\n   |
      | packages/cli/main.py       | x={'a':1}\n   |
      | packages/core/main.py      | x={'a':1}\n   |
      | packages/db/main.py        | x={'a':1}\n   |
      | packages/events/main.py    | x={'a':1}\n   |
      | packages/http/main.py      | x={'a':1}\n   |
      | packages/jobs/main.py      | x={'a':1}\n   |
      | packages/mail/main.py      | x={'a':1}\n   |
      | packages/queue/main.py     | x={'a':1}\n   |
      | packages/search/main.py    | x={'a':1}\n   |
      | packages/users/main.py     | x={'a':1}\n   |
      | packages/web/main.py       | x={'a':1}\n   |
      | packages/workers/main.py   | def x(:\n     |
    And the actor plays
      """
      strategize
      decide way 0.95: Format with the defaults of the tool | Leave it
      execute
      decide format under way: Write what the formatter would
      write packages/PACKAGE/main.py: x = {"a": 1}\n
      """
    And the file "format-codebase.yaml"
      """
      name: local/format-codebase
      description: Format a package
      definition_of_done: The formatter would change nothing
      strategy_actor: test/scripted
      execution_actor: test/scripted
      automation_profile: full-auto
      args:
        - {name: style, type: string, default: default}
        - {name: script, type: string, required: true}
      invariants:
        - At most 5 changed files
        - Never change files under `vendor/`
      """
    And the file "script.json"
      """
      $SCRIPT
      """
    And the actor plays
      """
      strategize
      decide way 0.95: Format with the defaults of the tool | Leave it
      execute
      fail: packages/workers/main.py does not parse, so it cannot be formatted
      """
    And the file "failing.json"
      """
      $SCRIPT
      """
    When this runs in bash
      """
      A() { agents --format json "$@"; }
      all="auth billing cache cli core db events http jobs mail queue search users web workers"
      script=$(jq -r . script.json)
      {
          A action create --config format-codebase.yaml
          A resource add git-checkout local/monorepo --path "$REPO(monorepo)" --branch main
          for pkg in $all; do
              A project create -d "Package: $pkg" --resource local/monorepo "local/pkg-$pkg"
              printf 'name: local/pkg-%s-test\ncommand: [%s, format, --isolated, --no-cache, --check, packages/%s]\n' \
                  "$pkg" "$RUFF" "$pkg" >"pkg-$pkg.yaml"
              A validation add --config "pkg-$pkg.yaml" --required "local/pkg-$pkg-test"
              A validation attach --project "local/pkg-$pkg" local/monorepo "local/pkg-$pkg-test"
          done
      } >registered.json
      jq -r .status registered.json | sort | uniq -c | tr -s ' '

      plans=
      for pkg in $all; do
          play=${script//PACKAGE/$pkg}
          [ "$pkg" != workers ] || play=$(jq -r . failing.json)
          plans="$plans $(A plan use --detach --automation-profile full-auto --arg "script=$play" \
              local/format-codebase "local/pkg-$pkg" | jq -r .data.plan_id)"
      done
      succeeded=0
      for plan in $plans; do
          A plan follow "$plan" >/dev/null || true
          code=0
          A plan status "$plan" >status.json || code=$?
          [ "$code" = "$(jq .exit_code status.json)" ]
          [ "$code" = 0 ] && succeeded=$((succeeded + 1))
      done
      echo "$succeeded succeeded"
      A plan list --state applied | jq -c '[(.data.plans | length), .data.filters.state, .data.summary.completed]'
      A plan list --state failed | jq -r '.data.plans[] | "\(.project) \(.phase) \(.state)"'
      A plan errors "$(A plan list --state failed | jq -r '.data.plans[0].id')" >errors.json || true
      grep -o 'does not parse' errors.json | head -1
      """
    Then it prints
      """
       47 ok
      14 succeeded
      [14,"applied",14]
      local/pkg-workers execute errored
      does not parse
      """
    And at most 4 plans were worked on at a time, and 2 at some time
    And the repository "monorepo" has 14 new commits and nothing else, changing
      | M | packages/auth/main.py    |
      | M | packages/billing/main.py |
      | M | packages/cache/main.py   |
      | M | packages/cli/main.py     |
      | M | packages/core/main.py    |
      | M | packages/db/main.py      |
      | M | packages/events/main.py  |
      | M | packages/http/main.py    |
      | M | packages/jobs/main.py    |
      | M | packages/mail/main.py    |
      | M | packages/queue/main.py   |
      | M | packages/search/main.py  |
      | M | packages/users/main.py   |
      | M | packages/web/main.py     |

  Scenario: What a validation does not let through waits for a person, though nobody is watching
    Given the repository "monorepo" with
      | packages/workers/main.py | x={'a':1}\n |
    And the actor plays
      """
      strategize
      decide way 0.95: Format with the defaults of the tool | Leave it
      execute
      decide format under way: Write something
      write packages/workers/notes.txt: not formatted\n
      """
    And the file "format-codebase.yaml"
      """
      name: local/format-codebase
      description: Format a package
      definition_of_done: The formatter would change nothing
      strategy_actor: test/scripted
      execution_actor: test/scripted
      args:
        - {name: script, type: string, default: $SCRIPT}
      """
    And the file "test.yaml"
      """
      name: local/pkg-workers-test
      command: ["$RUFF", format, --isolated, --no-cache, --check, packages/workers]
      """
    And a script has run
      """
      agents action create --config format-codebase.yaml
      agents resource add git-checkout local/monorepo --path $REPO(monorepo)
      agents project create --resource local/monorepo local/pkg-workers
      agents validation add --config test.yaml --required
      agents validation attach local/monorepo local/pkg-workers-test
      agents plan use --automation-profile full-auto local/format-codebase local/pkg-workers
      """
    Then the plan stands at "execute/processing+strategy_revision"
    And the repository "monorepo" is as it was
    When a script tries
      """
      agents plan apply --yes $P
      """
    Then that ends with 1 and says "1 required Execute-phase validation did not pass"
    When a script runs
      """
      agents plan list --state awaiting
      """
    Then the answer has
      | /plans/0/id | $P |
    When a script runs
      """
      agents plan cancel $P
      """
    Then the plan stands at "execute/cancelled"
