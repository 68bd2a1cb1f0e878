@WF-13
Feature: A profile of one's own, and an invariant that asks although the actor is sure
  The confidence of a change is over the threshold of the profile, so it would not be asked about. An invariant of the
  project says that this kind of change needs a person; so it is.

  A scripted actor stands for the model. Who says that a change falls under an invariant is a rule that a machine can
  check; one in words only ("changes to authentication require review") needs a model and is left out.

  Background:
    Given the repository "api" with
      | main.py | import src\n |
    And the file "profiles/db-cautious.yaml"
      """
      name: local/db-cautious
      description: Careful with the database
      decompose_task: 0.0
      create_tool: 0.0
      select_tool: 1.0
      edit_code: 0.4
      execute_command: 0.6
      create_file: 0.6
      delete_content: 0.9
      access_network: 0.9
      install_dependency: 0.9
      modify_config: 0.9
      approve_plan: 0.9
      require_sandbox: true
      require_checkpoints: true
      allow_unsafe_tools: false
      """
    And the actor plays
      """
      strategize
      decide order 0.7: User model first | Routes first
      execute
      decide migration 0.82: Two migrations | One
      write migrations/0001.sql: alter table users add name2;\n
      decide model 0.82: Then the model
      write src/user.py: NAME = "name2"\n
      """
    And the file "refactor.yaml"
      """
      name: local/refactor-to-orm
      description: Ask the database through the ORM
      definition_of_done: No SQL is written by hand
      strategy_actor: test/scripted
      execution_actor: test/scripted
      args:
        - {name: script, type: string, default: $SCRIPT}
      """
    And a script has run
      """
      agents resource add git-checkout local/api-repo --path $REPO(api)
      agents project create local/api-service --resource local/api-repo
      agents action create --config refactor.yaml
      """
    When a script runs
      """
      agents automation-profile add --config profiles/db-cautious.yaml
      """
    Then the answer has
      | /name                        | local/db-cautious |
      | /thresholds/access_network   | 0.9               |
      | /thresholds/execute_command  | 0.6               |
      | /flags/require_sandbox       | true              |
      | /flags/allow_unsafe_tools    | false             |
    When a script runs
      """
      agents config set core.automation-profile local/db-cautious --project local/api-service
      """
    Then the answer has
      | /scope | project                     |
      | /value | local/db-cautious           |

  Scenario: Without the invariant nobody is asked
    When a script runs
      """
      agents plan use local/refactor-to-orm local/api-service
      """
    Then the answer has
      | /automation_profile | local/db-cautious |
    And the plan stands at "execute/complete+apply_approval"

  Scenario: With it the plan waits, names it, and goes on as the person says
    When a script runs
      """
      agents invariant add --project local/api-service "Any change to `migrations/` requires human approval"
      """
    Then the answer has
      | /0/enforced_by | machine |
    When a script runs
      """
      agents plan use local/refactor-to-orm local/api-service
      """
    Then the plan stands at "execute/processing+decision"
    And there is no "migrations/0001.sql" in the sandbox
    When a script runs
      """
      agents plan status $P
      """
    Then the answer has
      | /phase                | execute                 |
      | /escalation/invariant | ~ `migrations/`         |
      | /awaiting/question    | ~ `migrations/`         |
    When "D" names what the answer has at "/awaiting/decision_id"
    And a script runs
      """
      agents plan explain $D
      """
    Then the answer has
      | /escalation_reason/text | ~ `migrations/` |
    When a script runs
      """
      agents plan prompt $P 1
      """
    Then the answer has
      | /decision_created/type           | user_intervention            |
      | /guidance_added/state_transition | awaiting_input -> processing |
    And the plan stands at "execute/complete+apply_approval"
    And "migrations/0001.sql" in the sandbox contains "alter table"
    And "src/user.py" in the sandbox contains "name2"
