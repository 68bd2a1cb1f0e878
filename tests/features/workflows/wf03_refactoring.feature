@WF-03
Feature: Refactor under invariants, with a question in the middle and a change of mind
  A plan keeps to what was said at three scopes. It stops where its actor is not sure, goes on as a person says, and
  takes back and does again what hung on a decision that is corrected, and nothing else.

  A scripted actor stands for the model; the strategist of the workflow is an actor with a model and left out, and so is
  the second resource of its project, which is only counted.

  Background:
    Given the repository "api" with
      | main.py            | import src\n           |
      | src/auth/users.py  | SQL = "select user"\n  |
      | src/auth/routes.py | SQL = "select route"\n |
    And the actor plays
      """
      strategize
      decide library 0.85: Use the ORM of the project | Use another
      decide order $CONFIDENCE after library: User model first | Routes first | All at once
      execute
      decide place 0.9 under library: Models beside the routes | A folder of models
      if place is A folder of models write src/auth/models/user.py: class User: pass\n
      write src/auth/models.py: class User: pass\n
      decide routes 0.9 under order: Ask the models
      write src/auth/routes.py: QUERY = "User.route"\n
      """
    And a script has run
      """
      agents resource add git-checkout local/api-service-repo --path $REPO(api)
      agents project create local/api-service --resource local/api-service-repo
      """

  Scenario: A question, an answer in a person's own words, and a decision corrected
    Given the actor is 0.48 sure of what is "$CONFIDENCE"
    And the file "refactor-to-orm.yaml"
      """
      name: local/refactor-to-orm
      description: Ask the database through the ORM
      definition_of_done: No SQL is written by hand
      strategy_actor: test/scripted
      execution_actor: test/scripted
      estimation_actor: test/scripted
      automation_profile: cautious
      args:
        - {name: target_module, type: string, required: true}
        - {name: script, type: string, default: $SCRIPT}
      invariants:
        - Never change files under `migrations/`
        - Keep the names of routes
        - At most 20 changed files
      """
    When a script runs
      """
      agents invariant add --global "All public APIs must maintain backward compatibility"
      """
    Then the answer has
      | /0/scope | global |
      | /0/id    | <text> |
    When a script runs
      """
      agents invariant add --project local/api-service "Database queries must use the SQLAlchemy ORM, not raw SQL"
      """
    Then the answer has
      | /0/scope | project |
    When a script runs
      """
      agents invariant list --project local/api-service
      """
    Then the answer has
      | /invariants          | 1 items |
      | /invariants/0/source | project |
    When a script runs
      """
      agents action create --config refactor-to-orm.yaml
      """
    Then the answer has
      | /automation | {"profile":"cautious","source":"action"} |
      | /invariants | 3 items                                         |
    When a script runs
      """
      agents plan use --arg target_module=src/auth local/refactor-to-orm local/api-service
      """
    Then the answer has
      | /automation_profile | cautious      |
      | /awaiting/kind | confirm_strategize |
      | /actors/estimation  | test/scripted |
    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "strategize/processing+decision"
    And the tree is
      | prompt_definition  | <text>                         |      |
      | invariant_enforced | <text>                         |      |
      | invariant_enforced | <text>                         |      |
      | invariant_enforced | <text>                         |      |
      | invariant_enforced | <text>                         |      |
      | invariant_enforced | <text>                         |      |
      | strategy_choice    | Use the ORM of the project     | 0.85 |
      | strategy_choice    | User model first               | 0.48 |
    When a script runs
      """
      agents invariant list --plan $P --effective
      """
    Then the answer has
      | /invariants          | 5 items |
      | /invariants/0/source | global  |
      | /invariants/1/source | project |
      | /invariants/2/source | action  |
    When "PAUSED" names the decision about "order"
    And a script runs
      """
      agents plan explain $PAUSED
      """
    Then the answer has
      | /confidence   | 0.48    |
      | /alternatives | 3 items |
    When a script runs
      """
      agents plan prompt $P "User model first, and use Alembic"
      """
    Then the answer has
      | /guidance_added/state_transition | awaiting_input -> processing |
      | /decision_created/type           | user_intervention            |
      | /decision_created/parent         | $PAUSED                      |
    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "execute/complete+apply_approval"
    And "src/auth/models.py" in the sandbox contains "class User"
    When a script runs
      """
      agents plan tree --show-superseded $P
      """
    Then the answer has
      | /summary/superseded | 1 |
      | /summary/invariants | 5 |

    When "D" names the decision about "place"
    And a script runs
      """
      agents plan correct $D --mode revert --guidance "A folder of models" --yes
      """
    Then the answer has
      | /correction/mode                         | revert   |
      | /correction/corrects                     | $D       |
      | /correction/attempt                      | 2        |
      | /affected_subtree/decisions_invalidated  | 1        |
      | /sandbox_rollback/status                 | restored |
      | /sandbox_rollback/files_reverted         | 1        |
    And the plan stands at "execute/complete+apply_approval"
    When "C" names what the answer has at "/correction/correction_attempt_id"
    Then there is no "src/auth/models.py" in the sandbox
    And "src/auth/models/user.py" in the sandbox contains "class User"
    And "src/auth/routes.py" in the sandbox contains "User.route"
    And the repository "api" is as it was
    When a script runs
      """
      agents plan diff --correction $C
      """
    Then the answer has
      | /correction_diff/correction_attempt_id | $C     |
      | /correction_diff/original_decision | $D     |
      | /correction_diff/files_changed     | 2      |
      | /comparison                        | 3 items |
    When a script runs
      """
      agents plan diff $P
      """
    Then the answer has
      | /diff_summary/files_changed | 2                       |
      | /files/0/path               | src/auth/models/user.py |
      | /files/0/status             | new file                |
      | /files/1/path               | src/auth/routes.py      |
      | /files/1/status             | modified                |
    When a script runs
      """
      agents plan apply --yes $P
      """
    Then the answer has
      | /lifecycle/state       | applied |
      | /lifecycle/corrections | 1       |
    And the repository "api" has 1 new commit and nothing else, changing
      | A | src/auth/models/user.py |
      | M | src/auth/routes.py      |

  Scenario Outline: Whether a decision is asked about is a matter of the threshold
    Given the actor is <sure> sure of what is "$CONFIDENCE"
    And the file "act.yaml"
      """
      name: local/refactor-to-orm
      description: Ask the database through the ORM
      definition_of_done: No SQL is written by hand
      strategy_actor: test/scripted
      execution_actor: test/scripted
      automation_profile: cautious
      args:
        - {name: script, type: string, default: $SCRIPT}
      """
    And a script has run
      """
      agents action create --config act.yaml
      agents plan use local/refactor-to-orm local/api-service
      agents plan execute $P
      """
    Then the plan stands at "<at>"

    Examples:
      | sure | at                                   |
      | 0.59 | strategize/processing+decision       |
      | 0.60 | execute/complete+apply_approval |
      | 0.61 | execute/complete+apply_approval |
