// A small agent on the protocol's official library. What it does depends on the first word of the prompt.
//   node agent.mjs FILE-OF-THE-LIBRARY
import { pathToFileURL } from "node:url";
import { Readable, Writable } from "node:stream";

const acp = await import(pathToFileURL(process.argv[2]).href);
const { agent: served, client: asked } = acp.methods;
const stopped = new Map(); // of the sessions with a prompt, what to call when it is cancelled
const folders = new Map(); // of the sessions
let sessions = 0;

const scripts = {
  async hello({ tell }) {
    await tell({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "They greet me." } });
    await tell({ sessionUpdate: "plan", entries: [{ content: "greet", priority: "high", status: "in_progress" }] });
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "Hello " } });
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "yourself." } });
    return { stopReason: "end_turn", usage: { inputTokens: 12, outputTokens: 4, totalTokens: 16 } };
  },
  async remove({ tell, request, session }) {
    const toolCall = { toolCallId: "t1", title: "rm -rf build", kind: "execute", rawInput: { command: "rm -rf build" } };
    await tell({ sessionUpdate: "tool_call", status: "pending", ...toolCall });
    const answer = await request(asked.session.requestPermission, {
      sessionId: session,
      toolCall,
      options: [
        { optionId: "proceed", name: "Allow", kind: "allow_once" },
        { optionId: "stop", name: "Reject", kind: "reject_once" },
      ],
    });
    const allowed = answer.outcome.outcome === "selected" && answer.outcome.optionId === "proceed";
    await tell({ sessionUpdate: "tool_call_update", toolCallId: "t1", status: allowed ? "completed" : "failed" });
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(answer.outcome) } });
    await tell({ sessionUpdate: "usage_update", used: 12, size: 1000, cost: { amount: 0.5, currency: "USD" } });
    return { stopReason: "end_turn" };
  },
  async files({ tell, request, session }) {
    const { content } = await request(asked.fs.readTextFile, { sessionId: session, path: "/in.txt" });
    await request(asked.fs.writeTextFile, { sessionId: session, path: "/out.txt", content: content.toUpperCase() });
    const { terminalId } = await request(asked.terminal.create, { sessionId: session, command: "make", args: ["test"] });
    const { exitCode } = await request(asked.terminal.waitForExit, { sessionId: session, terminalId });
    const { output } = await request(asked.terminal.output, { sessionId: session, terminalId });
    await request(asked.terminal.release, { sessionId: session, terminalId });
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: `${exitCode} ${output}` } });
    return { stopReason: "end_turn" };
  },
  // What an agent that is served does, with the paths of its own folder, as real ones send them.
  async served({ tell, request, session, cwd }) {
    const said = [];
    const attempt = (what) => what.catch((e) => ({ refused: e.message }));
    const { content } = await request(asked.fs.readTextFile, { sessionId: session, path: `${cwd}/in.txt`, line: 2, limit: 1 });
    said.push(content.trim());
    await request(asked.fs.writeTextFile, { sessionId: session, path: `${cwd}/deep/out.txt`, content: content.toUpperCase() });
    const { refused } = await attempt(request(asked.fs.writeTextFile, { sessionId: session, path: `${cwd}/../team.yaml`, content: "x" }));
    said.push(refused ? "refused" : "written");
    const { terminalId } = await request(asked.terminal.create, { sessionId: session, command: "sh", args: ["-c", 'printf "%s|" "$0" "$@"; exit 3', "it's", "a b", "$HOME"] });
    const { exitCode } = await request(asked.terminal.waitForExit, { sessionId: session, terminalId });
    const { output } = await request(asked.terminal.output, { sessionId: session, terminalId });
    await request(asked.terminal.release, { sessionId: session, terminalId });
    said.push(exitCode, output.split("\n")[0]);
    const toolCall = { toolCallId: "t1", title: "fetch", kind: "fetch" };
    const options = [{ optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" }];
    said.push((await request(asked.session.requestPermission, { sessionId: session, toolCall, options })).outcome.optionId);
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: said.join(" ") } });
    await tell({ sessionUpdate: "usage_update", used: 12, size: 1000, cost: { amount: 0.1 + 0.2, currency: "USD" } });
    return { stopReason: "end_turn" };
  },
  async wait({ session }) {
    await new Promise((resolve) => stopped.set(session, resolve));
    return { stopReason: "cancelled" };
  },
  async burst({ tell }) {
    for (let i = 0; i < 6000; i++) await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "x" } });
    return { stopReason: "end_turn" };
  },
  async fail() {
    throw new Error("no model");
  },
};

acp
  .agent({ name: "small" })
  .onRequest(served.initialize, async () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {}, authMethods: [] }))
  .onRequest(served.session.new, async ({ params }) => {
    folders.set(`session-${++sessions}`, params.cwd);
    return { sessionId: `session-${sessions}` };
  })
  .onRequest(served.session.prompt, async ({ params, client }) => {
    const session = params.sessionId;
    const name = params.prompt[0].text.trim().split(/\s+/).at(-1);
    return scripts[name]({
      session,
      cwd: folders.get(session),
      tell: (update) => client.notify(asked.session.update, { sessionId: session, update }),
      request: (method, p) => client.request(method, p),
    });
  })
  .onNotification(served.session.cancel, async ({ params }) => stopped.get(params.sessionId)?.())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
