@WF-12
Feature: A feature in phases over four repositories
  A plan decides how a notification system comes about and hands its parts on: the protocol, then two back ends side by
  side, then what uses them. It asks where it is not sure, one part fails without stopping its siblings, and what is
  applied is one result. A correction adds a part without touching the others.

  Scripted actors stand for the models, and simple checks for the tests of each project.

  Scenario: A question, a part that fails and is given up, and one result
    Given the repository "protos" with
      | notify.proto | v1\n |
    And the repository "api" with
      | api.txt  | api\n  |
    And the repository "worker" with
      | worker.txt | one\ntwo\nthree\nfour\n |
    And the repository "frontend" with
      | front.txt | front\n |
    And the actor plays
      """
      strategize
      decide channels 0.95: Email, push and in-app | Email only
      decide exchange 0.55: Fan out | One queue per channel | Topics
      spawn protos on local/protos
        strategize
        decide message-how 0.95: As the others do
        execute
        decide message under message-how: Name the message
        write notify.proto: v2\n
      together backends
      spawn api in backends on local/api after protos
        strategize
        decide endpoint-how 0.95: As the others do
        execute
        decide endpoint under endpoint-how: An endpoint
        write api.txt at local/api-repo: api v2\n
      spawn worker in backends on local/worker after protos
        strategize
        decide queue-how 0.95: As the others do
        execute
        decide queue under queue-how: A queue
        write worker.txt at local/worker-repo: ONE\ntwo\nthree\nfour\n
      together clients
      spawn frontend in clients on local/frontend after backends
        strategize
        decide page-how 0.95: As the others do
        execute
        decide page under page-how: A page
        write front.txt: front v2\n
      spawn sms in clients on local/worker after backends
        execute
        fail: there is no gateway for SMS
      asked Skip SMS delivery, and say so on the page
        execute
        decide without-sms: Say it
        write front.txt at local/frontend-repo: front v2\nno SMS\n
      """
    And the file "build-notification-system.yaml"
      """
      name: local/build-notification-system
      description: Build the notification system
      definition_of_done: Notifications are sent
      strategy_actor: test/scripted
      execution_actor: test/scripted
      estimation_actor: test/scripted
      invariant_actor: builtin/reconcile-invariants
      automation_profile: cautious
      reusable: false
      subplan: {max_parallel: 2, retry_failed: false}
      args:
        - {name: notification_channels, type: string, required: true}
        - {name: max_retry_attempts, type: integer, default: 5}
        - {name: script, type: string, default: $SCRIPT}
      invariants:
        - At most 20 changed files
        - Messages are sent at least once
      """
    And the file "worker-tests.yaml"
      """
      name: local/worker-tests
      command: [grep, -q, four, worker.txt]
      validation: {mode: required}
      """
    And a script has run
      """
      agents resource add git-checkout local/api-repo --path $REPO(api) --branch main
      agents resource add git-checkout local/worker-repo --path $REPO(worker) --branch main
      agents resource add git-checkout local/frontend-repo --path $REPO(frontend) --branch main
      agents resource add git-checkout local/protos-repo --path $REPO(protos) --branch main
      agents project create -d "Backend API" --resource local/api-repo --resource local/protos-repo --invariant "Names are kept" --invariant "Never change files under `vendor/`" local/api
      agents project create -d "Workers" --resource local/worker-repo --resource local/protos-repo --invariant "Jobs can be repeated" local/worker
      agents project create -d "Frontend" --resource local/frontend-repo local/frontend
      agents project create -d "Protocols" --resource local/protos-repo local/protos
      agents validation add --config worker-tests.yaml --required local/worker-tests
      agents validation attach --project local/worker local/worker-repo local/worker-tests
      agents invariant add --global "All inter-service communication must use the shared proto definitions"
      """
    When a script runs
      """
      agents action create --config build-notification-system.yaml
      """
    Then the answer has
      | /reusable | false |
    When a script runs
      """
      agents plan use --arg notification_channels=email,push,in-app --arg max_retry_attempts=5 local/build-notification-system local/protos local/api local/worker local/frontend
      """
    Then the answer has
      | /target_projects           | 4 items |
      | /inputs/max_retry_attempts | 5       |
    When a script runs
      """
      agents plan execute $P
      """
    Then the plan stands at "strategize/processing+decision"
    And 0 child plans are planned, and there is none yet
    When "PAUSED" names the decision about "exchange"
    And a script runs
      """
      agents plan explain $PAUSED
      """
    Then the answer has
      | /confidence   | 0.55    |
      | /alternatives | 3 items |
    When a script runs
      """
      agents plan prompt $P "Use a fan-out exchange, with a queue for what fails"
      """
    Then the answer has
      | /decision_created/type           | user_intervention            |
      | /guidance_added/state_transition | awaiting_input -> processing |
    And the plan stands at "strategize/complete+execute_approval"
    And 5 child plans are planned, and there is none yet
    When a script tries
      """
      agents plan execute $P
      """
    And the person lets every child plan go on
    Then the plan stands at "execute/errored"
    And "4/5 complete" child plans are shown
    When "C0" names the child plan of "protos"
    And "C1" names the child plan of "api"
    And "C2" names the child plan of "worker"
    And "C3" names the child plan of "frontend"
    And "C4" names the child plan of "sms"
    Then "$C1" began after "$C0" was done
    And "$C2" began after "$C0" was done
    And "$C3" began after "$C1" was done
    And "$C3" began after "$C2" was done
    When a script tries
      """
      agents plan status $C4
      """
    Then that ends with 1 and says "agents plan prompt"
    And the answer has
      | /error/message     | ~ there is no gateway for SMS |
      | /error/recoverable | false   |
      | /error/step        | <text>  |
      | /state             | errored |
      | /parent_plan_id | $P      |
    When "D" names the decision about "sms"
    And a script runs
      """
      agents plan correct $D --mode append --guidance "Skip SMS delivery, and say so on the page"
      """
    Then the answer has
      | /correction/mode                            | append  |
      | /append_detail/original_decision_preserved  | true    |
      | /append_detail/existing_artifacts_kept      | true    |
      | /queued/new_child                           | 1       |
    When a script runs
      """
      agents plan cancel --reason "SMS comes later" $C4
      agents plan execute $P
      """
    And the person lets every child plan go on
    Then the plan stands at "execute/complete+apply_approval"
    And the repository "worker" is as it was
    When a script runs
      """
      agents plan apply --yes $C0
      agents plan apply --yes $C1
      """
    Then the repository "protos" has 1 new commit and nothing else, changing
      | M | notify.proto |
    And the repository "frontend" is as it was
    When a script runs
      """
      agents plan apply --yes $P
      """
    Then the answer has
      | /lifecycle/state | applied |
    And the plan stands at "apply/applied"
    And the repository "protos" has 1 new commit and nothing else, changing
      | M | notify.proto |
    And the repository "api" has 1 new commit and nothing else, changing
      | M | api.txt |
    And the repository "worker" has 1 new commit and nothing else, changing
      | M | worker.txt |
    And the repository "frontend" has 1 new commit and nothing else, changing
      | M | front.txt |
    And "front.txt" of the repository "frontend" contains "no SMS"
