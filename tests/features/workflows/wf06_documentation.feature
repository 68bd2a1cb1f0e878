@WF-06
Feature: Write documentation, and touch nothing else
  A plan writes pages below one folder. Invariants that a machine can check keep it from the sources: what it tries
  there all the same is refused and told to its actor.

  A scripted actor stands for the model. Left out: what the plan's actor is shown of the code (context views), which
  needs the index.

  Background:
    Given the repository "api" with
      | src/a.py | def a():\n    return 1\n |
    And a script has run
      """
      agents resource add git-checkout local/api-repo --path $REPO(api)
      agents project create local/api-service --resource local/api-repo
      """

  Scenario: Pages are written and applied with what was kept to
    Given the actor plays
      """
      strategize
      decide pages 0.9: One page per module | One page in all
      execute
      decide index 0.9 under pages: An index
      write docs/generated/index.md: # Index\n
      decide a 0.9 under pages: A page of a
      write docs/generated/a.md: # a\n
      """
    And the file "generate-docs.yaml"
      """
      name: local/generate-docs
      description: Write the documentation
      definition_of_done: Each module has a page
      strategy_actor: test/scripted
      execution_actor: test/scripted
      read_only: false
      args:
        - {name: output_dir, type: string, default: docs/}
        - {name: script, type: string, default: $SCRIPT}
      invariants:
        - Never change files under `src/`
        - At most 10 changed files
        - Examples can be run
      """
    When a script runs
      """
      agents action create --config generate-docs.yaml
      """
    Then the answer has
      | /read_only           | false |
      | /arguments/0/default | docs/ |
    When a script runs
      """
      agents plan use --automation-profile trusted --arg output_dir=docs/generated/ local/generate-docs local/api-service
      """
    Then the plan stands at "execute/complete+apply_approval"
    When a script runs
      """
      agents plan artifacts $P
      """
    Then the answer has
      | /summary/total  | 2 |
      | /summary/writes | 2 |
    When a script runs
      """
      agents plan diff $P
      """
    Then the answer has
      | /diff_summary/deletions | 0        |
      | /files/0/status         | new file |
      | /files/1/status         | new file |
    And the summary of "execute" says "2 invariants kept, 1 that no machine can check"
    When a script runs
      """
      agents plan apply --yes $P
      """
    Then the answer has
      | /lifecycle/state | applied |
    And the repository "api" has 1 new commit and nothing else, changing
      | A | docs/generated/a.md     |
      | A | docs/generated/index.md |

  Scenario: What an invariant forbids is not written
    Given the actor plays
      """
      execute
      decide index: An index
      write docs/generated/index.md: # Index\n
      decide source: Correct the source, too
      write src/a.py: def a():\n    return 2\n
      """
    And the file "generate-docs.yaml"
      """
      name: local/generate-docs
      description: Write the documentation
      definition_of_done: Each module has a page
      strategy_actor: test/scripted
      execution_actor: test/scripted
      args:
        - {name: script, type: string, default: $SCRIPT}
      invariants:
        - Never change files under `src/`
      """
    And a script has run
      """
      agents action create --config generate-docs.yaml
      agents plan use --automation-profile trusted local/generate-docs local/api-service
      """
    Then the plan stands at "execute/complete+apply_approval"
    And the plan has an event "invariant.violated"
    When a script runs
      """
      agents plan diff $P
      """
    Then the answer has
      | /diff_summary/files_changed | 1                       |
      | /files/0/path               | docs/generated/index.md |
