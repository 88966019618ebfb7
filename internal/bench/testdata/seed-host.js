// The start of the babysitter that heartbeat-host replaces, rebuilt as a lower bound:
// of its libraries it loads those that node finds (NODE_PATH), and it serves nothing.
//
//   node seed-host.js CLIENT < CONFIG
//   node seed-host.js                  prints which libraries those are
"use strict";
const fs = require("fs"), http = require("http"), os = require("os"), path = require("path");
const { spawn } = require("child_process");
const found = {};
for (const name of ["better-sqlite3", "@modelcontextprotocol/sdk/server/index.js", "@modelcontextprotocol/sdk/server/sse.js", "zod"]) {
  try {
    const library = require(name);
    if (name === "better-sqlite3") new library(":memory:").close(); // its native part, too
    found[name] = library;
  } catch {}
}
if (process.argv.length < 3) {
  console.log(Object.keys(found).join(", "));
  process.exit(0);
}
const config = JSON.parse(fs.readFileSync(0, "utf8"));
const Database = found["better-sqlite3"];
if (Database) new Database(config.dbPath).pragma("journal_mode = WAL");

const server = http.createServer((_, answer) => { answer.writeHead(404); answer.end(); });
server.listen(0, "127.0.0.1", () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "nsg-babysitter-"));
  const url = `http://127.0.0.1:${server.address().port}/sse`;
  fs.writeFileSync(path.join(dir, "mcp-config.json"), JSON.stringify({ mcpServers: { "nexus-guild": { type: "sse", url } } }));
  const client = spawn(process.argv[2], [], { cwd: config.cwd, stdio: ["pipe", "pipe", "inherit"] });
  client.stdin.end(config.prompt);
  const stop = () => { client.kill("SIGKILL"); fs.rmSync(dir, { recursive: true }); process.exit(0); };
  process.on("SIGTERM", stop);
  fetch(config.guildToolUrl + "/api/session/running", {
    method: "POST", headers: { "Content-Type": "application/json", "X-Session-Id": config.sessionId },
    body: JSON.stringify({ sessionId: config.sessionId, cancelHandle: { kind: "local-pgid", pgid: process.pid } }),
  });
});
