@WF-04
Feature: Update a library and the services that use it
  One plan on four projects, one child plan for each: the library first, then the services side by side. Each child has
  its own diff, is checked by the validation of its own project, and is applied by itself; the plan is applied with the
  last of them.

  A scripted actor stands for the model. Left out: the change log, which is a web address; the number of files is smaller.

  Background:
    Given the repository "common-lib" with
      | auth.py | VERSION = "1.0.0"\n |
    And the repository "user-service" with
      | needs.txt | authlib==1.0.0\n |
    And the repository "order-service" with
      | needs.txt | authlib==1.0.0\n |
    And the repository "billing-service" with
      | needs.txt | authlib==1.0.0\n |
    And the actor plays
      """
      strategize
      decide approach 0.9: Library first | All at once
      spawn common-lib on local/common-lib
        execute
        decide version: Raise it
        write auth.py: VERSION = "2.0.0"\n
      together services
      spawn user-service in services on local/user-service after common-lib
        execute
        decide needs: Raise it
        write needs.txt: authlib==2.0.0\n
      spawn order-service in services on local/order-service after common-lib
        execute
        decide needs: Raise it
        write needs.txt: authlib==2.0.0\n
      spawn billing-service in services on local/billing-service after common-lib
        execute
        decide needs: Raise it
        write needs.txt: authlib==2.0.0\n
      """
    And the file "coordinated-dependency-update.yaml"
      """
      name: local/coordinated-dep-update
      description: Raise a library everywhere
      definition_of_done: Everybody uses the new version
      strategy_actor: test/scripted
      execution_actor: test/scripted
      automation_profile: supervised
      subplan: {max_parallel: 3}
      args:
        - {name: library_name, type: string, required: true}
        - {name: target_version, type: string, required: true}
        - {name: script, type: string, default: $SCRIPT}
      invariants:
        - At most 10 changed files
        - Never change files under `vendor/`
        - The library is applied before the services
      """
    And the file "old-version.yaml"
      """
      name: local/no-old-version
      description: The old version is named nowhere
      shell: "! grep -rn --include=*.py --include=*.txt 1.0.0 ."
      validation: {mode: required}
      """

  Scenario: Four repositories change in the order that was decided
    Given a script has run
      """
      agents resource add git-checkout local/common-lib-repo --path $REPO(common-lib) --branch main
      agents resource add git-checkout local/user-service-repo --path $REPO(user-service) --branch main
      agents resource add git-checkout local/order-service-repo --path $REPO(order-service) --branch main
      agents resource add git-checkout local/billing-service-repo --path $REPO(billing-service) --branch main
      agents project create -d "Shared code" --resource local/common-lib-repo local/common-lib
      agents project create -d "Users" --resource local/user-service-repo local/user-service
      agents project create -d "Orders" --resource local/order-service-repo local/order-service
      agents project create -d "Bills" --resource local/billing-service-repo local/billing-service
      agents validation add --config old-version.yaml --required local/no-old-version
      agents validation attach --project local/common-lib local/common-lib-repo local/no-old-version
      agents validation attach --project local/user-service local/user-service-repo local/no-old-version
      agents validation attach --project local/order-service local/order-service-repo local/no-old-version
      agents validation attach --project local/billing-service local/billing-service-repo local/no-old-version
      agents action create --config coordinated-dependency-update.yaml
      """
    When a script runs
      """
      agents plan use --automation-profile supervised --arg library_name=authlib --arg target_version=2.0.0 local/coordinated-dep-update local/common-lib local/user-service local/order-service local/billing-service
      """
    Then the answer has
      | /target_projects   | 4 items |
      | /context/resources | 4 items |
    And the plan stands at "strategize/complete+execute_approval"
    And 4 child plans are planned, and there is none yet
    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "execute/complete+apply_approval"
    And "4/4 complete" child plans are shown
    And the repository "common-lib" is as it was
    And the repository "user-service" is as it was
    When "C1" names the child plan of "common-lib"
    And "C2" names the child plan of "user-service"
    And "C3" names the child plan of "order-service"
    And "C4" names the child plan of "billing-service"
    Then "$C2" began after "$C1" was done
    And "$C3" began after "$C1" was done
    And "$C4" began after "$C1" was done
    When a script runs
      """
      agents plan diff $C1
      """
    Then the answer has
      | /diff_summary/files_changed | 1                |
      | /diff_summary/project       | local/common-lib |
    When a script runs
      """
      agents plan status $C3
      """
    Then the answer has
      | /parent_plan_id              | $P   |
      | /validation_summary/0/passed | true |
    When a script tries
      """
      agents plan apply --yes $C2
      """
    Then that ends with 1 and says "$C1"
    When a script runs
      """
      agents plan apply --yes $C1
      """
    Then the answer has
      | /lifecycle/state | applied |
    And the repository "common-lib" has 1 new commit and nothing else, changing
      | M | auth.py |
    And the repository "user-service" is as it was
    When a script runs
      """
      agents plan apply --yes $C2
      agents plan apply --yes $C3
      agents plan apply --yes $C4
      """
    Then the answer has
      | /lifecycle/state         | applied      |
      | /parent_plan/plan        | $P           |
      | /parent_plan/child_plans | 4/4 complete |
    When this runs in bash
      """
      agents plan follow $P >/dev/null
      """
    Then the plan stands at "apply/applied"
    And the repository "user-service" has 1 new commit and nothing else, changing
      | M | needs.txt |
    And the repository "order-service" has 1 new commit and nothing else, changing
      | M | needs.txt |
    And the repository "billing-service" has 1 new commit and nothing else, changing
      | M | needs.txt |
