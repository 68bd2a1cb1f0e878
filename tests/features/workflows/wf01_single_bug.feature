@WF-01
Feature: Fix a single bug, with a person in control of every step
  The health check of a service fails when its database is away; it should answer that the service is degraded. With
  the profile "manual" nothing starts by itself, nothing reaches the repository before it is applied, and the tests
  run on what is to be applied.

  A scripted actor decides and writes, where the workflow has a model. The tests run with Python's own runner.

  Background:
    Given the repository "api" with
      | src/routes/health.py | def health(database):\n    return 500, {}\n                                                                                                                                                                             |
      | src/__init__.py        | \n |
      | src/routes/__init__.py | \n |
      | tests/__init__.py      | \n |
      | tests/test_health.py | import unittest\nfrom src.routes.health import health\n\n\nclass Health(unittest.TestCase):\n    def test_away(self):\n        self.assertEqual(health(None)[0], 500)\n\n\nif __name__ == "__main__":\n    unittest.main()\n |
    And the actor plays
      """
      strategize
      decide status 0.95: Answer 200 and say degraded | Answer 503 | Answer 500
      decide body 0.91: Name the database | Say nothing more
      decide tests 0.93: Change the test that expects 500 | Add one beside it
      execute
      decide handler 0.9 under status: Change the handler
      write src/routes/health.py: def health(database):\n    if not database:\n        return 200, {"status": "degraded", "database": "unavailable"}\n    return 200, {"status": "ok"}\n
      decide test 0.9 under tests: Change the test
      write tests/test_health.py: import unittest\nfrom src.routes.health import health\n\n\nclass Health(unittest.TestCase):\n    def test_away(self):\n        self.assertEqual(health(None), (200, {"status": "degraded", "database": "unavailable"}))\n
      """
    And the file "fix-bug.yaml"
      """
      name: local/fix-bug
      description: Fix one bug
      long_description: Reads the report, changes as little as possible, and its test with it
      definition_of_done: The bug is gone and the tests pass
      strategy_actor: test/scripted
      execution_actor: test/scripted
      reusable: true
      state: available
      args:
        - {name: bug_description, type: string, required: true, description: What goes wrong}
        - {name: affected_file, type: string, required: false, description: Where}
        - {name: script, type: string, default: $SCRIPT}
      """
    And the file "unit-tests.yaml"
      """
      name: local/unit-tests
      description: The unit tests
      command: python3 -m unittest discover -s tests -t .
      validation: {mode: required}
      """

  Scenario: From an empty home to a fixed repository
    When a script runs
      """
      agents init --yes
      """
    Then the answer has
      | /initialized/directories | ~ "logs","cache","sessions","contexts" |
      | /initialized/database    | ~ schema v                           |
    When a script runs
      """
      agents resource add git-checkout local/api-repo --path $REPO(api) --branch main
      """
    Then the answer has
      | /type                          | git-checkout |
      | /capabilities/sandbox_strategy | git_worktree |
      | /capabilities/readable         | true         |
      | /capabilities/writable         | true         |
      | /capabilities/sandboxable      | true         |
      | /capabilities/checkpointable   | true         |
    When a script runs
      """
      agents project create --description "REST API service" --resource local/api-repo local/api-service
      """
    Then the answer has
      | /project/name               | local/api-service |
      | /linked_resources/0/name      | local/api-repo    |
      | /linked_resources/0/read_only | false             |
    When a script runs
      """
      agents validation add --config unit-tests.yaml --required
      """
    Then the answer has
      | /validation_registered/name | local/unit-tests |
      | /validation_registered/mode | required         |
      | /capability/timeout         | 300s             |
    When a script runs
      """
      agents validation attach --project local/api-service local/api-repo local/unit-tests
      """
    Then the answer has
      | /validation_attached/attachment_id | <id>                      |
      | /validation_attached/scope         | project local/api-service |
    When a script runs
      """
      agents action create --config fix-bug.yaml
      """
    Then the answer has
      | /state                | available |
      | /reusable             | true      |
      | /arguments            | 3 items   |
      | /arguments/0/required | true      |

    When a script runs
      """
      agents plan use --automation-profile manual --arg bug_description="500 instead of 'degraded'" --arg affected_file=src/routes/health.py local/fix-bug local/api-service
      """
    Then the answer has
      | /phase                  | strategize                 |
      | /automation_profile     | manual                     |
      | /inputs/affected_file   | src/routes/health.py       |
      | /inputs/bug_description | 500 instead of 'degraded'  |
    And the plan stands at "strategize/queued+confirm_strategize"

    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "strategize/complete+execute_approval"
    And the repository "api" is as it was
    And the tree is
      | prompt_definition | <text>                          |      |
      | strategy_choice   | Answer 200 and say degraded     | 0.95 |
      | strategy_choice   | Name the database               | 0.91 |
      | strategy_choice   | Change the test that expects 500 | 0.93 |
    When "D" names the decision about "status"
    And a script runs
      """
      agents plan explain $D
      """
    Then the answer has
      | /type         | strategy_choice             |
      | /confidence   | 0.95                        |
      | /chosen       | Answer 200 and say degraded |
      | /alternatives | 3 items                     |
      | /rationale    | <text>                      |
    When a script tries
      """
      agents plan apply --yes $P
      """
    Then that ends with 1 and says "agents plan execute"

    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "execute/complete+apply_approval"
    And the repository "api" is as it was
    When a script runs
      """
      agents plan diff $P
      """
    Then the answer has
      | /diff_summary/files_changed | 2                    |
      | /files/0/path               | src/routes/health.py |
      | /files/0/status             | modified             |
      | /files/1/path               | tests/test_health.py |
      | /files/1/status             | modified             |
    When "INSERTED" is the number the answer has at "/diff_summary/insertions"
    And a script runs
      """
      agents plan status $P
      """
    Then the answer has
      | /phase                       | execute  |
      | /state                       | complete |
      | /execution/checkpoints       | >= 1     |
      | /execution/files_modified    | 2        |
      | /validation_summary/0/passed | true     |
    When a script runs
      """
      agents plan apply --yes $P
      """
    Then the answer has
      | /lifecycle/state          | applied   |
      | /sandbox_cleanup/worktree | removed   |
      | /changes/insertions       | $INSERTED |
    And the repository "api" has 1 new commit and nothing else, changing
      | M | src/routes/health.py |
      | M | tests/test_health.py |
    And no worktree of the repository "api" is left
    When this runs in bash
      """
      cd $REPO(api)
      python3 -m unittest discover -q -s tests -t .
      echo green
      """
    Then it prints
      """
      green
      """
