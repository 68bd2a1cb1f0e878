"""A plan as editors of three kinds meet it: what waits, answering it, why a line will change, what is refused."""

import asyncio
import json
import os
import pathlib
import re
import subprocess
from typing import Union

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

AGENTS = os.environ["AGENTS"]
SOURCE = 'import os\nimport sys\n\n\ndef main():\n    print(f"hello", sys.argv)\n'
FIX = """\
name: {name}
description: Fix what the language servers report
definition_of_done: Nothing that has an agreed fix is left
strategy_actor: builtin/fix-diagnostics
execution_actor: builtin/fix-diagnostics
"""


class World:
    """A repository with something to fix, and a plan about it that waits for decisions."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.repo = folder / "repo"
        self.file = self.repo / "app" / "main.py"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(SOURCE)
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run([*git, *command], cwd=self.repo, check=True)
        server = f'name: local/ruff\nlanguages: [python]\ncommand: "{os.environ["RUFF"]}"\nargs: [server]\n'
        (folder / "ruff.yaml").write_text(server)
        # All have the data directory of one home, each has a project of its own.
        name = f"local/{''.join(c for c in folder.name if c.isalnum())}"
        self.cli("resource", "add", "git-checkout", name, "--path", "repo")
        self.cli("project", "create", name, "--resource", name)
        self.cli("lsp", "add", "--update", "--config", "ruff.yaml")
        (folder / "fix.yaml").write_text(FIX.format(name=name))
        self.cli("action", "create", "--config", "fix.yaml")
        self.plan = self.cli("plan", "use", name, name, "--automation-profile", "review")["plan_id"]

    def cli(self, *arguments: str) -> dict:
        """What a command answers."""
        ran = subprocess.run([AGENTS, "--format", "json", *arguments], cwd=self.folder, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)["data"]

    def standing(self) -> str:
        """Where the plan stands, such as `strategize/processing+decision`."""
        status = self.cli("plan", "status", self.plan)
        return f"{status['phase']}/{status['state']}+{(status['awaiting'] or {}).get('kind', 'nothing')}"


def make_client() -> LanguageClient:
    """The client of pytest-lsp, which answers what the editors it stands for can be asked."""
    client = pytest_lsp.make_test_lsp_client()
    client.registered = []

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def _(ls, params: types.RegistrationParams):
        ls.registered.extend(params.registrations)

    for method in (
        types.WORKSPACE_CODE_LENS_REFRESH,
        types.WORKSPACE_INLAY_HINT_REFRESH,
    ):
        client.feature(method)(lambda ls, params=None: None)

    # lsprotocol takes every action that has a command for a bare command.
    converter = client.protocol._converter
    converter.register_structure_hook(
        Union[types.Command, types.CodeAction],
        lambda action, _: converter.structure(
            action, types.Command if isinstance(action.get("command"), str) else types.CodeAction
        ),
    )
    return client


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


@pytest_lsp.fixture(
    params=["neovim@v0.11.0", "emacs@v29.1", "visual-studio-code@v1.65.2"],
    config=ClientServerConfig(server_command=[AGENTS, "lsp", "serve"], client_factory=make_client),
)
async def client(request, lsp_client: LanguageClient, world: World):
    capabilities = client_capabilities(request.param)
    uri = world.repo.as_uri()
    lsp_client.answer = await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            root_uri=uri,
            workspace_folders=[types.WorkspaceFolder(uri=uri, name="repo")],
        )
    )
    lsp_client.offered = capabilities
    yield
    await lsp_client.shutdown_session()


async def until(what: str, ask):
    """Asks until there is something; that."""
    for _ in range(600):
        found = await ask()
        if found:
            return found
        await asyncio.sleep(0.05)
    pytest.fail(f"not in time: {what}")


async def diagnostics(client: LanguageClient, uri: str) -> list[types.Diagnostic]:
    """As this client gets them: it asks, or was told."""
    if client.answer.capabilities.diagnostic_provider is None:
        return list(client.diagnostics.get(uri, []))
    report = await client.text_document_diagnostic_async(
        types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
    )
    return list(getattr(report, "items", []))


async def run(client: LanguageClient, action: types.CodeAction | types.Command):
    """Carries out what the person picked."""
    command = action.command if isinstance(action, types.CodeAction) else action
    return await client.workspace_execute_command_async(
        types.ExecuteCommandParams(command.command, arguments=command.arguments)
    )


def whole(uri: str) -> tuple[types.TextDocumentIdentifier, types.Range]:
    lines = SOURCE.count("\n")
    return types.TextDocumentIdentifier(uri), types.Range(types.Position(0, 0), types.Position(lines, 0))


def check_registrations(client: LanguageClient):
    """Nothing is registered that the client did not offer to have registered."""
    for registration in client.registered:
        # `textDocument/codeLens` is offered as `text_document.code_lens`.
        group, feature = (re.sub("[A-Z]", lambda c: "_" + c[0].lower(), part) for part in registration.method.split("/"))
        # The one request whose capability has another name.
        feature = {"prepare_call_hierarchy": "call_hierarchy"}.get(feature, feature)
        offered = getattr(getattr(client.offered, group), feature)
        assert offered is not None and offered.dynamic_registration, registration


@pytest.mark.asyncio
async def test_a_plan_is_answered_and_explained(client: LanguageClient, world: World):
    encoding = client.answer.capabilities.position_encoding or types.PositionEncodingKind.Utf16
    general = client.offered.general
    offered = (general and general.position_encodings) or [types.PositionEncodingKind.Utf16]
    assert encoding in offered

    uri = world.file.as_uri()
    document = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=SOURCE)
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    async def pending():
        return [d for d in await diagnostics(client, uri) if d.source == "cleveragents"]

    waiting = await until("a decision waits", pending)
    places = {(d.range.start.line, d.range.start.character, d.range.end.character) for d in waiting}
    assert places == {(0, 7, 9), (5, 10, 18)}
    assert all(d.severity == types.DiagnosticSeverity.Warning for d in waiting)

    answered = 0
    while world.standing() != "execute/complete+apply_approval":
        [first, *_] = await until("something waits", pending)
        actions = await client.text_document_code_action_async(
            types.CodeActionParams(whole(uri)[0], first.range, types.CodeActionContext(diagnostics=[first]))
        )
        await run(client, next(a for a in actions if a.title.endswith("(proposed)")))
        answered += 1
        assert answered < 12, first.message

        async def rests():
            return not world.standing().endswith("+nothing")

        async def asks_something_else():
            return first.message not in [d.message for d in await pending()]

        await until("the answer takes the question away", asks_something_else)
        await until("the plan comes to rest", rests)
    assert answered >= 2

    async def none():
        return not await pending()

    await until("nothing waits", none)
    assert world.file.read_text() == SOURCE

    hover = await client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(5, 6))
    )
    assert "F541" in getattr(hover.contents, "value", str(hover.contents))
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(whole(uri)[0]))
    titles = [lens.command.title for lens in lenses]
    assert any("apply" in title for title in titles) and any("decision" in title for title in titles), titles
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(*whole(uri)))
    assert {hint.position.line for hint in hints} == {0, 5}, hints

    listed = await client.workspace_execute_command_async(types.ExecuteCommandParams("agents.plan.list", arguments=[{}]))
    assert json.dumps(listed, default=vars).count(world.plan) >= 1
    with pytest.raises(JsonRpcException) as refused:
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams("agents.plan.status", arguments=[{"plan": world.plan, "colour": "red"}])
        )
    assert refused.value.code == -32602 and "colour" in str(refused.value)

    actions = await client.text_document_code_action_async(
        types.CodeActionParams(
            whole(uri)[0], types.Range(types.Position(5, 4), types.Position(5, 4)), types.CodeActionContext(diagnostics=[])
        )
    )
    await run(client, next(a for a in actions if a.title.startswith("Apply plan")))

    async def applied():
        return world.standing() == "apply/applied+nothing"

    await until("the plan is applied", applied)
    assert world.file.read_text() == 'import sys\n\n\ndef main():\n    print("hello", sys.argv)\n'
    check_registrations(client)
