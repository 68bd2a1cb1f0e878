Feature: Hand parts of a plan on to child plans
  A change that is too large for one commit's worth of thought is decided as a whole and done in parts. The person
  decides once, sees every part by itself, and gets back one result in which every line still leads to the decision
  behind it.

  @WF-04 @SUB-001 @SUB-002 @SUB-006 @SUB-018 @APP-014
  Scenario: A library first, then the services that use it, each in its own repository
    Given the projects "common-lib", "user-service", "order-service" and "billing-service"
    And a plan on all of them that hands "common-lib" on first, and then the others together
    When the person uses it with the profile "supervised"
    Then the plan waits for "execute_approval" after "strategize"
    And 4 child plans are planned, and there is none yet
    When the person executes the plan
    Then the plan waits for "apply_approval" after "execute"
    And "4/4 complete" child plans are shown
    And each child plan changed its own project only
    When the child plan of "user-service" is applied
    Then that is refused with "are not applied yet"
    When the child plans are applied one after another, "common-lib" first
    Then the plan is "applied" in "apply"
    And each repository has one new commit

  @WF-10 @SUB-004 @SUB-008 @PLAN-056
  Scenario: Fifteen parts of a repository, of which one cannot be done
    Given the projects "packages"
    And a plan that hands 15 packages on together, of which "workers" fails
    When the person uses it with the profile "full-auto"
    Then the plan is "errored" in "execute"
    And "14/15 complete" child plans are shown
    And the error names the child plan of "workers"
    When the child plan of "workers" is given up and the plan goes on
    Then the plan is "applied" in "apply"
    And 14 packages are changed in one commit

  @WF-12 @SUB-009 @SUB-014 @SUB-015 @PLAN-066
  Scenario: Phases of a feature, with an answer in the middle and two parts that disagree
    Given the projects "api", "worker"
    And a plan in phases whose second phase asks, and whose third has two parts that change the same line
    When the person uses it with the profile "cautious"
    And the person starts every child plan it asks about
    Then the plan waits for "child_plan" in "execute"
    When the person answers the child plan that waits with "Do it"
    And the person starts every child plan it asks about
    Then the plan waits for "decision" in "execute"
    And the sandbox shows both versions between markers
    When the person answers "take the child plan's version"
    Then the plan waits for "apply_approval" after "execute"
    When the person applies the plan
    Then the plan is "applied" in "apply"
    And the line that was disagreed about leads to the decision of a child plan
