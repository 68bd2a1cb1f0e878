Feature: Fix what a language server reports
  A person has a Python repository in which ruff finds unused imports, a pointless f-string and an identity test that should be one of equality.
  They want to see what can be done about each kind, decide where it is theirs to decide, look at the result before
  it touches their files, and find out later why a line is as it is.

  Everything the person sees is in words they can act on: what was found, what is proposed and how sure that is, what
  the plan waits for, and which command goes on. Nothing changes in the repository before `plan apply`.

  Background:
    Given a repository with
      | file         | text                                                            |
      | app/main.py  | import os\nimport sys\n\n\ndef main():\n    print(f"hello", sys.argv)\n |
      | app/util.py  | import json\n\n\ndef named(x):\n    return x is "a"\n              |
      | app/clean.py | VALUE = 1\n                                                     |
      | README.md    | # An app\n                                                      |
    And it is registered as the resource "local/repo" of the project "local/app"
    And the language server "ruff" is registered for "python"
    And the action "local/fix-diagnostics" is registered on the actor "builtin/fix-diagnostics"

  @RES-001 @CLI-085 @LSPCLI-001 @LSPCLI-002 @ACT-001 @ACT-007
  Scenario: What was registered is listed, and a name is taken only once
    Then "resource list" names "local/repo"
    And "project list" names "local/app"
    And "lsp list" names "local/ruff"
    And "action list" names "local/fix-diagnostics"
    When the same language server is registered again
    Then that is refused with "already exists"

  @PLAN-030 @PLAN-035 @PLAN-037 @PLAN-041 @PLAN-012
  Scenario: A plan shows the choices it made and why, and has changed nothing
    When the person uses the action with the profile "supervised"
    Then the plan waits for "execute_approval" after "strategize"
    And the tree starts with the prompt and has a choice about "F401", "F541" and "F632"
    And the choice about "F401" is "Remove unused import"
    And its explanation names 2 files, its confidence, and at least 2 other options
    And the person is told to go on with "agents plan execute"
    And the repository is untouched

  @PLAN-066 @PLAN-080 @PLAN-081 @PLAN-083 @PROF-002
  Scenario: A person answers the decisions that wait for them
    When the person uses the action with the profile "review"
    Then the plan waits for "decision" in "strategize"
    And the question comes with numbered options
    When the person answers the decision about "F401" with "Leave alone"
    And the person accepts what is proposed until nothing waits
    Then the plan waits for "apply_approval" after "execute"
    And the decision about "F401" was made by a person and is "Leave alone"
    And the diff changes "app/util.py"
    And the diff keeps "import os"

  @PLAN-050 @PLAN-060 @PLAN-095 @PLAN-096 @PLAN-101 @PLAN-103
  Scenario: The result is looked at before it is applied
    When the person uses the action with the profile "supervised"
    And the person executes the plan
    Then the plan waits for "apply_approval" after "execute"
    And the diff changes "app/main.py"
    And the diff changes "app/util.py"
    And each changed hunk names the decision behind it
    And there is a checkpoint for each choice that was carried out
    And the repository is untouched

  @APP-001 @APP-002 @APP-003 @APP-012 @PLAN-064
  Scenario: The changes are applied as one commit, and a line tells its decision
    When the person uses the action with the profile "supervised"
    And the person executes the plan
    And the person applies the plan
    Then the plan is "applied" in "apply"
    And there is one new commit that names the plan
    And "app/main.py" no longer contains "import os"
    And ruff finds nothing in the repository that has an agreed fix
    And blame on the line with "hello" in "app/main.py" names "F541"
    And applying it again is refused

  @PLAN-070 @PLAN-071 @PLAN-072
  Scenario: A person gives a plan up
    When the person uses the action with the profile "supervised"
    And the person cancels the plan because "not now"
    Then the plan is "cancelled" in "strategize"
    And executing it is refused, with a way to begin anew
    And the repository is untouched

  @APP-001 @OUT-007
  Scenario: Without a yes nothing is applied
    When the person uses the action with the profile "supervised"
    And the person executes the plan
    And the person applies the plan without confirming
    Then the plan waits for "apply_approval" after "execute"
    And the repository is untouched
