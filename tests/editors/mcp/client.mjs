// The official client of the Model Context Protocol as another agent would use it: starts a server, lists its tools, makes
// the calls it is given, and prints what came of them as JSON. The client checks every result against the tool's schema.
//
//   node client.mjs MODULES COMMAND ARGUMENTS CALLS     MODULES: the node_modules folder; the others are JSON
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, command, args, calls] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(`${modules}/x.js`).resolve(name)));
const { Client } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'test', version: '1' });
await client.connect(new StdioClientTransport({ command, args: JSON.parse(args), env: process.env }));
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
    const { isError = false, structuredContent, content } = await client.callTool({ name, arguments: given });
    results.push({ name, isError, answer: structuredContent ?? content[0]?.text });
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
