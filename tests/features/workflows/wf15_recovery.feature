@WF-15
Feature: Find the decision behind a bad change, and recover
  What is found before it is applied is rolled back to a checkpoint and decided otherwise. What is applied already is
  never rolled back: a plan of its own takes it out of the files again, and what others have done since stays.

  A scripted actor stands for the model. The workflow lets a check after the apply fail; nothing is checked there, so the
  person sees the damage by themselves.

  Background:
    Given the repository "api" with
      | main.py | import pool\n                          |
      | pool.py | SIZE = 20\nTIMEOUT = 30\n\n\nOTHER = 1\n |
    And the actor plays
      """
      strategize
      decide goal 0.9: Fewer connections | Shorter queries
      execute
      decide timeout 0.9 under goal: Shorten the timeout
      write limits.py: TIMEOUT = 5\n
      decide size 0.78 under goal: A pool of 5 | A pool of 20
      if size is A pool of 20 write notes.md: The pool stays at 20\n
      write pool.py: SIZE = 5\nTIMEOUT = 30\n\n\nOTHER = 1\n
      """
    And the file "optimize.yaml"
      """
      name: local/optimize-db-connections
      description: Use fewer connections
      definition_of_done: Fewer connections are open
      strategy_actor: test/scripted
      execution_actor: test/scripted
      args:
        - {name: script, type: string, default: $SCRIPT}
      """
    And a script has run
      """
      agents resource add git-checkout local/api-repo --path $REPO(api)
      agents project create local/api-service --resource local/api-repo
      agents action create --config optimize.yaml
      agents plan use --automation-profile trusted local/optimize-db-connections local/api-service
      """

  Scenario: Before it is applied: back to a checkpoint, another decision, and on
    When a script runs
      """
      agents plan diff $P
      """
    Then the answer has
      | /diff_summary/files_changed | 2 |
    When "D" names the decision about "size"
    And a script runs
      """
      agents plan explain $D --show-context --show-reasoning
      """
    Then the answer has
      | /confidence | 0.78        |
      | /chosen     | A pool of 5 |
    When a script runs
      """
      agents plan artifacts $P
      """
    Then the answer has
      | /summary/total       | 2      |
      | /checkpoints/0/label | <text> |
    When "CP" names the first checkpoint of the decision about "size"
    And a script runs
      """
      agents plan rollback --yes $P $CP
      """
    Then the answer has
      | /rollback_summary/checkpoint     | $CP |
      | /rollback_summary/files_reverted | 1   |
    And "pool.py" in the sandbox contains "SIZE = 20"
    And "limits.py" in the sandbox contains "TIMEOUT = 5"
    And the repository "api" is as it was
    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "execute/complete+apply_approval"
    And "pool.py" in the sandbox contains "SIZE = 5"
    When "D2" names the decision about "size"
    And a script runs
      """
      agents plan correct $D2 --mode revert --guidance "A pool of 20" --yes
      """
    Then the answer has
      | /correction/corrects | $D2 |
    And the plan stands at "execute/complete+apply_approval"
    And "pool.py" in the sandbox contains "SIZE = 20"
    When "C" names what the answer has at "/correction/correction_attempt_id"
    And a script runs
      """
      agents plan diff --correction $C
      """
    Then the answer has
      | /correction_diff/files_changed | 2 |
    When a script runs
      """
      agents plan apply --yes $P
      """
    Then the answer has
      | /lifecycle/state | applied |
    And the repository "api" has 1 new commit and nothing else, changing
      | A | limits.py |
      | A | notes.md  |

  Scenario: After it is applied: a plan that takes one decision back, and keeps later work
    Given a script has run
      """
      agents plan apply --yes $P
      """
    And somebody commits "pool.py" of the repository "api" with "OTHER = 1" as "OTHER = 2"
    When "D" names the decision about "size"
    And "CP" names the first checkpoint of the decision about "size"
    And a script tries
      """
      agents plan rollback --yes $P $CP
      """
    Then that ends with 1 and says "agents plan revert"
    When a script tries
      """
      agents plan correct $D --mode revert --guidance "A pool of 20" --yes
      """
    Then that ends with 1 and says "applied"
    And "pool.py" of the repository "api" contains "SIZE = 5"
    When a script runs
      """
      agents plan diff $P
      agents plan revert $P --decision $D --automation-profile trusted
      """
    And "R" names what the answer has at "/plan_id"
    And a script runs
      """
      agents plan apply --yes $R
      """
    Then "pool.py" of the repository "api" contains "SIZE = 20\nTIMEOUT = 30\n\n\nOTHER = 2"
    And "limits.py" of the repository "api" contains "TIMEOUT = 5"
    When a script runs
      """
      agents plan blame $REPO(api)/pool.py:1
      """
    Then the answer has
      | /segments/0/plan_id | $R |
