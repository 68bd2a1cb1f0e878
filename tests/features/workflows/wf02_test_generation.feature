@WF-02
Feature: Generate tests until there are enough
  With the profile "trusted" a plan decides and executes by itself and stops before it is applied. A validation counts
  the tests; what is not enough is added to before anybody looks.

  A scripted actor stands for the model, and the validation counts test functions where the workflow measures coverage.

  Background:
    Given the repository "api" with
      | src/auth/login.py | def login(name):\n    return bool(name)\n |
      | src/auth/token.py | def token():\n    return "t"\n            |
      | tests/conftest.py | # Settings of all tests\n                 |
    And the file "auth-coverage.yaml"
      """
      name: local/auth-coverage
      description: Enough tests of the module
      shell: |
        found=$(grep -rh "^def test_" tests | wc -l)
        echo "$found tests"
        test "$found" -ge "$wanted"
      timeout: 600
      validation: {mode: required}
      input_schema:
        type: object
        properties:
          wanted: {type: integer, default: 4}
      """
    And the actor plays
      """
      strategize
      decide scope 0.9: All of the module | Only what is public
      decide style 0.92: Plain functions | Classes
      execute
      decide login 0.9 under scope: Test the login
      write tests/test_login.py: def test_name():\n    pass\n
      decide token 0.9 under scope: Test the token
      write tests/test_token.py: def test_token():\n    pass\n
      decide settings 0.9 under style: Say what is shared
      write tests/conftest.py: # Settings of all tests\nSHARED = 1\n
      fix more: Add what is missing
      write tests/test_edges.py: def test_empty():\n    pass\n\n\ndef test_long():\n    pass\n
      """
    And the file "generate-tests.yaml"
      """
      name: local/generate-tests
      description: Write the tests that are missing
      definition_of_done: There are enough tests, and nothing else has changed
      strategy_actor: test/scripted
      execution_actor: test/scripted
      read_only: false
      args:
        - {name: target_module, type: string, required: true, description: What to test}
        - {name: coverage_target, type: integer, required: false, default: 80, description: Percent}
        - {name: script, type: string, default: $SCRIPT}
      invariants:
        - Never change files under `src/`
        - At most 10 changed files
        - Tests say what they are about
      """
    And a script has run
      """
      agents resource add git-checkout local/api-service-repo --path $REPO(api)
      agents project create local/api-service --resource local/api-service-repo
      """

  Scenario: Tests are written until a validation is content, and nothing else is touched
    When a script tries
      """
      agents validation add --config auth-coverage.yaml --required local/other
      """
    Then that ends with 1 and says "defines local/auth-coverage, not local/other"
    When a script runs
      """
      agents validation add --config auth-coverage.yaml --required local/auth-coverage
      """
    Then the answer has
      | /validation_registered/name | local/auth-coverage |
      | /capability/timeout         | 600s                |
    When a script runs
      """
      agents validation attach --project local/api-service local/auth-coverage
      agents action create --config generate-tests.yaml
      """
    Then the answer has
      | /arguments/1/name   | coverage_target                             |
      | /arguments/1/type   | integer                                     |
      | /invariants         | 3 items                                     |
      | /automation         | {"profile":"supervised","source":"default"} |
    When a script runs
      """
      agents plan use --automation-profile trusted --arg target_module=src/auth --arg coverage_target=80 local/generate-tests local/api-service
      """
    Then the answer has
      | /inputs/coverage_target | 80       |
      | /inputs/target_module   | src/auth |
    And the plan stands at "execute/complete+apply_approval"
    And the repository "api" is as it was
    When a script runs
      """
      agents plan status $P
      """
    Then the answer has
      | /validation_summary/0/passed           | true    |
      | /validation_summary/0/attempt          | 2       |
      | /validation_fix_history/0/succeeded    | true    |
      | /validation_fix_history                | 1 items |
    When a script runs
      """
      agents plan diff $P
      """
    Then the answer has
      | /diff_summary/files_changed | 4                 |
      | /files/0/path               | tests/conftest.py |
      | /files/0/status             | modified          |
      | /files/1/status             | new file          |
    When a script runs
      """
      agents plan artifacts $P
      """
    Then the answer has
      | /summary/total         | 4    |
      | /summary/writes        | 3    |
      | /summary/edits         | 1    |
      | /summary/deletes       | 0    |
    When a script runs
      """
      agents plan apply --yes $P
      """
    Then the answer has
      | /lifecycle/state          | applied |
      | /lifecycle/decisions_made | >= 9    |
    And the repository "api" has 1 new commit and nothing else, changing
      | M | tests/conftest.py   |
      | A | tests/test_edges.py |
      | A | tests/test_login.py |
      | A | tests/test_token.py |

  Scenario: What is missing or of the wrong type is refused, and makes no plan
    Given a script has run
      """
      agents action create --config generate-tests.yaml
      """
    When a script tries
      """
      agents plan use local/generate-tests local/api-service
      """
    Then that ends with 1 and says "target_module"
    When a script tries
      """
      agents plan use --arg target_module=src --arg coverage_target=abc local/generate-tests local/api-service
      """
    Then that ends with 1 and says "coverage_target"
    When a script tries
      """
      agents plan use --arg target_modul=src --arg target_module=src local/generate-tests local/api-service
      """
    Then that ends with 1 and says "target_modul"
    When a script runs
      """
      agents plan list
      """
    Then the answer has
      | /plans | 0 items |

  Scenario: What runs can be watched from another terminal
    Given the repository "gate" with
      | README | Closed\n |
    And the file "waits.yaml"
      """
      name: local/waits
      description: As long as the gate is closed
      shell: until test -e $REPO(gate)/open; do sleep 0.05; done
      timeout: 120
      validation: {mode: required}
      """
    When this runs in bash
      """
      A() { agents --format json "$@"; }
      {
          A action create --config generate-tests.yaml
          A validation add --config waits.yaml --required
          A validation attach --project local/api-service local/api-service-repo local/waits
      } >registered.json
      P=$(A plan use --detach --automation-profile trusted --arg target_module=src/auth \
          local/generate-tests local/api-service | jq -r .data.plan_id)
      seen=
      for try in $(seq 600); do
          A plan status "$P" >status.json
          seen=$(jq -r '"\(.data.phase)/\(.data.state) \(.data.execution.tool_calls)"' status.json)
          [ "$seen" != "execute/processing 3" ] || break
          sleep 0.05
      done
      echo "$seen"
      jq -c '[.data.progress[].status]' status.json
      jq -c '[.status, .exit_code, .messages[-1].text]' status.json
      jq -c '[.data.timing, .data.execution, .data.cost] | map(keys | length > 0)' status.json
      jq -c '[.data.timing.elapsed, .data.execution.files_modified, .data.cost.tokens_used] | map(. != null)' status.json
      touch $REPO(gate)/open
      A plan follow "$P" >/dev/null
      A plan status "$P" | jq -c '[.data.phase, .data.state, .data.awaiting.kind]'
      """
    Then it prints
      """
      execute/processing 3
      ["done","running","waiting"]
      ["ok",0,"Status refreshed"]
      [true,true,true]
      [true,true,true]
      ["execute","complete","apply_approval"]
      """
